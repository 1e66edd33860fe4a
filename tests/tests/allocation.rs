//! A transfer in its steady state allocates nothing.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod rig;

use std::alloc::System;
use std::net::IpAddr;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, SendOptions,
};
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use anabranch_sim::{
    Application, HostId, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World,
};
use bytes::Bytes;
use rig::{PORT, address, association, at, endpoint};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// User bytes that wait at the sender.
const BACKLOG: u64 = 500_000;

/// Application that sends one prepared message repeatedly.
struct Source {
    connect: Option<(Vec<(IpAddr, IpAddr)>, AssociationConfig)>,
    id: Option<AssociationId>,
    message: Bytes,
}

impl Application for Source {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some((pairs, config)) = self.connect.take() {
            self.id = Some(endpoint.connect(now, PORT, &pairs, config).expect("it can be opened"));
        }
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        while association.queued_bytes() < BACKLOG {
            association.send(self.message.clone(), SendOptions::default()).expect("it takes everything");
        }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, _: AssociationId, event: &AssociationEvent) {
        assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}

/// Application that reads all data into one buffer.
#[derive(Default)]
struct Drain {
    id: Option<AssociationId>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Application for Drain {
    fn step(&mut self, _: Time, endpoint: &mut Endpoint) {
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        while let Some(piece) = association.recv(&mut self.buffer) {
            self.bytes += piece.bytes as u64;
            self.buffer.clear();
        }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        self.id = Some(id);
        assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}

/// Form of the packets between two hosts.
#[derive(Clone, Copy, Debug)]
enum Form {
    Bytes,
    /// Packets with DATA are described where possible.
    Described,
}

fn host(world: &World, node: u8, paths: u8, config: &AssociationConfig, form: Form) -> Endpoint {
    let addresses = (0..paths).map(|path| address(path, node)).collect();
    let seed = world.seeds().entropy(&["node", &node.to_string()]);
    let endpoint = Endpoint::new(Time::ZERO, endpoint(addresses, config.clone()), seed);
    match form {
        Form::Bytes => endpoint,
        Form::Described => endpoint.without_checksums().without_contents().with_described_packets(),
    }
}

/// Returns a world in which one host sends to another without end, and the receiving host.
fn bulk(scheme: &str, paths: u8, loss: f64, message: usize, form: Form) -> (World, HostId) {
    let config = association(scheme);
    let mut world = World::new(Seeds::new(1, 0));
    let pairs = (0..paths).map(|path| (address(path, 1), address(path, 2))).collect();
    let source =
        Source { connect: Some((pairs, config.clone())), id: None, message: vec![7; message].into() };
    let here: Vec<_> = (0..paths).map(|path| address(path, 1)).collect();
    let there: Vec<_> = (0..paths).map(|path| address(path, 2)).collect();
    let from = SctpHost::new(host(&world, 1, paths, &config, form), Encapsulation::None, source);
    let to = SctpHost::new(host(&world, 2, paths, &config, form), Encapsulation::None, Drain::default());
    world.add_host(Box::new(from), &here).expect("new addresses");
    let to = world.add_host(Box::new(to), &there).expect("new addresses");
    for (one, other) in here.iter().zip(&there) {
        for (from, to) in [(one, other), (other, one)] {
            let (rate, delay) = (Rate::from_bps(10_000_000), Span::from_millis(20));
            let link = LinkConfig::new(from.to_string(), rate, delay, QueueConfig::packets(50))
                .with_loss(LossModel::Bernoulli(loss), LossPlace::BeforeQueue);
            let link = world.add_link(link).expect("a new name");
            world.add_route(*from, *to, &[link], None).expect("both ends exist");
        }
    }
    (world, to)
}

fn delivered(world: &World, receiver: HostId) -> u64 {
    world.host::<SctpHost<Drain>>(receiver).application.bytes
}

/// All cases are one test, since the harness would run several tests at once and count allocations of the others.
#[test]
fn steady_transfer_allocates_no_memory_per_packet() {
    let cases = [
        ("sctp", 1, 0.0, 1452),
        ("sctp", 1, 0.01, 1452),
        ("sctp", 1, 0.01, 5000),
        ("cmt", 2, 0.0, 1452),
        ("cmt", 2, 0.01, 1452),
        ("cmt", 2, 0.01, 300),
        ("cmt-pf", 2, 0.01, 1452),
    ];
    let presets = PRESETS.iter().filter(|preset| preset.multipath).map(|preset| preset.name.to_owned());
    let cmt = PRESETS.iter().find(|preset| preset.name == "cmt").expect("a preset");
    let added = COMPONENTS.iter().filter(|one| one.fits(cmt)).map(|one| format!("cmt+{}", one.name));
    let every = presets.chain(added).map(|scheme| (scheme, 2, 0.01, 1452, Form::Bytes, false));
    let cases = [Form::Bytes, Form::Described].into_iter().flat_map(|form| {
        cases.map(|(scheme, paths, loss, message)| (scheme.to_owned(), paths, loss, message, form, true))
    });
    for (scheme, paths, loss, message, form, steady) in cases.chain(every) {
        let scheme = scheme.as_str();
        let (mut world, receiver) = bulk(scheme, paths, loss, message, form);
        // This is long enough for every queue, list and buffer to reach its maximum.
        world.run_until(at(100_000));
        let (events, bytes) = (world.handled_events(), delivered(&world, receiver));
        let region = Region::new(GLOBAL);
        world.run_until(at(200_000));
        let change = region.change();
        let (events, bytes) = (world.handled_events() - events, delivered(&world, receiver) - bytes);
        let case = format!(
            "{scheme}, {paths} paths, loss {loss}, {message} B, {form:?}: {events} events, {bytes} B"
        );
        println!("{case}: {change:?}");
        assert!(bytes > 2_000_000, "{case}");
        // Schemes that are not steady may reach an even larger maximum, so their buffers grow again.
        let growth = if steady { 0 } else { events / 1000 };
        assert!(change.allocations as u64 + change.reallocations as u64 <= growth, "{case}: {change:?}");
    }
}
