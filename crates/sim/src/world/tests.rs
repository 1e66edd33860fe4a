use std::collections::VecDeque;

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;

use super::*;
use crate::{
    Aggregation, ConfigError, Counters, Datagram, Encapsulation, Envelope, Faults, GilbertElliott, Jitter,
    JitterDistribution, JitterOrder, LinkChange, LinkConfig, LossModel, LossPlace, LossTrace, Policer,
    QueueConfig, TrafficConfig, TrafficKind,
};

const MBIT: u64 = 1_000_000;
const DELAY: Span = Span::from_millis(10);
/// Rate at which a packet of 1000 bytes takes 1 ms.
const RATE: Rate = Rate::from_bps(8 * MBIT);

/// Host that sends packets of given wire sizes at given times, numbered in their first bytes, and records arrivals.
#[derive(Default)]
struct Script {
    sends: VecDeque<(Time, Envelope, u64)>,
    sent: u32,
    arrivals: Vec<(u64, Vec<u8>)>,
}

impl Host for Script {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        self.arrivals.push((now.as_nanos(), datagram.payload.to_vec()));
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        assert!(buf.is_empty());
        let (_, envelope, size) = self.sends.pop_front_if(|(time, ..)| *time <= now)?;
        let mut payload = vec![0; size as usize - 20];
        payload[..4].copy_from_slice(&self.sent.to_be_bytes());
        buf.extend_from_slice(&payload);
        self.sent += 1;
        Some(envelope)
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.sends.front().map(|(time, ..)| *time)
    }
}

fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

fn here() -> Address {
    [10, 0, 0, 1].into()
}

fn there() -> Address {
    [10, 0, 0, 2].into()
}

fn script(sends: impl IntoIterator<Item = (Time, u64)>) -> Script {
    let way = Envelope::plain(here(), there());
    Script { sends: sends.into_iter().map(|(time, size)| (time, way, size)).collect(), ..Script::default() }
}

fn link(queue: QueueConfig) -> LinkConfig {
    LinkConfig::new("link", RATE, DELAY, queue)
}

/// World with one link from a sender to a receiver.
struct Line {
    world: World,
    link: LinkId,
    flow: SourceId,
    receiver: HostId,
}

fn line(config: LinkConfig, sends: impl IntoIterator<Item = (Time, u64)>) -> Line {
    let mut world = World::new(Seeds::new(1, 0));
    world.add_host(Box::new(script(sends)), &[here()]).unwrap();
    let receiver = world.add_host(Box::new(Script::default()), &[there()]).unwrap();
    let link = world.add_link(config).unwrap();
    let flow = world.add_route(here(), there(), &[link], Some("flow-1")).unwrap();
    Line { world, link, flow, receiver }
}

impl Line {
    fn run(mut self) -> Self {
        self.world.run_until(Time::ZERO + Span::from_secs(10_000));
        self
    }

    /// Returns times of arrival in microseconds.
    fn arrivals(&self) -> Vec<u64> {
        self.received().iter().map(|(time, _)| time / 1000).collect()
    }

    /// Returns the numbers of the packets that arrived.
    fn numbers(&self) -> Vec<u32> {
        self.received().iter().map(|(_, bytes)| u32::from_be_bytes(bytes[..4].try_into().unwrap())).collect()
    }

    fn received(&self) -> &[(u64, Vec<u8>)] {
        &self.world.host::<Script>(self.receiver).arrivals
    }

    fn counters(&self) -> Counters {
        self.world.link(self.link).counters(self.flow)
    }
}

fn burst(n: u64, size: u64) -> impl Iterator<Item = (Time, u64)> {
    (0..n).map(move |_| (Time::ZERO, size))
}

/// Returns one packet of 1000 bytes every `gap`.
fn paced(n: u64, gap: u64) -> impl Iterator<Item = (Time, u64)> {
    (0..n).map(move |i| (us(i * gap), 1000))
}

// Serialisation and propagation

#[test]
fn the_kth_packet_of_a_burst_arrives_after_k_serialisations_and_the_delay() {
    let line = line(link(QueueConfig::unlimited()), burst(5, 1000)).run();
    assert_eq!(line.arrivals(), [11_000, 12_000, 13_000, 14_000, 15_000]);
}

#[test]
fn serialisation_is_exact_at_awkward_rates() {
    let rate = 387_001;
    let config = LinkConfig::new("link", Rate::from_bps(rate), Span::ZERO, QueueConfig::unlimited());
    let line = line(config, burst(10_000, 1337)).run();
    for (k, (time, _)) in (1..).zip(line.received()) {
        assert_eq!(u128::from(*time), k * 1337 * 8 * 1_000_000_000 / u128::from(rate));
    }
    assert_eq!(line.received().len(), 10_000);
}

#[test]
fn new_busy_period_carries_no_remainder() {
    let config = LinkConfig::new("link", Rate::from_bps(3 * 8 * MBIT), Span::ZERO, QueueConfig::unlimited());
    let line = line(config, [(us(0), 1000), (us(1000), 1000), (us(1000), 1000)]).run();
    let times: Vec<_> = line.received().iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [333_333, 1_333_333, 1_666_666]);
}

#[test]
fn encapsulation_costs_bandwidth() {
    let encapsulation = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
    let mut plain = script(burst(1, 1000));
    plain.sends[0].1.encapsulation = encapsulation;
    let mut line = line(link(QueueConfig::unlimited()), []);
    line.world.with_host(HostId(0), |host: &mut Script, _| *host = plain);
    let line = line.run();
    assert_eq!(line.arrivals(), [11_008]);
    assert_eq!(line.counters().entered.bytes, WireBytes::new(1008));
}

#[test]
fn packets_pass_links_in_turn() {
    let mut world = World::new(Seeds::new(1, 0));
    world.add_host(Box::new(script(burst(2, 1000))), &[here()]).unwrap();
    let receiver = world.add_host(Box::new(Script::default()), &[there()]).unwrap();
    let fast =
        LinkConfig::new("fast", Rate::from_bps(80 * MBIT), Span::from_millis(1), QueueConfig::packets(9));
    let first = world.add_link(fast).unwrap();
    let second = world.add_link(link(QueueConfig::packets(9))).unwrap();
    let flow = world.add_route(here(), there(), &[first, second], None).unwrap();
    assert_eq!(world.source_name(flow), "10.0.0.1>10.0.0.2");
    world.run_until(us(50_000));
    let times: Vec<_> = world.host::<Script>(receiver).arrivals.iter().map(|(t, _)| t / 1000).collect();
    assert_eq!(times, [12_100, 13_100]);
    assert_eq!(world.packets_on_the_way(), 0);
}

#[test]
fn both_directions_and_ipv6_work() {
    let (a, b): (Address, Address) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let mut world = World::new(Seeds::new(1, 0));
    let send = |from, to| {
        let sends = VecDeque::from([(us(0), Envelope::plain(from, to), 1000)]);
        Box::new(Script { sends, ..Script::default() })
    };
    let hosts = [world.add_host(send(a, b), &[a]).unwrap(), world.add_host(send(b, a), &[b]).unwrap()];
    let there = world.add_link(LinkConfig::new("a>b", RATE, DELAY, QueueConfig::packets(5))).unwrap();
    let back = world.add_link(LinkConfig::new("b>a", RATE, DELAY, QueueConfig::packets(5))).unwrap();
    world.add_route(a, b, &[there], Some("flow")).unwrap();
    world.add_route(b, a, &[back], Some("flow")).unwrap();
    world.run_until(us(20_000));
    for host in hosts {
        assert_eq!(world.host::<Script>(host).arrivals[0].0, 11_020_000);
    }
}

// Queues

#[test]
fn a_packet_limit_counts_the_packet_in_service_only_under_ns2_rules() {
    for (queue, delivered) in [(QueueConfig::packets(5), 6), (QueueConfig::ns2_packets(5), 5)] {
        let line = line(link(queue), burst(20, 1000)).run();
        let counters = line.counters();
        assert_eq!(counters.delivered.packets, delivered);
        assert_eq!(counters.overflowed.packets, 20 - delivered);
        assert_eq!(line.numbers(), (0..delivered as u32).collect::<Vec<_>>());
    }
}

#[test]
fn a_byte_limit_admits_what_fits() {
    let limited = QueueConfig::bytes(WireBytes::new(2500));
    for (queue, expected) in [(limited, vec![0, 1, 2, 4]), (limited.counting_in_service(), vec![0, 1, 4])] {
        // The fourth packet of 1000 bytes does not fit, but a smaller one behind it does.
        let sizes = [1000, 1000, 1000, 1000, 500];
        let line = line(link(queue), sizes.map(|size| (Time::ZERO, size))).run();
        assert_eq!(line.numbers(), expected);
    }
}

#[test]
fn a_time_limit_follows_the_rate() {
    let queue = QueueConfig::time(Span::from_millis(3));
    let slow = line(link(queue), burst(20, 1000)).run();
    assert_eq!(slow.counters().delivered.packets, 4);
    let counting = line(link(queue.counting_in_service()), burst(20, 1000)).run();
    assert_eq!(counting.counters().delivered.packets, 3);
    let mut fast = line(link(queue), burst(20, 1000));
    fast.world.change_link(fast.link, &LinkChange::Rate(Rate::from_bps(16 * MBIT))).unwrap();
    assert_eq!(fast.run().counters().delivered.packets, 7);
}

#[test]
fn an_idle_link_takes_any_packet() {
    for queue in [QueueConfig::packets(0), QueueConfig::ns2_packets(1), QueueConfig::bytes(WireBytes::new(1))]
    {
        let line = line(link(queue), paced(10, 1000)).run();
        assert_eq!(line.counters().delivered.packets, 10);
    }
}

#[test]
fn packets_on_a_link_can_be_observed() {
    let mut line = line(link(QueueConfig::packets(50)), burst(5, 1000));
    line.world.run_until(us(1500));
    let link = line.world.link(line.link);
    assert_eq!((link.waiting_packets(), link.waiting_bytes()), (3, WireBytes::new(3000)));
    assert_eq!((link.in_service(), link.propagating_packets()), (Some(WireBytes::new(1000)), 1));
    assert_eq!(line.world.packets_on_the_way(), 5);
}

// Loss

fn lossy(place: LossPlace) -> LinkConfig {
    let trace = LossTrace::new().lose("flow-1", [1, 3]);
    link(QueueConfig::packets(50)).with_loss(LossModel::Trace(trace), place)
}

#[test]
fn loss_before_the_queue_uses_no_bandwidth() {
    let line = line(lossy(LossPlace::BeforeQueue), burst(4, 1000)).run();
    assert_eq!((line.arrivals(), line.numbers()), (vec![11_000, 12_000], vec![1, 3]));
    assert_eq!(line.counters().lost.packets, 2);
}

#[test]
fn loss_after_the_queue_uses_bandwidth() {
    let line = line(lossy(LossPlace::AfterQueue), burst(4, 1000)).run();
    assert_eq!((line.arrivals(), line.numbers()), (vec![12_000, 14_000], vec![1, 3]));
    assert_eq!(line.counters().lost.bytes, WireBytes::new(2000));
}

/// Returns the numbers of a flow's lost packets if they are sent `gap` apart, with or without other traffic.
fn fates(place: LossPlace, model: &LossModel, gap: u64, company: bool) -> Vec<u32> {
    let config = link(QueueConfig::unlimited()).with_loss(model.clone(), place);
    let mut line = line(config, paced(2000, gap));
    if company {
        let kind = TrafficKind::Poisson { rate: Rate::from_bps(2 * MBIT) };
        let traffic = TrafficConfig::new("cross", kind, WireBytes::new(300)).stopping_at(us(60_000_000));
        line.world.add_traffic(traffic, &[line.link]).unwrap();
        let other = LinkConfig::new("other", RATE, DELAY, QueueConfig::packets(50));
        line.world.add_link(other.with_loss(model.clone(), place)).unwrap();
    }
    line.run().numbers()
}

#[test]
fn loss_of_a_packet_is_independent_of_time_and_other_packets() {
    let chain = LossModel::GilbertElliott(GilbertElliott::simple(0.05, 0.3));
    for model in [LossModel::Bernoulli(0.1), chain] {
        for place in [LossPlace::BeforeQueue, LossPlace::AfterQueue] {
            let alone = fates(place, &model, 5000, false);
            assert!((1500..1950).contains(&alone.len()), "{}", alone.len());
            assert_eq!(alone, fates(place, &model, 5000, true));
            assert_eq!(alone, fates(place, &model, 100, false));
            assert_eq!(alone, fates(place, &model, 700, true));
        }
    }
}

#[test]
fn fate_behind_the_queue_belongs_to_the_packet_even_if_others_overflow() {
    let trace = LossModel::Trace(LossTrace::new().lose("flow-1", [20]));
    let config = link(QueueConfig::packets(5)).with_loss(trace, LossPlace::AfterQueue);
    // Of a burst of 18, 12 overflow. Then packets 19, 20 and 21 arrive, of which 20 is lost.
    let line = line(config, burst(18, 1000).chain((0..3).map(|_| (us(100_000), 1000)))).run();
    assert_eq!(line.numbers(), [0, 1, 2, 3, 4, 5, 18, 20]);
}

#[test]
fn sources_meet_their_own_losses() {
    let model = LossModel::Bernoulli(0.3);
    let fate = |name: &str| {
        let mut world = World::new(Seeds::new(1, 0));
        world.add_host(Box::new(script(paced(200, 1000))), &[here()]).unwrap();
        let receiver = world.add_host(Box::new(Script::default()), &[there()]).unwrap();
        let config = link(QueueConfig::packets(50)).with_loss(model.clone(), LossPlace::BeforeQueue);
        let link = world.add_link(config).unwrap();
        world.add_route(here(), there(), &[link], Some(name)).unwrap();
        world.run_until(us(1_000_000));
        world.host::<Script>(receiver).arrivals.clone()
    };
    assert_ne!(fate("flow-1"), fate("flow-2"));
    assert_eq!(fate("flow-1"), fate("flow-1"));
}

// Dynamics

#[test]
fn outage_drops_queued_and_arriving_but_not_flying_packets() {
    // The link is down from 3.5 ms to 6.5 ms. Packets 0 to 2 depart before, 3 to 5 during the outage, 6 departs later, and
    // 7 arrives during the outage.
    let sends = burst(7, 1000).chain([(us(5000), 1000), (us(20_000), 1000)]);
    let mut line = line(link(QueueConfig::packets(50)), sends);
    line.world
        .add_schedule(line.link, vec![(us(6500), LinkChange::Up), (us(3500), LinkChange::Down)])
        .unwrap();
    let line = line.run();
    assert_eq!(line.numbers(), [0, 1, 2, 6, 8]);
    assert_eq!(line.arrivals(), [11_000, 12_000, 13_000, 17_000, 31_000]);
    assert_eq!(line.counters().outage.packets, 4);
}

#[test]
fn a_change_of_rate_holds_from_the_next_packet_on() {
    let mut line = line(link(QueueConfig::packets(50)), burst(3, 1000));
    line.world.add_schedule(line.link, vec![(us(500), LinkChange::Rate(Rate::from_bps(MBIT)))]).unwrap();
    assert_eq!(line.run().arrivals(), [11_000, 19_000, 27_000]);
}

#[test]
fn packets_do_not_overtake_when_the_delay_falls() {
    let mut line = line(link(QueueConfig::packets(50)), paced(4, 2000));
    line.world.add_schedule(line.link, vec![(us(2500), LinkChange::Delay(Span::from_millis(1)))]).unwrap();
    let line = line.run();
    // Sent at 1, 3, 5 and 7 ms: the second and third would arrive at 4 and 6 ms, but the first arrives at 11 ms.
    assert_eq!((line.numbers(), line.arrivals()), (vec![0, 1, 2, 3], vec![11_000; 4]));
}

#[test]
fn a_change_of_loss_holds_from_its_moment_on() {
    let mut line = line(link(QueueConfig::packets(50)), paced(6, 1000));
    let changes = vec![
        (us(2000), LinkChange::Loss(LossModel::Bernoulli(1.0))),
        (us(4000), LinkChange::Loss(LossModel::Trace(LossTrace::new().lose("flow-1", [6])))),
    ];
    line.world.add_schedule(line.link, changes).unwrap();
    assert_eq!(line.run().numbers(), [0, 1, 4]);
}

// Faults

fn faulty(faults: Faults) -> Line {
    line(link(QueueConfig::unlimited()).with_faults(faults), paced(2000, 1000)).run()
}

#[test]
fn duplicates_come_right_behind() {
    let line = faulty(Faults { duplicate: 0.1, ..Faults::default() });
    let numbers = line.numbers();
    let copies = line.counters().duplicated.packets;
    assert!((150..250).contains(&copies));
    assert_eq!(numbers.len() as u64, 2000 + copies);
    assert!(numbers.is_sorted());
    assert_eq!(line.counters().delivered.packets, 2000 + copies);
}

#[test]
fn held_back_packets_are_overtaken() {
    let line = faulty(Faults { reorder: 0.1, extra_delay: Span::from_micros(2500), ..Faults::default() });
    let mut numbers = line.numbers();
    let overtaken = numbers.windows(2).filter(|w| w[0] > w[1]).count();
    assert!(overtaken > 100);
    numbers.sort_unstable();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
    for ((time, _), number) in line.received().iter().zip(line.numbers()) {
        let late = time / 1000 - (11_000 + u64::from(number) * 1000);
        assert!(late == 0 || late == 2500);
    }
}

#[test]
fn corruption_flips_one_bit() {
    let line = faulty(Faults { corrupt: 0.2, ..Faults::default() });
    let mut hit = 0;
    for (number, (_, bytes)) in (0_u32..).zip(line.received()) {
        let mut expected = number.to_be_bytes().to_vec();
        expected.resize(980, 0);
        let flipped: u32 = bytes.iter().zip(&expected).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert!(flipped <= 1);
        hit += flipped;
    }
    assert!((300..500).contains(&hit));
}

#[test]
fn one_fault_does_not_disturb_another() {
    let duplicated = |line: Line| {
        let mut numbers = line.numbers();
        numbers.sort_unstable();
        numbers.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect::<Vec<_>>()
    };
    let one = Faults { duplicate: 0.1, ..Faults::default() };
    let two = Faults { reorder: 0.2, extra_delay: Span::from_millis(3), ..one };
    assert_eq!(duplicated(faulty(one)), duplicated(faulty(two)));
}

// Traffic

#[test]
fn cross_traffic_shares_the_link_and_vanishes() {
    let mut line = line(link(QueueConfig::unlimited()), paced(100, 1000));
    let kind = TrafficKind::Cbr { rate: Rate::from_bps(4 * MBIT), jitter: 0.0 };
    let config = TrafficConfig::new("cross", kind, WireBytes::new(1500)).with_fragment(WireBytes::new(1000));
    let cross = line.world.add_traffic(config.stopping_at(us(90_000)), &[line.link]).unwrap();
    let line = line.run();
    let counters = line.world.link(line.link).counters(cross);
    assert_eq!(counters.delivered.packets, 60);
    assert_eq!(counters.delivered.bytes, WireBytes::new(45_000));
    assert_eq!(line.world.packets_on_the_way(), 0);
    let total = line.world.link(line.link).total_counters();
    assert_eq!(total.entered.packets, 160);
    // Timers precede traffic: the flow's first packet is ahead of the source's.
    assert_eq!(line.arrivals()[..2], [11_000, 13_500]);
}

/// Observer that measures the time of packets from the entry into a link to its far end.
#[derive(Default)]
struct Sojourn {
    entered: VecDeque<Time>,
    total: Span,
    packets: u64,
}

impl Tap for Sojourn {
    fn packet(&mut self, now: Time, place: Place<'_>, event: PacketEvent, _: PacketView<'_>) {
        if !matches!(place, Place::Link { name: "link", .. }) {
            return;
        }
        match event {
            PacketEvent::Sent => self.entered.push_back(now),
            PacketEvent::Delivered => {
                self.total += now.since(self.entered.pop_front().unwrap());
                self.packets += 1;
            }
            _ => panic!("nothing is dropped"),
        }
    }
}

#[test]
fn waiting_times_agree_with_the_theory_of_the_m_d_1_queue() {
    for load in [0.3, 0.5, 0.8] {
        let mut world = World::new(Seeds::new(4, 0));
        let link =
            world.add_link(LinkConfig::new("link", RATE, Span::ZERO, QueueConfig::unlimited())).unwrap();
        let rate = Rate::from_bps((8e6 * load) as u64);
        let kind = TrafficKind::Poisson { rate };
        world.add_traffic(TrafficConfig::new("poisson", kind, WireBytes::new(1000)), &[link]).unwrap();
        world.set_tap(Box::<Sojourn>::default());
        world.run_until(us(1_000_000_000));
        let tap = world.take_tap::<Sojourn>().unwrap();
        let waiting = tap.total.as_millis_f64() / tap.packets as f64 - 1.0;
        let theory = load / (2.0 * (1.0 - load));
        assert!((waiting / theory - 1.0).abs() < 0.02, "at load {load}: {waiting} for {theory}");
    }
}

// Execution of hosts

/// Host with work at a given time, which it returns as its deadline.
struct Lazy {
    deadline: Option<Time>,
    calls: Vec<Time>,
    step: Span,
}

impl Host for Lazy {
    fn handle_datagram(&mut self, _: Time, _: Datagram<'_>) {}

    fn handle_timeout(&mut self, now: Time) {
        self.calls.push(now);
        self.deadline = self.deadline.map(|deadline| deadline + self.step);
    }

    fn poll_transmit(&mut self, _: Time, _: &mut PacketBuffer) -> Option<Envelope> {
        None
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.deadline
    }
}

#[test]
fn a_host_is_woken_at_its_deadline_and_only_then() {
    let mut world = World::new(Seeds::new(1, 0));
    let lazy = Lazy { deadline: Some(us(100)), calls: Vec::new(), step: Span::from_micros(100) };
    let id = world.add_host(Box::new(lazy), &[here()]).unwrap();
    world.run_until(us(350));
    assert_eq!(world.host::<Lazy>(id).calls, [us(100), us(200), us(300)]);
    // Later, earlier, and cancelled: at most one event is pending.
    for (deadline, calls) in [(Some(us(900)), 3), (Some(us(360)), 4), (None, 4)] {
        world.with_host(id, |host: &mut Lazy, _| host.deadline = deadline);
        assert!(world.pending_events() <= 1);
        world.run_until(world.now() + Span::from_micros(20));
        assert_eq!(world.host::<Lazy>(id).calls.len(), calls);
    }
    assert_eq!((world.next_event(), world.now()), (None, us(410)));
}

#[test]
fn deadlines_that_have_come_are_handled_at_once() {
    let mut world = World::new(Seeds::new(1, 0));
    let lazy = Lazy { deadline: Some(us(0)), calls: Vec::new(), step: Span::from_micros(1) };
    let id = world.add_host(Box::new(lazy), &[here()]).unwrap();
    world.run_until(us(500));
    world.with_host(id, |host: &mut Lazy, now| {
        assert_eq!(now, us(500));
        host.deadline = Some(us(100));
    });
    let late = world.host::<Lazy>(id).calls.iter().filter(|time| **time == us(500)).count();
    assert_eq!(late, 402);
}

#[test]
#[should_panic(expected = "is still not after")]
fn a_host_that_never_moves_its_deadline_is_a_bug() {
    let mut world = World::new(Seeds::new(1, 0));
    let stuck = Lazy { deadline: Some(us(1)), calls: Vec::new(), step: Span::ZERO };
    world.add_host(Box::new(stuck), &[here()]).unwrap();
    world.run_until(us(2));
}

#[test]
fn packets_without_a_route_are_counted() {
    let mut line = line(link(QueueConfig::packets(5)), []);
    let nowhere = Envelope::plain(here(), [10, 9, 9, 9].into());
    line.world.with_host(HostId(0), |host: &mut Script, now| host.sends.push_back((now, nowhere, 100)));
    assert_eq!((line.world.unroutable(), line.world.packets_on_the_way()), (1, 0));
}

// Complete worlds

/// Returns a world with two lossy links in one direction and one back, with cross traffic, faults, outages and three hosts.
fn busy_world(seed: u64) -> World {
    let mut world = World::new(Seeds::new(seed, 0));
    world.add_host(Box::new(script(paced(5000, 300))), &[here()]).unwrap();
    world.add_host(Box::new(Script::default()), &[there()]).unwrap();
    let faults = Faults { duplicate: 0.01, reorder: 0.02, extra_delay: Span::from_millis(4), corrupt: 0.01 };
    let chain = LossModel::GilbertElliott(GilbertElliott::simple(0.01, 0.4));
    let first = link(QueueConfig::packets(20)).with_loss(chain, LossPlace::AfterQueue).with_faults(faults);
    let distribution = JitterDistribution::Uniform(Span::from_millis(1));
    let first = first.with_jitter(Some(Jitter { distribution, order: JitterOrder::Free }));
    let first = world.add_link(first).unwrap();
    let slow =
        LinkConfig::new("slow", Rate::from_bps(7_777_777), DELAY, QueueConfig::time(Span::from_millis(30)));
    let policer = Policer { rate: Rate::from_bps(7_000_000), burst: WireBytes::new(60_000) };
    let aggregation = Aggregation { period: Span::from_millis(2), most_packets: Some(10) };
    let slow = slow.with_policer(Some(policer)).with_aggregation(Some(aggregation));
    let second = world.add_link(slow.with_loss(LossModel::Bernoulli(0.02), LossPlace::BeforeQueue)).unwrap();
    world.add_route(here(), there(), &[first, second], Some("flow-1")).unwrap();
    let changes = vec![(us(300_000), LinkChange::Down), (us(400_000), LinkChange::Up)];
    world.add_schedule(second, changes).unwrap();
    let pareto = TrafficKind::ParetoOnOff {
        rate: Rate::from_bps(3 * MBIT),
        burst: Span::from_millis(50),
        idle: Span::from_millis(50),
        shape: 1.5,
    };
    world.add_traffic(TrafficConfig::new("pareto", pareto, WireBytes::new(500)), &[second]).unwrap();
    let cbr = TrafficKind::Cbr { rate: Rate::from_bps(MBIT), jitter: 0.5 };
    world.add_traffic(TrafficConfig::new("cbr", cbr, WireBytes::new(700)), &[first, second]).unwrap();
    world.enable_digest();
    world
}

#[test]
fn equal_worlds_run_equally() {
    let digest = |seed| {
        let mut world = busy_world(seed);
        world.run_until(us(3_000_000));
        assert!(world.handled_events() > 10_000);
        world.digest().unwrap()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn steps_and_runs_are_the_same() {
    let (mut stepped, mut run) = (busy_world(3), busy_world(3));
    while stepped.next_event().is_some_and(|time| time <= us(500_000)) {
        assert!(stepped.step());
    }
    run.run_until(us(500_000));
    assert_eq!(stepped.digest(), run.digest());
}

#[test]
fn the_event_queue_stays_as_small_as_the_network() {
    let mut world = busy_world(1);
    let most = world.links.len() * 2 + world.hosts.len() + world.traffic.len() + world.schedules.len();
    while world.now() < us(2_000_000) && world.step() {
        assert!(world.pending_events() <= most);
    }
}

#[test]
fn no_packet_is_unaccounted_for() {
    let mut world = busy_world(1);
    for end in 1..40 {
        world.run_until(us(end * 50_000));
        let mut on_links = 0;
        for (_, link) in world.links() {
            let c = link.total_counters();
            let gone = [c.delivered, c.lost, c.policed, c.overflowed, c.outage];
            let gone = gone.map(|tally| tally.packets).iter().sum::<u64>();
            let inside =
                link.waiting_packets() + u64::from(link.in_service().is_some()) + link.propagating_packets();
            assert_eq!(c.entered.packets + c.duplicated.packets, gone + inside);
            on_links += inside;
        }
        assert_eq!(world.packets_on_the_way() as u64, on_links);
    }
    let all = world.link(LinkId(1)).total_counters();
    assert!(all.outage.packets > 0 && all.lost.packets > 0 && all.overflowed.packets > 0);
    assert!(all.policed.packets > 0);
}

#[test]
fn added_part_does_not_affect_other_parts() {
    let arrivals = |extra: bool| {
        let mut world = busy_world(1);
        if extra {
            let link = LinkConfig::new("elsewhere", RATE, DELAY, QueueConfig::packets(5));
            let link =
                world.add_link(link.with_loss(LossModel::Bernoulli(0.5), LossPlace::AfterQueue)).unwrap();
            let kind = TrafficKind::Poisson { rate: RATE };
            world.add_traffic(TrafficConfig::new("noise", kind, WireBytes::new(100)), &[link]).unwrap();
            world.add_host(Box::new(Script::default()), &[[10, 0, 0, 3].into()]).unwrap();
        }
        world.run_until(us(3_000_000));
        world.host::<Script>(HostId(1)).arrivals.clone()
    };
    assert_eq!(arrivals(false), arrivals(true));
}

#[test]
fn a_tap_sees_every_kind_of_event_and_changes_none() {
    #[derive(Default)]
    struct Count(BTreeMap<&'static str, u64>);
    impl Tap for Count {
        fn packet(&mut self, _: Time, place: Place<'_>, event: PacketEvent, packet: PacketView<'_>) {
            let key = match (place, event) {
                (Place::Host(_), PacketEvent::Sent) => "host sent",
                (Place::Host(_), PacketEvent::Delivered) => "host delivered",
                (_, PacketEvent::Sent) => "link sent",
                (_, PacketEvent::Delivered) => "link delivered",
                (_, PacketEvent::DroppedLoss) => "lost",
                (_, PacketEvent::DroppedPolicer) => "policed",
                (_, PacketEvent::DroppedQueue) => "overflowed",
                (_, PacketEvent::DroppedOutage) => "outage",
                (_, PacketEvent::Unroutable) => "unroutable",
            };
            assert!(packet.source.is_some());
            *self.0.entry(key).or_default() += 1;
        }
    }
    let (mut watched, mut unwatched) = (busy_world(1), busy_world(1));
    watched.set_tap(Box::<Count>::default());
    watched.run_until(us(2_000_000));
    unwatched.run_until(us(2_000_000));
    assert_eq!(watched.digest(), unwatched.digest());
    assert!(watched.take_tap::<Sojourn>().is_none());
    let seen = watched.take_tap::<Count>().unwrap().0;
    let mut sum = Counters::default();
    for (_, link) in watched.links() {
        let c = link.total_counters();
        sum.entered.packets += c.entered.packets;
        sum.delivered.packets += c.delivered.packets;
        sum.lost.packets += c.lost.packets;
        sum.policed.packets += c.policed.packets;
        sum.overflowed.packets += c.overflowed.packets;
        sum.outage.packets += c.outage.packets;
    }
    assert_eq!(seen["host sent"], 5000);
    assert_eq!(seen["host delivered"], watched.host::<Script>(HostId(1)).arrivals.len() as u64);
    assert_eq!(seen["link sent"], sum.entered.packets);
    assert_eq!(seen["link delivered"], sum.delivered.packets);
    assert_eq!(seen["lost"], sum.lost.packets);
    assert_eq!(seen["policed"], sum.policed.packets);
    assert_eq!(seen["overflowed"], sum.overflowed.packets);
    assert_eq!(seen["outage"], sum.outage.packets);
}

#[test]
fn tap_that_ignores_links_gets_hosts_and_drops() {
    #[derive(Default)]
    struct Seen(Vec<String>);
    impl Tap for Seen {
        fn packet(&mut self, _: Time, place: Place<'_>, event: PacketEvent, _: PacketView<'_>) {
            let place = if matches!(place, Place::Host(_)) { "host" } else { "link" };
            let seen = format!("{place} {event:?}");
            if !self.0.contains(&seen) {
                self.0.push(seen);
            }
        }
        fn follows_links(&self) -> bool {
            false
        }
    }
    let mut world = busy_world(1);
    world.set_tap(Box::<Seen>::default());
    world.run_until(us(2_000_000));
    let mut seen = world.take_tap::<Seen>().unwrap().0;
    seen.sort();
    assert_eq!(seen[..2], ["host Delivered", "host Sent"]);
    assert!(seen[2..].iter().all(|event| event.starts_with("link Dropped")), "{seen:?}");
    assert!(seen.len() > 4);
}

#[test]
fn mistakes_in_a_description_are_named() {
    let mut line = line(link(QueueConfig::packets(5)), []);
    let world = &mut line.world;
    let config = || link(QueueConfig::packets(5));
    assert_eq!(world.add_link(config()), Err(ConfigError::DuplicateName("link".into())));
    let named = |config: LinkConfig| LinkConfig { name: "new".into(), ..config };
    let lossy = named(config()).with_loss(LossModel::Bernoulli(1.5), LossPlace::AfterQueue);
    let error = world.add_link(lossy).unwrap_err();
    assert_eq!(error.to_string(), "loss is 1.5, which is not a probability");
    let still = LinkConfig { rate: Rate::from_bps(0), ..named(config()) };
    assert_eq!(world.add_link(still).unwrap_err().to_string(), "rate must be more than zero");
    let zero = LinkChange::Rate(Rate::from_bps(0));
    assert!(world.change_link(line.link, &zero).is_err());
    assert!(world.add_schedule(line.link, vec![(us(1), zero)]).is_err());
    let host = || Box::new(Script::default());
    assert_eq!(world.add_host(host(), &[here()]), Err(ConfigError::DuplicateAddress(here())));
    let new: Address = [10, 0, 0, 9].into();
    assert_eq!(world.add_host(host(), &[new, new]), Err(ConfigError::DuplicateAddress(new)));
    assert_eq!(world.add_route(here(), new, &[line.link], None), Err(ConfigError::UnknownAddress(new)));
    let again = world.add_route(here(), there(), &[line.link], None);
    assert_eq!(again, Err(ConfigError::DuplicateRoute(here(), there())));
    assert_eq!(world.add_route(there(), here(), &[], Some("x")), Err(ConfigError::NoLinks("x".into())));
    let kind = TrafficKind::Poisson { rate: RATE };
    let traffic = |name: &str| TrafficConfig::new(name, kind, WireBytes::new(100));
    assert_eq!(
        world.add_traffic(traffic("flow-1"), &[line.link]),
        Err(ConfigError::DuplicateName("flow-1".into()))
    );
    world.add_traffic(traffic("cross"), &[line.link]).unwrap();
    let taken = world.add_route(there(), here(), &[line.link], Some("cross"));
    assert_eq!(taken, Err(ConfigError::DuplicateName("cross".into())));
}
