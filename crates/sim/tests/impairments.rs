//! Policer, jitter and aggregation on a link.

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Aggregation, Counters, Jitter, JitterDistribution, JitterOrder, Lane, LinkChange, LinkConfig, Policer,
    QueueConfig, Seeds, Stream,
};

/// Size of a packet that takes 1 ms to send and, without jitter, 10 ms to arrive.
const PACKET: WireBytes = WireBytes::new(1250);
const DELAY: Span = Span::from_millis(10);

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn config() -> LinkConfig {
    LinkConfig::new("link", Rate::from_bps(10_000_000), DELAY, QueueConfig::packets(1000))
}

fn lane(config: LinkConfig) -> Lane {
    Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).expect("a valid link")
}

/// Offers packets at these times, numbered from 0, and returns times and numbers of arrivals.
fn send(lane: &mut Lane, times: impl IntoIterator<Item = Time>) -> Vec<(Time, u32)> {
    let mut arrivals = Vec::new();
    for (owner, time) in (0..).zip(times) {
        collect(lane, time, &mut arrivals);
        lane.offer(time, PACKET, owner, &[]);
    }
    while let Some(due) = lane.poll_timeout() {
        collect(lane, due, &mut arrivals);
    }
    arrivals
}

fn collect(lane: &mut Lane, now: Time, arrivals: &mut Vec<(Time, u32)>) {
    let mut payload = PacketBuffer::new();
    arrivals.extend(std::iter::from_fn(|| lane.poll_deliver(now, &mut payload)).map(|d| (d.at, d.owner)));
}

/// Returns times of packets with a constant gap in microseconds.
fn every(us: u64, packets: u64) -> impl Iterator<Item = Time> {
    (0..packets).map(move |n| at_us(n * us))
}

fn jitter(most: Span, order: JitterOrder) -> Jitter {
    Jitter { distribution: JitterDistribution::Uniform(most), order }
}

/// Returns the delay that jitter alone added to each packet, in milliseconds. Packets are too far apart to wait for each other.
fn added(arrivals: &[(Time, u32)], gap_us: u64) -> Vec<f64> {
    let sent = |owner: u32| at_us(u64::from(owner) * gap_us) + Span::from_millis(1) + DELAY;
    arrivals.iter().map(|(at, owner)| at.since(sent(*owner)).as_millis_f64()).collect()
}

#[test]
fn policer_passes_rate_and_burst_without_delay_or_queue() {
    let policer = Policer { rate: Rate::from_bps(1_500_000), burst: WireBytes::new(12_500) };
    let mut lane = lane(config().with_policer(Some(policer)));
    // 5 Mbit/s for 10 s.
    let arrivals = send(&mut lane, every(2000, 5000));
    // 1.5 Mbit/s for 10 s are 1500 packets.
    assert!(arrivals.len().abs_diff(1500 + 10) <= 1, "{}", arrivals.len());
    let Counters { entered, delivered, policed, .. } = lane.counters();
    assert_eq!((entered.packets, delivered.packets + policed.packets), (5000, 5000));
    assert_eq!(delivered.packets, arrivals.len() as u64);
    assert!(added(&arrivals, 2000).iter().all(|added| *added == 0.0));
    // In the long run, each tenth of a second passes 15.
    let in_tenth = |k: u64| {
        let tenth = at_us(k * 100_000)..at_us((k + 1) * 100_000);
        arrivals.iter().filter(|(at, _)| tenth.contains(at)).count()
    };
    assert!((10..100).all(|k| in_tenth(k).abs_diff(15) <= 1));
}

#[test]
fn jitter_adds_its_mean_and_stays_within_its_bounds() {
    let mut lane = lane(config().with_jitter(Some(jitter(Span::from_millis(6), JitterOrder::Kept))));
    let arrivals = send(&mut lane, every(20_000, 20_000));
    let added = added(&arrivals, 20_000);
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    // The standard error is 0.012.
    assert!((mean - 3.0).abs() < 0.05, "{mean}");
    assert!(added.iter().all(|added| (0.0..=6.0).contains(added)));
    assert!(added.iter().any(|added| *added < 0.1) && added.iter().any(|added| *added > 5.9));
}

#[test]
fn jitter_keeps_the_order_only_if_configured() {
    let owners = |order| -> Vec<u32> {
        let mut lane = lane(config().with_jitter(Some(jitter(Span::from_millis(20), order))));
        let arrivals = send(&mut lane, every(1000, 2000));
        assert!(arrivals.windows(2).all(|pair| pair[0].0 <= pair[1].0), "time does not go back");
        arrivals.into_iter().map(|(_, owner)| owner).collect()
    };
    assert!(owners(JitterOrder::Kept).is_sorted());
    let free = owners(JitterOrder::Free);
    let late = free.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(late > 500, "{late}");
}

#[test]
fn jitter_depends_on_packet_number_and_seed_only() {
    let with = |seeds: Seeds, gap_us: u64| {
        let config = config().with_jitter(Some(jitter(Span::from_millis(5), JitterOrder::Free)));
        let mut lane = Lane::new(config, "flow", seeds, Vec::new()).expect("a valid link");
        let mut arrivals = send(&mut lane, every(gap_us, 100));
        arrivals.sort_by_key(|(_, owner)| *owner);
        added(&arrivals, gap_us)
    };
    assert_eq!(with(Seeds::new(1, 0), 1000), with(Seeds::new(1, 0), 7000));
    assert_ne!(with(Seeds::new(1, 0), 1000), with(Seeds::new(2, 0), 1000));
    assert_ne!(with(Seeds::new(1, 0), 1000), with(Seeds::new(1, 1), 1000));
}

#[test]
fn ordered_jitter_does_not_reorder_when_the_delay_falls() {
    let config = config().with_jitter(Some(jitter(Span::from_millis(3), JitterOrder::Kept)));
    let changes = vec![(at_us(50_500), LinkChange::Delay(Span::ZERO))];
    let mut lane = Lane::new(config, "flow", Seeds::new(1, 0), changes).expect("a valid link");
    let arrivals = send(&mut lane, every(1000, 100));
    assert!(arrivals.iter().map(|(_, owner)| *owner).eq(0..100));
}

#[test]
fn batch_starts_a_period_after_its_first_packet_at_link_rate() {
    let aggregation = Aggregation { period: Span::from_millis(5), most_packets: None };
    let mut lane = lane(config().with_aggregation(Some(aggregation)));
    let sent = [0, 1000, 4999, 20_000, 26_000].map(at_us);
    // Three packets wait for the end of the first period; the others are alone.
    let expected = [16_000, 17_000, 18_000, 36_000, 42_000].map(at_us);
    assert_eq!(send(&mut lane, sent), expected.into_iter().zip(0..).collect::<Vec<_>>());
}

#[test]
fn full_batches_do_not_wait_for_the_period() {
    let aggregation = Aggregation { period: Span::from_millis(50), most_packets: Some(3) };
    let mut lane = lane(config().with_aggregation(Some(aggregation)));
    let sent = [0, 2000, 4000, 4000, 5000, 5500, 9000].map(at_us);
    // The third packet completes the first batch. The second batch is complete before that is sent. The last packet waits.
    let expected = [15_000, 16_000, 17_000, 18_000, 19_000, 20_000, 70_000].map(at_us);
    assert_eq!(send(&mut lane, sent), expected.into_iter().zip(0..).collect::<Vec<_>>());
}

#[test]
fn fraction_of_a_nanosecond_is_not_carried_to_the_next_batch() {
    let aggregation = Aggregation { period: Span::from_millis(5), most_packets: None };
    let rate = Rate::from_bps(7_000_000);
    let mut lane = lane(LinkConfig { rate, ..config() }.with_aggregation(Some(aggregation)));
    // A packet takes 1,428,571 ns and three sevenths.
    let alone = Span::from_millis(5) + Span::from_nanos(1_428_571) + DELAY;
    let arrivals = send(&mut lane, every(20_000, 5));
    assert!(arrivals.into_iter().map(|(at, _)| at).eq(every(20_000, 5).map(|sent| sent + alone)));
}

#[test]
fn packets_that_wait_for_their_batch_take_room_in_the_queue() {
    let aggregation = Aggregation { period: Span::from_millis(5), most_packets: None };
    for (queue, held) in [(QueueConfig::packets(4), 4), (QueueConfig::bytes(WireBytes::new(1000)), 1)] {
        let config = LinkConfig { queue, ..config() }.with_aggregation(Some(aggregation));
        let mut lane = lane(config);
        let arrivals = send(&mut lane, every(10, 20));
        assert_eq!(arrivals.len(), held, "{queue:?}: an empty link takes any packet");
        assert_eq!(lane.counters().overflowed.packets, 20 - held as u64);
    }
}

#[test]
fn a_batch_of_a_link_that_is_down_is_dropped_as_it_leaves() {
    let aggregation = Aggregation { period: Span::from_millis(5), most_packets: None };
    let mut lane = lane(config().with_aggregation(Some(aggregation)));
    lane.offer(at_us(0), PACKET, 0, &[]);
    lane.change(at_us(1), &LinkChange::Down).expect("a valid change");
    assert!(send(&mut lane, []).is_empty());
    assert_eq!((lane.counters().outage.packets, lane.packets_on_the_way()), (1, 0));
}

/// Returns a random link with or without policer, jitter and batches.
fn random_config(random: &mut Stream) -> LinkConfig {
    let span = |random: &mut Stream, ms: u64| Span::from_micros(random.below(ms * 1000));
    let mut config = config();
    config.queue = if random.chance(0.5) { QueueConfig::packets(1 + random.below(30)) } else { config.queue };
    if random.chance(0.3) {
        let (rate, burst) = (1_000_000 + random.below(9_000_000), 1 + random.below(20_000));
        config.policer = Some(Policer { rate: Rate::from_bps(rate), burst: WireBytes::new(burst) });
    }
    if random.chance(0.7) {
        let mean = span(random, 20);
        let deviation = Span::from_nanos(random.below(mean.as_nanos() + 1));
        let normal = JitterDistribution::Normal { mean, deviation };
        let distribution = if random.chance(0.5) { normal } else { JitterDistribution::Uniform(mean) };
        let order = if random.chance(0.5) { JitterOrder::Kept } else { JitterOrder::Free };
        config.jitter = Some(Jitter { distribution, order });
    }
    if random.chance(0.7) {
        let most_packets = random.chance(0.5).then(|| 1 + random.below(12));
        config.aggregation = Some(Aggregation { period: span(random, 15), most_packets });
    }
    config
}

#[test]
fn no_packet_is_lost_duplicated_or_early_under_any_link_timing() {
    for seed in 0..400 {
        let mut random = Seeds::new(seed, 0).stream(&["links"]);
        let config = random_config(&mut random);
        let mut now = Time::ZERO;
        let sent: Vec<Time> = std::iter::repeat_with(|| {
            // Bursts, and pauses in which all packets arrive.
            let most_us = if random.chance(0.05) { 50_000 } else { 1500 };
            now += Span::from_micros(random.below(most_us));
            now
        })
        .take(300)
        .collect();
        let mut lane = lane(config.clone());
        let arrivals = send(&mut lane, sent.iter().copied());
        let counters = lane.counters();
        let dropped = counters.policed.packets + counters.overflowed.packets;
        assert_eq!(arrivals.len() as u64 + dropped, 300, "{config:?}");
        assert_eq!(lane.packets_on_the_way(), 0, "{config:?}");
        let mut owners: Vec<u32> = arrivals.iter().map(|(_, owner)| *owner).collect();
        let is_free = config.jitter.is_some_and(|jitter| jitter.order == JitterOrder::Free);
        assert!(is_free || owners.is_sorted(), "{config:?}");
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(owners.len(), arrivals.len(), "{config:?}");
        let earliest = |owner: u32| sent[owner as usize] + Span::from_millis(1) + DELAY;
        assert!(arrivals.iter().all(|(at, owner)| *at >= earliest(*owner)), "{config:?}");
        assert_eq!(send(&mut self::lane(config), sent.iter().copied()), arrivals, "it is the same again");
    }
}

#[test]
fn a_link_with_impossible_figures_is_refused() {
    let zero = Policer { rate: Rate::from_bps(0), burst: WireBytes::new(1500) };
    let (mean, deviation) = (Span::from_millis(1), Span::from_millis(2));
    let wide =
        Jitter { distribution: JitterDistribution::Normal { mean, deviation }, order: JitterOrder::Kept };
    let empty = Aggregation { period: Span::from_millis(1), most_packets: Some(0) };
    for config in [
        config().with_policer(Some(zero)),
        config().with_jitter(Some(wide)),
        config().with_aggregation(Some(empty)),
    ] {
        assert!(Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).is_err());
    }
}
