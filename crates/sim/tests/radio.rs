//! Radio links: a medium that both directions share, and rate adaptation.

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Aggregation, CapacityTrace, CoDel, Counters, Discipline, Fading, LinkConfig, LinkId, Playback,
    QueueConfig, Seeds, TrafficConfig, TrafficKind, World,
};

const DURATION: Span = Span::from_secs(5);
const MBIT: u64 = 1_000_000;

fn link(name: &str, mbps: u64) -> LinkConfig {
    let queue = QueueConfig::packets(20);
    LinkConfig::new(name, Rate::from_bps(mbps * MBIT), Span::from_millis(5), queue)
}

/// Offered traffic of one direction in Mbit/s, and the size of its packets.
type Load = (u64, u64);

/// Runs two links that share a medium, and returns their counters.
fn run(links: [LinkConfig; 2], access: Span, loads: [Load; 2], seed: u64) -> [Counters; 2] {
    let mut world = World::new(Seeds::new(seed, 0));
    let [one, other] = links.map(|config| world.add_link(config).expect("a valid link"));
    world.share_medium(one, other, access).expect("two links");
    for (link, (mbps, bytes)) in [one, other].into_iter().zip(loads) {
        offer(&mut world, link, mbps, bytes);
    }
    assert!(!world.compute_ahead());
    world.run_until(Time::ZERO + DURATION);
    [one, other].map(|link| world.link(link).total_counters())
}

fn offer(world: &mut World, link: LinkId, mbps: u64, bytes: u64) {
    let kind = TrafficKind::Poisson { rate: Rate::from_bps(mbps * MBIT) };
    let name = format!("traffic-{}", link.index());
    let traffic = TrafficConfig::new(name, kind, WireBytes::new(bytes));
    world.add_traffic(traffic, &[link]).expect("valid traffic");
}

fn airtime_s(counters: Counters, mbps: u64, access: Span) -> f64 {
    counters.delivered.bytes.get() as f64 * 8.0 / (mbps * MBIT) as f64
        + counters.delivered.packets as f64 * access.as_secs_f64()
}

#[test]
fn airtime_of_both_directions_is_at_most_the_duration_in_random_cells() {
    let mut stream = Seeds::new(3, 0).stream(&["cells"]);
    let mut between = |least: u64, most: u64| least + stream.below(most - least);
    for seed in 1..=40 {
        let rates = [between(2, 60), between(2, 60)];
        let access = Span::from_micros(between(0, 400));
        let loads = [(between(1, 80), between(60, 1500)), (between(1, 80), between(60, 1500))];
        let discipline =
            if seed % 2 == 0 { Discipline::CoDel(CoDel::default()) } else { Discipline::DropTail };
        let queue = QueueConfig::packets(20).with_discipline(discipline);
        let make = || {
            [("up", rates[0]), ("down", rates[1])]
                .map(|(name, mbps)| LinkConfig { queue, ..link(name, mbps) })
        };
        let found = run(make(), access, loads, seed);
        let used: f64 = (0..2).map(|way| airtime_s(found[way], rates[way], access)).sum();
        let duration_s = DURATION.as_secs_f64();
        assert!(used <= duration_s, "cell {seed}: {used} s");
        let asked: f64 = (0..2).map(|way| asked(loads[way], rates[way], access)).sum();
        // CoDel may drop packets until a queue is empty.
        if asked > 2.0 && seed % 2 == 1 {
            assert!(
                used > 0.97 * duration_s,
                "cell {seed}: {used} s although {asked} of the time are asked for"
            );
        }
        assert_eq!(run(make(), access, loads, seed), found);
    }
}

/// Returns the part of the time that packets of this load need.
fn asked((mbps, bytes): Load, rate: u64, access: Span) -> f64 {
    let packet_bits = bytes as f64 * 8.0;
    let packets = (mbps * MBIT) as f64 / packet_bits;
    packets * (packet_bits / (rate * MBIT) as f64 + access.as_secs_f64())
}

#[test]
fn directions_with_waiting_packets_send_the_same_number() {
    let access = Span::from_micros(110);
    let [up, down] = run([link("up", 6), link("down", 54)], access, [(90, 1500), (90, 1500)], 1);
    let difference = up.delivered.packets.abs_diff(down.delivered.packets);
    assert!(difference <= 5, "{up:?} {down:?}");
    // 2 ms + 110 µs and 222 µs + 110 µs for two packets.
    let expected = 2.0 * DURATION.as_secs_f64() / (0.002 + 0.000_222 + 0.000_22);
    let packets = (up.delivered.packets + down.delivered.packets) as f64;
    assert!((packets / expected - 1.0).abs() < 0.01, "{packets} for {expected}");
}

#[test]
fn direction_alone_has_the_whole_medium() {
    let [up, down] = run([link("up", 10), link("down", 10)], Span::ZERO, [(20, 1250), (1, 1250)], 1);
    let sum = (up.delivered.bytes.get() + down.delivered.bytes.get()) as f64 * 8.0 / DURATION.as_secs_f64();
    assert!((sum / 10e6 - 1.0).abs() < 0.01, "{sum}");
    assert_eq!(down.overflowed.packets, 0);
}

#[test]
fn medium_is_shared_by_two_links_with_one_rate_each() {
    let refused = |two: LinkConfig| {
        let mut world = World::new(Seeds::new(1, 0));
        let one = world.add_link(link("one", 10)).expect("a valid link");
        let two = world.add_link(two).expect("a valid link");
        world.share_medium(one, two, Span::ZERO).err().map(|error| error.to_string())
    };
    assert_eq!(refused(link("two", 10)), None);
    let batches = Aggregation { period: Span::from_millis(5), most_packets: None };
    let reason = refused(link("two", 10).with_aggregation(Some(batches))).expect("an error");
    assert!(reason.contains("batches"), "{reason}");
    let trace = CapacityTrace::read_mahimahi(&b"1\n"[..]).expect("a trace");
    let reason = refused(link("two", 10).with_capacity(Playback::repeated(trace))).expect("an error");
    assert!(reason.contains("trace"), "{reason}");
    let mut world = World::new(Seeds::new(1, 0));
    let ids = ["a", "b", "c"].map(|name| world.add_link(link(name, 10)).expect("a valid link"));
    assert!(world.share_medium(ids[0], ids[0], Span::ZERO).is_err());
    assert!(world.share_medium(ids[0], ids[1], Span::ZERO).is_ok());
    assert!(world.share_medium(ids[2], ids[1], Span::ZERO).is_err());
}

/// Returns the bytes that a saturated link with this fading delivers.
fn faded(fading: Fading, seed: u64) -> u64 {
    let mut world = World::new(Seeds::new(seed, 0));
    let id = world.add_link(link("radio", 54).with_fading(Some(fading))).expect("a valid link");
    offer(&mut world, id, 80, 1500);
    world.run_until(Time::ZERO + Span::from_secs(60));
    world.link(id).total_counters().delivered.bytes.get()
}

#[test]
fn saturated_link_has_the_mean_rate_of_its_channel() {
    for snr_db in [10.0, 20.0, 30.0] {
        let fading = Fading { snr_db, doppler_hz: 20.0 };
        let expected = fading.mean_rate(Rate::from_bps(54 * MBIT)).as_bps() as f64;
        let found = faded(fading, 1) as f64 * 8.0 / 60.0;
        assert!((found / expected - 1.0).abs() < 0.05, "{snr_db} dB: {found} for {expected}");
        assert_eq!(faded(fading, 1), faded(fading, 1));
        assert_ne!(faded(fading, 1), faded(fading, 2));
    }
}

#[test]
fn fading_excludes_a_trace_of_the_capacity() {
    let trace = CapacityTrace::read_mahimahi(&b"1\n"[..]).expect("a trace");
    let fading = Some(Fading { snr_db: 20.0, doppler_hz: 5.0 });
    let config = link("radio", 54).with_fading(fading).with_capacity(Playback::repeated(trace));
    let error = World::new(Seeds::new(1, 0)).add_link(config).expect_err("an error");
    assert!(error.to_string().contains("trace of the capacity"), "{error}");
}
