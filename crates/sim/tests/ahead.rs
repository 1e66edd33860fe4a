//! Worlds whose links are computed ahead give the results of worlds with events, to the nanosecond.

use std::collections::VecDeque;

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Address, CapacityTrace, Counters, Datagram, Envelope, Host, HostId, LinkChange, LinkConfig, LinkId,
    LossModel, LossPlace, Playback, Policer, QueueConfig, Seeds, Series, Stream, TrafficConfig, TrafficKind,
    World,
};

const DATA: u8 = 1;
const ACK: u8 = 2;

/// Host that sends bursts at given times, acknowledges arrivals, and sends more for each acknowledgement, as a transport protocol does.
struct Node {
    ways: Vec<Envelope>,
    bursts: VecDeque<(Time, usize)>,
    outbox: VecDeque<(usize, u8, usize)>,
    arrivals: Vec<(Time, usize, u8)>,
    sizes: Stream,
    /// Packets that acknowledgements may still trigger.
    budget: u32,
}

impl Node {
    fn data(&mut self, way: usize) {
        // Few sizes, so that times coincide.
        let len = [1480, 1480, 730, 100][self.sizes.below(4) as usize];
        self.outbox.push_back((way % self.ways.len(), DATA, len));
    }
}

impl Host for Node {
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>) {
        let envelope = Envelope::plain(datagram.destination, datagram.source);
        let way = self.ways.iter().position(|way| *way == envelope).unwrap();
        self.arrivals.push((now, way, datagram.payload[0]));
        if datagram.payload[0] == DATA {
            self.outbox.push_back((way, ACK, 28));
        } else if self.budget > 0 {
            self.budget -= 1;
            let more = self.sizes.below(3) as usize;
            (0..more).for_each(|n| self.data(way + n));
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some((_, packets)) = self.bursts.pop_front_if(|(at, _)| *at <= now) {
            (0..packets).for_each(|n| self.data(n));
        }
    }

    fn poll_transmit(&mut self, _: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        let (way, kind, len) = self.outbox.pop_front()?;
        buf.extend_from_slice(&vec![0; len]);
        buf[0] = kind;
        Some(self.ways[way])
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.bursts.front().map(|(at, _)| *at)
    }
}

fn address(path: u8, side: u8) -> Address {
    [10, 0, path, side].into()
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Returns a pair of hosts on some paths of few rates and delays, so that many packets arrive in one nanosecond, with or without
/// traffic.
fn world(seed: u64, traffic: bool) -> (World, [HostId; 2], Vec<LinkId>) {
    let mut draw = Seeds::new(seed, 0).stream(&["draw"]);
    let mut world = World::new(Seeds::new(seed, 1));
    let paths = 1 + draw.below(3) as u8;
    let hosts = [0_u8, 1].map(|side| {
        let ways = (0..paths).map(|p| Envelope::plain(address(p, side), address(p, 1 - side))).collect();
        let bursts =
            (0..draw.below(20)).map(|n| (Time::ZERO + ms(40 * n), draw.below(30) as usize)).collect();
        let sizes = Seeds::new(seed, 2).stream(&["sizes", &side.to_string()]);
        let node = Node { ways, bursts, outbox: VecDeque::new(), arrivals: Vec::new(), sizes, budget: 2_000 };
        let addresses: Vec<_> = (0..paths).map(|p| address(p, side)).collect();
        world.add_host(Box::new(node), &addresses).unwrap()
    });
    let mut links = Vec::new();
    for path in 0..paths {
        for side in [0, 1] {
            let link = world.add_link(link(&mut draw, path, side)).unwrap();
            links.push(link);
            let shared = links[draw.below(links.len() as u64) as usize];
            let route = if draw.chance(0.2) && shared != link { vec![link, shared] } else { vec![link] };
            world.add_route(address(path, side), address(path, 1 - side), &route, Some("flow")).unwrap();
            if traffic && draw.chance(0.7) {
                // With two sources on a link, each waits for its turn.
                for number in 0..=draw.below(2) {
                    let rate = Rate::from_bps(1_000_000);
                    let kind = if draw.chance(0.5) {
                        TrafficKind::Cbr { rate, jitter: 0.5 }
                    } else {
                        TrafficKind::Poisson { rate }
                    };
                    let name = format!("cross {path} {side} {number}");
                    let config = TrafficConfig::new(name, kind, WireBytes::new(500));
                    world.add_traffic(config, &[link]).unwrap();
                }
            }
        }
    }
    (world, hosts, links)
}

fn link(draw: &mut Stream, path: u8, side: u8) -> LinkConfig {
    let rate = Rate::from_bps([10_000_000, 10_000_000, 5_000_000][draw.below(3) as usize]);
    let delay = [ms(6), ms(6), ms(12), Span::from_micros(300)][draw.below(4) as usize];
    let queue = [QueueConfig::packets(10), QueueConfig::ns2_packets(8), QueueConfig::unlimited()];
    let loss = [LossModel::None, LossModel::Bernoulli(0.05)][draw.below(2) as usize].clone();
    let policer =
        draw.chance(0.1).then(|| Policer { rate: Rate::from_bps(3_000_000), burst: WireBytes::new(20_000) });
    let link = LinkConfig::new(format!("{path} {side}"), rate, delay, queue[draw.below(3) as usize])
        .with_loss(loss, LossPlace::BeforeQueue)
        .with_policer(policer);
    let link = if draw.chance(0.4) { link.with_capacity(capacity(draw)) } else { link };
    let link = if draw.chance(0.3) { link.with_series(delays(draw)) } else { link };
    if draw.chance(0.2) { link.with_series(losses(draw)) } else { link }
}

/// Returns delays that rise and fall by less and by more than the time of a packet.
fn delays(draw: &mut Stream) -> Playback<Series> {
    let points = [(0, 6), (10, 12), (25, 3), (26, 7), (27, 6)];
    let change = |(at, delay)| (ms(at), LinkChange::Delay(ms(delay)));
    recorded(points.map(change), draw)
}

fn losses(draw: &mut Stream) -> Playback<Series> {
    let change = |(at, loss)| (ms(at), LinkChange::Loss(LossModel::Bernoulli(loss)));
    recorded([(0, 0.0), (12, 0.3), (30, 0.01)].map(change), draw)
}

/// Returns a repeated or single series of 40 ms.
fn recorded<const N: usize>(points: [(Span, LinkChange); N], draw: &mut Stream) -> Playback<Series> {
    let series = Series::new(points.into(), ms(40)).expect("a valid series");
    let offset = ms(draw.below(40));
    Playback { repeat: draw.chance(0.7), ..Playback::repeated(series) }.starting_at(offset)
}

/// Returns one of few traces, so that packets of several links depart in the same nanosecond.
fn capacity(draw: &mut Stream) -> Playback<CapacityTrace> {
    let mbit = Rate::from_bps(1_000_000);
    let trace = match draw.below(3) {
        0 => CapacityTrace::from_opportunities([1, 2, 2, 3, 5]),
        1 => CapacityTrace::from_opportunities((0..40).chain([70; 30])),
        _ => CapacityTrace::from_rates([(Span::ZERO, mbit), (ms(30), Rate::from_bps(20_000_000))], ms(60)),
    };
    Playback::repeated(trace.expect("a valid trace")).starting_at(ms(draw.below(4)))
}

/// Observations of hosts, and counters and occupancy of links.
type Seen = (Vec<Vec<(Time, usize, u8)>>, Vec<(Counters, u64, u64, u64, Option<WireBytes>)>, usize);

fn seen((mut world, hosts, links): (World, [HostId; 2], Vec<LinkId>), end: Span) -> (Seen, bool) {
    world.run_until(Time::ZERO + ms(100));
    world.run_until(Time::ZERO + end);
    let state = |link: &LinkId| {
        let link = world.link(*link);
        let on_it = (link.waiting_packets(), link.waiting_bytes().get(), link.propagating_packets());
        (link.total_counters(), on_it.0, on_it.1, on_it.2, link.in_service())
    };
    let arrivals = hosts.iter().map(|host| world.host::<Node>(*host).arrivals.clone()).collect();
    let seen = (arrivals, links.iter().map(state).collect(), world.packets_on_the_way());
    (seen, world.order_is_unknown())
}

fn compare(traffic: bool, worlds: u64) -> (u64, u64) {
    let (mut unknown, mut arrivals) = (0, 0);
    for seed in 0..worlds {
        let end = Span::from_micros(1_000_000 + 137 * seed);
        let (expected, _) = seen(world(seed, traffic), end);
        let mut ahead = world(seed, traffic);
        assert!(ahead.0.compute_ahead(), "{seed}");
        let (found, order_is_unknown) = seen(ahead, end);
        arrivals += found.0.iter().map(|arrivals| arrivals.len() as u64).sum::<u64>();
        unknown += u64::from(order_is_unknown);
        assert!(order_is_unknown || found == expected, "{seed}");
    }
    (unknown, arrivals)
}

#[test]
fn links_computed_ahead_carry_what_links_with_events_carry() {
    let (unknown, arrivals) = compare(false, 400);
    assert_eq!(unknown, 0, "without traffic the order is known");
    assert!(arrivals > 100_000, "{arrivals}");
}

#[test]
fn background_traffic_computed_ahead_meets_hosts_as_with_events() {
    let (unknown, arrivals) = compare(true, 400);
    assert_eq!(unknown, 0, "no two sources send in one nanosecond here");
    assert!(arrivals > 100_000, "{arrivals}");
}

#[test]
fn required_knowledge_is_requested_before_a_link_is_computed_ahead() {
    let mut draw = Seeds::new(1, 0).stream(&["draw"]);
    let refused = |change: &dyn Fn(LinkConfig) -> LinkConfig, traffic: TrafficKind| {
        let mut world = World::new(Seeds::new(1, 0));
        let plain = LinkConfig::new("link", Rate::from_bps(1_000_000), ms(1), QueueConfig::unlimited());
        let link = world.add_link(change(plain)).unwrap();
        world.add_traffic(TrafficConfig::new("cross", traffic, WireBytes::new(500)), &[link]).unwrap();
        !world.compute_ahead()
    };
    let random = TrafficKind::Poisson { rate: Rate::from_bps(500_000) };
    let behind = LossModel::Bernoulli(0.1);
    assert!(!refused(&|link| link, random));
    assert!(refused(&|link| link, TrafficKind::Cbr { rate: Rate::from_bps(500_000), jitter: 0.0 }));
    assert!(refused(&|link| link.with_loss(behind.clone(), LossPlace::AfterQueue), random));
    let outages = Series::new(vec![(ms(0), LinkChange::Up), (ms(1), LinkChange::Down)], ms(2)).unwrap();
    assert!(refused(&|link| link.with_series(Playback::repeated(outages.clone())), random));
    let losses = losses(&mut draw);
    assert!(!refused(&|link| link.with_series(losses.clone()), random));
    assert!(refused(
        &|link| link.with_loss(LossModel::None, LossPlace::AfterQueue).with_series(losses.clone()),
        random
    ));
    let jitter = anabranch_sim::Faults { reorder: 0.1, ..Default::default() };
    assert!(refused(&|link| link.with_faults(jitter), random));

    let mut world = world(draw.below(10), true).0;
    world.enable_digest();
    assert!(!world.compute_ahead());
}

#[test]
#[should_panic(expected = "accepts no more parts")]
fn a_world_that_is_computed_ahead_takes_no_more_parts() {
    let mut world = world(1, false).0;
    assert!(world.compute_ahead());
    let link = LinkConfig::new("late", Rate::from_bps(1), ms(1), QueueConfig::unlimited());
    drop(world.add_link(link));
}
