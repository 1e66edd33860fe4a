//! Equivalence of a relay's links and the links of a simulated run.

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_relay::{Direction, Impairment};
use anabranch_sim::{
    Address, Aggregation, CapacityTrace, CoDel, Columns, Datagram, Discipline, Encapsulation, Envelope,
    Faults, GilbertElliott, Host, Jitter, JitterDistribution, JitterOrder, LinkChange, LinkConfig, LossModel,
    LossPlace, LossTrace, Playback, Policer, QueueConfig, Seeds, Series, World,
};

const SOURCE: &str = "flow-1";
/// 20 bytes of IPv4 and 8 of UDP.
const OVERHEAD: WireBytes = WireBytes::new(28);

/// Packet to send: its time and payload.
type Planned = (Time, Vec<u8>);

/// Host that sends the planned packets and records arrivals with their times.
struct Peer {
    plan: std::collections::VecDeque<Planned>,
    way: Envelope,
    arrivals: Vec<Planned>,
}

impl Host for Peer {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.arrivals.push((now, datagram.payload.to_vec()));
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        let due = self.plan.front().is_some_and(|(time, _)| *time <= now);
        let (_, payload) = if due { self.plan.pop_front() } else { None }?;
        buf.extend_from_slice(&payload);
        Some(self.way)
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.plan.front().map(|(time, _)| *time)
    }
}

/// Plans packets of random sizes at random times, in bursts that fill a queue.
fn plan(name: &str, packets: u64) -> Vec<Planned> {
    let mut stream = Seeds::new(99, 0).stream(&["plan", name]);
    let mut now = Time::ZERO;
    let mut next = |number: u64| {
        if !stream.chance(0.6) {
            now += Span::from_nanos(stream.below(6_000_000));
        }
        let mut payload = vec![0; 8 + stream.below(1465) as usize];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        (now, payload)
    };
    (0..packets).map(&mut next).collect()
}

fn changes() -> Vec<(Time, LinkChange)> {
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    vec![
        (at(100), LinkChange::Down),
        (at(140), LinkChange::Up),
        (at(200), LinkChange::Delay(Span::from_millis(2))),
        (at(300), LinkChange::Rate(Rate::from_bps(3_000_001))),
        (at(400), LinkChange::Loss(LossModel::Bernoulli(0.3))),
    ]
}

fn links() -> Vec<LinkConfig> {
    let link = |queue| LinkConfig::new("link", Rate::from_bps(7_000_003), Span::from_millis(9), queue);
    let burst = GilbertElliott { to_bad: 0.05, to_good: 0.3, loss_in_good: 0.001, loss_in_bad: 0.7 };
    let faults = Faults { duplicate: 0.1, reorder: 0.1, extra_delay: Span::from_millis(4), corrupt: 0.1 };
    vec![
        link(QueueConfig::packets(5)),
        link(QueueConfig::ns2_packets(3)),
        link(QueueConfig::bytes(WireBytes::new(4000))),
        link(QueueConfig::time(Span::from_millis(6))),
        link(QueueConfig::packets(8)).with_loss(LossModel::Bernoulli(0.05), LossPlace::BeforeQueue),
        link(QueueConfig::packets(8)).with_loss(LossModel::GilbertElliott(burst), LossPlace::AfterQueue),
        link(QueueConfig::unlimited()).with_faults(faults),
        link(QueueConfig::packets(4)).with_loss(
            LossModel::Trace(LossTrace::new().lose(SOURCE, [1, 2, 30, 31])),
            LossPlace::AfterQueue,
        ),
        link(QueueConfig::packets(30))
            .with_policer(Some(Policer { rate: Rate::from_bps(5_000_000), burst: WireBytes::new(9000) }))
            .with_jitter(Some(jitter(JitterOrder::Free))),
        link(QueueConfig::packets(30))
            .with_jitter(Some(jitter(JitterOrder::Kept)))
            .with_aggregation(Some(Aggregation { period: Span::from_micros(3500), most_packets: Some(4) })),
        link(QueueConfig::packets(30)).with_capacity(recorded()).with_series(delays()),
        link(QueueConfig::packets(30).with_discipline(Discipline::CoDel(CoDel::default())))
            .with_capacity(recorded()),
    ]
}

/// Returns a capacity that changes every 250 ms, from the middle of its second piece on.
fn recorded() -> Playback<CapacityTrace> {
    let text = b"0 6\n0.25 2\n0.5 0\n0.75 9\n1 4\n";
    let trace = CapacityTrace::read_rates(&text[..], &Columns::default(), None).expect("a valid trace");
    Playback::repeated(trace).starting_at(Span::from_millis(375))
}

fn delays() -> Playback<Series> {
    let series = Series::read_delays(&b"0 9\n0.3 30\n0.6 1\n"[..], &Columns::default());
    Playback::repeated(series.expect("a valid series"))
}

fn jitter(order: JitterOrder) -> Jitter {
    let (mean, deviation) = (Span::from_millis(4), Span::from_millis(3));
    Jitter { distribution: JitterDistribution::Normal { mean, deviation }, order }
}

struct Outcome {
    arrivals: Vec<Planned>,
    counters: anabranch_sim::Counters,
}

fn simulated(config: LinkConfig, plan: Vec<Planned>) -> Outcome {
    let (here, there): (Address, Address) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let encapsulation = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
    let way = Envelope { encapsulation, ..Envelope::plain(here, there) };
    let peer = |plan: Vec<Planned>| Box::new(Peer { plan: plan.into(), way, arrivals: Vec::new() });
    let mut world = World::new(Seeds::new(5, 2));
    world.add_host(peer(plan), &[here]).expect("a host");
    let receiver = world.add_host(peer(Vec::new()), &[there]).expect("a host");
    let link = world.add_link(config).expect("a link");
    world.add_route(here, there, &[link], Some(SOURCE)).expect("a route");
    world.add_schedule(link, changes()).expect("changes");
    world.run_until(Time::ZERO + Span::from_secs(30));
    Outcome {
        arrivals: world.host::<Peer>(receiver).arrivals.clone(),
        counters: world.link(link).total_counters(),
    }
}

/// Sends the same packets through a relay's link that is polled at different times: at every offer, and `late` nanoseconds after an
/// event was due.
fn relayed(config: LinkConfig, plan: &[Planned], late: u64) -> (Outcome, anabranch_relay::Totals) {
    let back = LinkConfig { name: "back".to_owned(), ..config.clone() };
    let forward = Direction::Forward;
    let changes: Vec<_> = changes().into_iter().map(|(time, change)| (forward, time, change)).collect();
    let mut impairment = Impairment::new(config, back, SOURCE, Seeds::new(5, 2), OVERHEAD, &changes)
        .expect("the same link as in the simulation");
    let mut arrivals = Vec::new();
    let mut drain = |impairment: &mut Impairment, until: Option<Time>| {
        let mut payload = PacketBuffer::new();
        while let Some(due) = impairment.poll_timeout() {
            let woken = due + Span::from_nanos(late);
            if until.is_some_and(|until| woken >= until) {
                break;
            }
            while let Some(delivery) = impairment.poll_deliver(woken, &mut payload) {
                assert!(delivery.at <= woken);
                arrivals.push((delivery.at, payload.to_vec()));
            }
        }
    };
    for (time, payload) in plan {
        drain(&mut impairment, Some(*time));
        impairment.offer(forward, *time, 0, payload);
    }
    drain(&mut impairment, None);
    let counters = impairment.link(forward).total_counters();
    (Outcome { arrivals, counters }, impairment.totals(forward))
}

#[test]
fn relayed_link_delivers_and_drops_as_a_simulated_one() {
    let plan = plan("bursts", 600);
    for config in links() {
        let expected = simulated(config.clone(), plan.clone());
        let (found, totals) = relayed(config.clone(), &plan, 0);
        assert_eq!(found.counters, expected.counters, "{config:?}");
        assert!(found.arrivals == expected.arrivals, "{config:?}");
        assert!(totals.outage.packets > 0 && totals.delivered.packets > 100, "{totals:?}");
        assert_eq!(totals.on_the_way, 0);
        let sum = |amounts: &[anabranch_relay::Amount]| amounts.iter().map(|a| a.bytes).sum::<u64>();
        assert_eq!(
            sum(&[totals.offered, totals.duplicated]),
            sum(&[totals.delivered, totals.lost, totals.policed, totals.overflowed, totals.outage]),
        );
    }
}

#[test]
fn late_relay_keeps_outcome_and_time_of_each_packet() {
    let plan = plan("late", 600);
    for config in links() {
        let (in_time, _) = relayed(config.clone(), &plan, 0);
        for late in [1, 1_000_000, 50_000_000] {
            let (found, _) = relayed(config.clone(), &plan, late);
            assert_eq!(found.counters, in_time.counters, "{config:?} with {late} ns");
            assert!(found.arrivals == in_time.arrivals, "{config:?} with {late} ns");
        }
    }
}

#[test]
fn each_direction_is_the_link_of_its_name() {
    let plan = plan("directions", 400);
    let config = links().remove(4);
    let other = LinkConfig { name: "other".to_owned(), ..config.clone() };
    let lost = |forward: &LinkConfig, reverse: &LinkConfig, direction| {
        let made = Impairment::new(forward.clone(), reverse.clone(), SOURCE, Seeds::new(5, 2), OVERHEAD, &[]);
        let mut impairment = made.expect("valid links");
        for (time, payload) in &plan {
            impairment.offer(direction, *time, 0, payload);
        }
        impairment.totals(direction).lost
    };
    let (forward, reverse) = (Direction::Forward, Direction::Reverse);
    assert_eq!(lost(&config, &other, forward), lost(&other, &config, reverse));
    assert_ne!(lost(&config, &other, forward), lost(&config, &other, reverse));
}
