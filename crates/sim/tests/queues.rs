//! Managed queues on a link: no packet vanishes, runs are repeatable, and ns-3 gives the same results for the same arrivals.

use std::collections::{BTreeSet, VecDeque};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Aggregation, CoDel, Discipline, FqCoDel, Lane, LinkChange, LinkConfig, Pie, QueueConfig, Red, Seeds,
};

/// A byte takes 800 ns.
const RATE: Rate = Rate::from_bps(10_000_000);
const FLOWS: usize = 4;

struct Arrival {
    nanos: u64,
    size: u64,
    flow: u64,
}

/// Returns the arrivals of `tools/ns3/queues.cc`.
fn arrivals() -> Vec<Arrival> {
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut nanos = 0;
    let arrival = |n: u64| {
        nanos += draw(if (n / 2000).is_multiple_of(2) { 1_700_000 } else { 3_000_000 });
        let size = if draw(4) == 0 { 300 } else { 1500 };
        Arrival { nanos, size, flow: draw(6).saturating_sub(2) }
    };
    (0..20_000).map(arrival).collect()
}

/// Result of a discipline for the arrivals.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    delivered: u64,
    dropped: Vec<usize>,
    mean_wait_us: u64,
    bytes: [u64; FLOWS],
}

fn lane(queue: QueueConfig, seed: u64) -> Lane {
    let config = LinkConfig::new("link", RATE, Span::ZERO, queue);
    Lane::new(config, "flow", Seeds::new(seed, 0), Vec::new()).expect("a valid link")
}

/// Offers the arrivals to a lane whose owners are the flows.
fn run(discipline: Discipline, limit: u64, seed: u64) -> Outcome {
    let mut lane = lane(QueueConfig::packets(limit).with_discipline(discipline), seed);
    let arrivals = arrivals();
    let mut outcome = Outcome::default();
    let mut missing: BTreeSet<usize> = (0..arrivals.len()).collect();
    let mut waited = 0;
    let mut collect = |lane: &mut Lane, now: Time| {
        let mut payload = PacketBuffer::new();
        while let Some(delivery) = lane.poll_deliver(now, &mut payload) {
            let n = u32::from_le_bytes(payload[..4].try_into().expect("a number")) as usize;
            let Arrival { nanos, size, flow } = arrivals[n];
            assert!(missing.remove(&n), "packet {n} arrived twice");
            waited += delivery.at.as_nanos() - 800 * size - nanos;
            outcome.delivered += 1;
            outcome.bytes[flow as usize] += size;
        }
    };
    for (n, arrival) in arrivals.iter().enumerate() {
        let now = Time::from_nanos(arrival.nanos);
        collect(&mut lane, now);
        lane.offer(now, WireBytes::new(arrival.size), arrival.flow as u32, &(n as u32).to_le_bytes());
    }
    collect(&mut lane, Time::ZERO + Span::from_secs(100));
    outcome.mean_wait_us = waited / outcome.delivered / 1000;
    outcome.dropped = missing.into_iter().collect();
    outcome
}

/// Results of ns-3 3.37 (Debian 3.37-2), made by `tools/ns3/queues.cc`.
fn ns3(name: &str) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut is_wanted = false;
    for line in include_str!("ns3.txt").lines() {
        let mut words = line.split(' ');
        let first = words.next().expect("a word");
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
        if first == "drops" {
            if let Some(last) = outcomes.last_mut().filter(|_| is_wanted) {
                last.dropped = numbers.iter().map(|n| *n as usize).collect();
                last.dropped.sort_unstable();
            }
            continue;
        }
        is_wanted = first == name;
        if is_wanted {
            let dropped = (0..numbers[2] as usize).collect();
            let bytes = [numbers[4], numbers[5], numbers[6], numbers[7]];
            outcomes.push(Outcome { delivered: numbers[1], dropped, mean_wait_us: numbers[3], bytes });
        }
    }
    assert!(!outcomes.is_empty(), "{name}");
    outcomes
}

/// CoDel as RFC 8289 writes it down, or as ns-3 approximates it: in units of 1,024 ns, with one step of Newton's method for each inverse
/// square root, and with drops after the end of the interval instead of at it.
struct Transcript {
    approximates: bool,
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    inverse_root: u64,
    queue: VecDeque<(usize, u64, u64)>,
    drops: Vec<usize>,
}

impl Transcript {
    fn ticks(&self, nanos: u64) -> u64 {
        if self.approximates { nanos >> 10 } else { nanos }
    }

    fn do_dequeue(&mut self, now: u64) -> (Option<(usize, u64, u64)>, bool) {
        let head = self.queue.pop_front();
        let bytes: u64 = self.queue.iter().map(|(_, _, size)| size).sum();
        let is_above = |(_, since, _): (usize, u64, u64)| {
            self.ticks(now - since) >= self.ticks(5_000_000) && bytes > 1500
        };
        if !head.is_some_and(is_above) {
            self.first_above = 0;
            return (head, false);
        }
        let now = self.ticks(now);
        if self.first_above == 0 {
            self.first_above = now + self.ticks(100_000_000);
            return (head, false);
        }
        (head, if self.approximates { now > self.first_above } else { now >= self.first_above })
    }

    fn law(&self, from: u64) -> u64 {
        let interval = self.ticks(100_000_000);
        if self.approximates {
            return from + ((interval * (self.inverse_root << 16)) >> 32);
        }
        from + (interval as f64 / (self.count as f64).sqrt()) as u64
    }

    fn newton_step(&mut self) {
        let root = self.inverse_root << 16;
        let square = (root * root) >> 32;
        let value = ((3 << 32) - self.count * square) >> 2;
        self.inverse_root = ((value * root) >> 31) >> 16;
    }

    fn dequeue(&mut self, nanos: u64) -> Option<(usize, u64, u64)> {
        let now = self.ticks(nanos);
        let (mut head, mut ok_to_drop) = self.do_dequeue(nanos);
        if self.dropping {
            self.dropping = ok_to_drop;
            while now >= self.drop_next && self.dropping {
                self.drops.extend(head.map(|(n, ..)| n));
                self.count += 1;
                self.newton_step();
                (head, ok_to_drop) = self.do_dequeue(nanos);
                if ok_to_drop {
                    self.drop_next = self.law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.drops.extend(head.map(|(n, ..)| n));
            (head, _) = self.do_dequeue(nanos);
            self.dropping = true;
            let delta = self.count - self.last_count;
            if delta > 1 && now < self.drop_next + 16 * self.ticks(100_000_000) {
                self.count = delta;
                self.newton_step();
            } else {
                (self.count, self.inverse_root) = (1, 0xffff);
            }
            self.drop_next = self.law(now);
            self.last_count = self.count;
        }
        head
    }
}

/// Returns the packets that the pseudo-code drops.
fn transcribed_drops(approximates: bool) -> Vec<usize> {
    let mut codel = Transcript {
        approximates,
        first_above: 0,
        drop_next: 0,
        count: 0,
        last_count: 0,
        dropping: false,
        inverse_root: 0xffff,
        queue: VecDeque::new(),
        drops: Vec::new(),
    };
    let mut busy_until = None;
    let mut serve = |codel: &mut Transcript, now: u64, arrival: Option<(usize, u64, u64)>| {
        while let Some(free) = busy_until.filter(|free| *free <= now) {
            busy_until = codel.dequeue(free).map(|(_, _, size)| free + 800 * size);
        }
        codel.queue.extend(arrival);
        if busy_until.is_none() {
            busy_until = codel.dequeue(now).map(|(_, _, size)| now + 800 * size);
        }
    };
    for (n, arrival) in arrivals().iter().enumerate() {
        serve(&mut codel, arrival.nanos, Some((n, arrival.nanos, arrival.size)));
    }
    serve(&mut codel, 100_000_000_000, None);
    codel.drops.sort_unstable();
    codel.drops
}

#[test]
fn codel_drops_the_packets_that_the_pseudo_code_drops() {
    let ours = run(Discipline::CoDel(CoDel::default()), 1000, 1).dropped;
    assert!(ours.len() > 400, "{}", ours.len());
    assert_eq!(ours, transcribed_drops(false));
}

#[test]
fn pseudo_code_with_the_approximations_of_ns3_drops_what_ns3_drops() {
    assert_eq!(transcribed_drops(true), ns3("codel").remove(0).dropped);
}

fn differ_by_at_most(percent: u64, ours: u64, theirs: u64) -> bool {
    ours.abs_diff(theirs) * 100 <= percent * theirs
}

#[test]
fn fq_codel_serves_and_drops_as_ns3_does() {
    let fq = Discipline::FqCoDel(FqCoDel::default());
    for (name, limit) in [("fq-codel-1000", 1000), ("fq-codel-60", 60)] {
        let (ours, theirs) = (run(fq, limit, 1), ns3(name).remove(0));
        // Flows below their share lose nothing. The other one loses packets at slightly different times, because of the
        // approximated square root of ns-3.
        assert_eq!(ours.bytes[1..], theirs.bytes[1..], "{name}");
        assert!(differ_by_at_most(1, ours.bytes[0], theirs.bytes[0]), "{name}");
        assert!(differ_by_at_most(4, ours.dropped.len() as u64, theirs.dropped.len() as u64), "{name}");
        assert!(differ_by_at_most(1, ours.mean_wait_us, theirs.mean_wait_us), "{name}");
    }
}

#[test]
fn pie_and_red_drop_as_much_as_ns3_and_keep_the_same_delay() {
    for (name, discipline) in
        [("pie", Discipline::Pie(Pie::default())), ("red", Discipline::Red(Red::default()))]
    {
        let theirs = ns3(name);
        let ours: Vec<_> = (1..=theirs.len() as u64).map(|seed| run(discipline, 1000, seed)).collect();
        let sum = |outcomes: &[Outcome], of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
        for of in [
            (|outcome| outcome.dropped.len() as u64) as fn(&Outcome) -> u64,
            |outcome| outcome.mean_wait_us,
            |outcome| outcome.bytes[0],
        ] {
            let (ours, theirs) = (sum(&ours, of), sum(&theirs, of));
            assert!(differ_by_at_most(1, ours, theirs), "{name}: {ours} {theirs}");
        }
    }
}

fn disciplines() -> [Discipline; 5] {
    [
        Discipline::DropTail,
        Discipline::Red(Red::default()),
        Discipline::CoDel(CoDel::default()),
        Discipline::FqCoDel(FqCoDel { flows: 3, ..FqCoDel::default() }),
        Discipline::Pie(Pie::default()),
    ]
}

/// Offers packets of random sizes at random times to a link that changes, and returns the numbers of those that arrive.
fn run_at_random(discipline: Discipline, seed: u64) -> Vec<(Time, u32)> {
    let mut draw = Seeds::new(seed, 1).stream(&["draw"]);
    let limit =
        [QueueConfig::packets(30), QueueConfig::bytes(WireBytes::new(20_000)), QueueConfig::unlimited()]
            [draw.below(3) as usize];
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let changes = vec![
        (at(300), LinkChange::Rate(Rate::from_bps(2_000_000))),
        (at(600), LinkChange::Down),
        (at(650), LinkChange::Up),
        (at(700), LinkChange::Rate(RATE)),
    ];
    let aggregation = Aggregation { period: Span::from_millis(3), most_packets: None };
    let config = LinkConfig::new("link", RATE, Span::from_millis(5), limit.with_discipline(discipline))
        .with_aggregation(draw.chance(0.3).then_some(aggregation));
    let mut lane = Lane::new(config, "flow", Seeds::new(seed, 0), changes).expect("a valid link");
    let mut now = Time::ZERO;
    let mut arrived = Vec::new();
    let mut collect = |lane: &mut Lane, now| {
        let mut payload = PacketBuffer::new();
        while let Some(delivery) = lane.poll_deliver(now, &mut payload) {
            arrived.push((delivery.at, u32::from_le_bytes(payload[..4].try_into().expect("a number"))));
        }
    };
    for n in 0..1000_u32 {
        now += Span::from_nanos(draw.below(2_200_000));
        collect(&mut lane, now);
        let size = WireBytes::new(40 + draw.below(1461));
        lane.offer(now, size, draw.below(5) as u32, &n.to_le_bytes());
        let counters = lane.counters();
        let gone = counters.delivered.packets + counters.overflowed.packets + counters.outage.packets;
        assert_eq!(gone + lane.packets_on_the_way() as u64, u64::from(n) + 1, "{discipline:?}");
        assert!(counters.managed.packets <= counters.overflowed.packets);
        let held = lane.link().waiting_bytes();
        assert!(limit != QueueConfig::bytes(WireBytes::new(20_000)) || held.get() <= 20_000);
    }
    collect(&mut lane, Time::ZERO + Span::from_secs(1000));
    assert_eq!(lane.packets_on_the_way(), 0, "{discipline:?}");
    assert_eq!((lane.link().waiting_packets(), lane.link().waiting_bytes()), (0, WireBytes::ZERO));
    arrived
}

#[test]
fn no_packet_vanishes_or_arrives_twice_in_a_managed_queue() {
    for discipline in disciplines() {
        for seed in 0..40 {
            let arrived = run_at_random(discipline, seed);
            let mut numbers: Vec<_> = arrived.iter().map(|(_, n)| *n).collect();
            let reorders = matches!(discipline, Discipline::FqCoDel(_));
            assert!(reorders || numbers.is_sorted(), "{discipline:?}");
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), arrived.len(), "{discipline:?}");
            assert_eq!(run_at_random(discipline, seed), arrived, "a run is repeatable");
        }
    }
}

#[test]
fn idle_link_drops_nothing_at_any_limit() {
    for discipline in disciplines() {
        let mut lane = lane(QueueConfig::packets(0).with_discipline(discipline), 1);
        for ms in 0..5000 {
            lane.offer(Time::ZERO + Span::from_millis(2 * ms), WireBytes::new(1500), 0, &[]);
        }
        assert_eq!(lane.counters().overflowed.packets, 0, "{discipline:?}");
    }
}

#[test]
fn link_with_an_impossible_discipline_is_refused() {
    let discipline = Discipline::Red(Red { weight: 2.0, ..Red::default() });
    let queue = QueueConfig::packets(10).with_discipline(discipline);
    assert!(queue.validate().is_err());
    let config = LinkConfig::new("link", RATE, Span::ZERO, queue);
    assert!(Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).is_err());
}
