//! Stream schedulers (RFC 8260 section 3) with every scheme, and the delay of a stream with priority beside bulk data.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::NonZeroU16;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, Reliability, SendOptions,
    StreamChanges, StreamScheduler,
};
use anabranch_schemes::registry::PRESETS;
use anabranch_sim::{Application, HostId, LinkConfig, QueueConfig, SctpHost, Seeds, World};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Link, Side};
use bytes::Bytes;

use crate::rig::{PORT, address, association, at, endpoint};
use crate::streams::rig::{arrive, reset};

fn priority(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a priority above zero")
}

/// Returns the reliability of a message, of which some are abandoned.
fn limit(number: u32) -> Reliability {
    match number % 4 {
        0 | 1 => Reliability::Full,
        2 => Reliability::MaxRetransmissions(0),
        _ => Reliability::Lifetime(Span::from_millis(u64::from(number % 7) * 40)),
    }
}

#[test]
fn every_scheme_delivers_with_every_scheduler_on_a_bad_network() {
    for (scheme, preset) in PRESETS.iter().enumerate() {
        // Each scheme runs with two schedulers, and each scheduler with many schemes.
        for scheduler in [0, 3].map(|offset| StreamScheduler::ALL[(scheme + offset) % 6]) {
            let setup = Setup::new(2, preset.name, "rfc9260").with(|config| {
                config.stream_scheduler = scheduler;
                config.stream_changes = Some(StreamChanges { max_streams: 8 });
            });
            let mut duo = Duo::connected(Setup { seed: scheme as u64, ..setup });
            for pair in 0..2 {
                let link = duo.link(pair);
                *link = Link { loss: 60, duplicate: 60, reorder: 200, ..*link };
            }
            for number in 0..120_u32 {
                let size = 50 + (number as usize * 613) % 6_000;
                let stream = (number % 4) as u16;
                let sent = duo.send_limited(Side::A, size, stream, number % 5 == 0, limit(number));
                sent.expect("there is an association").expect("the send buffer is unlimited");
                match number {
                    20 => {
                        let association = duo.nodes[Side::A.index()].try_association_mut();
                        let set = association.expect("a peer").set_stream_priority(3, priority(1000));
                        set.expect("the stream exists");
                    }
                    60 => reset(&mut duo, Side::A, &[1, 3]),
                    _ => {}
                }
                duo.run(Span::from_millis(3));
            }
            arrive(&mut duo);
            let idle = |duo: &Duo| duo.nodes[Side::A.index()].association().buffered_bytes() == 0;
            assert!(duo.run_until(Span::from_secs(300), idle), "{}, {scheduler:?}", preset.name);
        }
    }
}

/// Streams of the application with priority and of the one with bulk data.
const CALL: u16 = 0;
const BULK: u16 = 1;
/// Interval and length of the messages with priority.
const INTERVAL: Span = Span::from_millis(20);
const CALL_BYTES: usize = 200;
/// Number of messages with priority.
const CALLS: usize = 500;
/// Backlog of bulk data that the application keeps.
const BACKLOG: u64 = 1_000_000;

/// Application that keeps a backlog of bulk data on one stream and sends a message on another at intervals, or that measures the
/// delay of the latter.
struct Caller {
    pairs: Option<Vec<(IpAddr, IpAddr)>>,
    config: AssociationConfig,
    /// Length of a message of the bulk data.
    bulk_message_bytes: usize,
    id: Option<AssociationId>,
    due: VecDeque<Time>,
    /// Delays of the messages that have arrived.
    delays: Vec<Span>,
    bulk_bytes: u64,
}

impl Caller {
    fn new(
        config: AssociationConfig,
        pairs: Option<Vec<(IpAddr, IpAddr)>>,
        bulk_message_bytes: usize,
    ) -> Self {
        // Windows have grown after a second.
        let due = (0..CALLS as u64).map(|number| at(1_000) + INTERVAL.times(number));
        let due = if pairs.is_some() { due.collect() } else { VecDeque::new() };
        Caller { pairs, config, bulk_message_bytes, id: None, due, delays: Vec::new(), bulk_bytes: 0 }
    }

    fn write(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        if !association.is_established() {
            return;
        }
        association.set_stream_priority(CALL, priority(512)).expect("the stream exists");
        let options = |stream| SendOptions { stream, ..SendOptions::default() };
        while let Some(due) = self.due.pop_front_if(|due| *due <= now) {
            let mut bytes = vec![0; CALL_BYTES];
            bytes[..8].copy_from_slice(&due.as_nanos().to_be_bytes());
            let sent = association.send_at(now, Bytes::from(bytes), options(CALL));
            sent.expect("the send buffer is unlimited");
        }
        while association.buffered_bytes() < BACKLOG {
            let sent = association.send_at(now, Bytes::from(vec![0; self.bulk_message_bytes]), options(BULK));
            sent.expect("the send buffer is unlimited");
        }
    }

    fn read(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        let mut bytes = Vec::new();
        while let Some(piece) = association.recv(&mut bytes) {
            if piece.stream == CALL {
                let sent = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
                self.delays.push(now.since(Time::from_nanos(sent)));
            } else {
                self.bulk_bytes += bytes.len() as u64;
            }
            bytes.clear();
        }
    }
}

impl Application for Caller {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(pairs) = self.pairs.take() {
            let opened = endpoint.connect(now, PORT, &pairs, self.config.clone());
            self.id = Some(opened.expect("it can be opened"));
        }
        if self.due.is_empty() { self.read(now, endpoint) } else { self.write(now, endpoint) }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, _: &AssociationEvent) {
        self.id = Some(id);
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.due.front().copied()
    }
}

/// Rate in Mbit/s and one-way delay in ms of two unequal paths.
const PATHS: [(u64, u64); 2] = [(20, 15), (5, 40)];
/// Round-trip time of the slower path without queues.
const ROUND_TRIP: Span = Span::from_millis(80);

fn add_paths(world: &mut World, locals: &[IpAddr], remotes: &[IpAddr]) {
    for (index, (rate, delay)) in PATHS.into_iter().enumerate() {
        for (name, from, to) in [("out", locals, remotes), ("back", remotes, locals)] {
            let (rate, delay) = (Rate::from_bps(rate * 1_000_000), Span::from_millis(delay));
            let config = LinkConfig::new(format!("{name}{index}"), rate, delay, QueueConfig::packets(50));
            let link = world.add_link(config).expect("the name is free");
            world.add_route(from[index], to[index], &[link], None).expect("both ends exist");
        }
    }
}

/// Returns the 99th percentile of the delays of messages with priority, and the user bytes of bulk data in messages of this length.
fn call_beside_bulk(
    scheduler: StreamScheduler,
    interleaving: bool,
    bulk_message_bytes: usize,
) -> (Span, u64) {
    let mut config = association("braid");
    config.stream_scheduler = scheduler;
    config.interleaving = interleaving;
    config.recv_buffer_bytes = 4 << 20;
    let (locals, remotes) = ([address(0, 1), address(1, 1)], [address(0, 2), address(1, 2)]);
    let mut world = World::new(Seeds::new(1, 0));
    let mut add = |addresses: &[IpAddr], pairs: Option<Vec<_>>, name| -> HostId {
        let caller = Caller::new(config.clone(), pairs, bulk_message_bytes);
        let config = endpoint(addresses.to_vec(), config.clone());
        let endpoint = Endpoint::new(Time::ZERO, config, world.seeds().entropy(&[name]));
        let host = SctpHost::new(endpoint, Encapsulation::None, caller);
        world.add_host(Box::new(host), addresses).expect("the addresses are free")
    };
    add(&locals, Some(locals.into_iter().zip(remotes).collect()), "sender");
    let receiver = add(&remotes, None, "receiver");
    add_paths(&mut world, &locals, &remotes);
    world.run_until(at(13_000));
    let caller = &world.host::<SctpHost<Caller>>(receiver).application;
    let mut delays = caller.delays.clone();
    assert!(delays.len() + 20 >= CALLS, "{} of {CALLS} have arrived", delays.len());
    delays.sort_unstable();
    (delays[delays.len() * 99 / 100], caller.bulk_bytes)
}

/// Maximum delay of a message with priority.
const MOST_DELAY: Span = Span::from_millis(ROUND_TRIP.as_nanos() / 1_000_000 + 20);

#[test]
fn priority_beside_bulk_waits_less_than_a_round_trip_and_20_ms() {
    let (delay, bulk) = call_beside_bulk(StreamScheduler::Priority, false, 8_000);
    let (without, bulk_without) = call_beside_bulk(StreamScheduler::FirstComeFirstServed, false, 8_000);
    assert!(delay < MOST_DELAY, "{delay:?}");
    assert!(without > delay.times(2), "{without:?}");
    assert!(bulk * 100 > bulk_without * 97, "{bulk} of {bulk_without}");
}

#[test]
fn priority_beside_large_messages_waits_as_short_if_they_interleave() {
    let (delay, bulk) = call_beside_bulk(StreamScheduler::Priority, true, 1_000_000);
    let (without, bulk_without) = call_beside_bulk(StreamScheduler::Priority, false, 1_000_000);
    assert!(delay < MOST_DELAY, "{delay:?}");
    assert!(without > delay.times(2), "{without:?}");
    assert!(bulk * 100 > bulk_without * 97, "{bulk} of {bulk_without}");
}
