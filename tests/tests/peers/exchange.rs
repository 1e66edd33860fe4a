//! One transfer in each direction between this endpoint and another implementation, over links that may lose packets.

use std::net::IpAddr;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::{AssociationConfig, AssociationEvent, Encapsulation, Endpoint};
use anabranch_sim::{
    Envelope, Host, HostId, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World,
};

use crate::rig::exchange::Exchange;
use crate::rig::messages::{Inbox, Message, mixed};
use crate::rig::{address, association, endpoint};

/// User bytes in each direction.
const TOTAL: usize = 1_000_000;
/// Number of streams in use, of the eight that are offered.
const STREAMS: u16 = 6;
/// Maximum duration of the whole exchange.
const LIMIT: Span = Span::from_secs(120);

/// Task of the other endpoint.
pub(crate) struct Task {
    /// `true` if it opens the association, and closes it after everything has arrived.
    pub(crate) connects: bool,
    /// Messages to send.
    pub(crate) messages: Vec<Message>,
    /// Number of messages to receive.
    pub(crate) expected: usize,
    /// Encapsulation of its packets.
    pub(crate) way: Envelope,
}

/// Endpoint of another implementation.
pub(crate) trait Peer: Host {
    /// Returns the received messages.
    fn inbox(&self) -> &Inbox;
    /// Returns `true` if its association was closed gracefully.
    fn is_over(&self) -> bool;
}

/// Transfers in both directions at once, then shuts down from the connecting side; everything must arrive as it was sent.
pub(crate) fn exchange<P: Peer>(make: impl FnOnce(Task) -> P, we_connect: bool, loss: f64, seed: u64) {
    exchange_with(association("sctp"), make, we_connect, loss, seed);
}

/// Transfers as [`exchange`] does, with this configuration.
pub(crate) fn exchange_with<P: Peer>(
    config: AssociationConfig,
    make: impl FnOnce(Task) -> P,
    we_connect: bool,
    loss: f64,
    seed: u64,
) {
    let (here, there) = (address(0, 1), address(0, 2));
    let (mine, theirs) = (mixed(seed, TOTAL, STREAMS), mixed(seed + 1000, TOTAL, STREAMS));
    let mut world = World::new(Seeds::new(seed, 0));
    let ours = Exchange::new(we_connect.then(|| vec![(here, there)]), &mine, theirs.len());
    let ours = ours.with_config(config.clone());
    let config = endpoint(vec![here], config);
    let endpoint = Endpoint::new(Time::ZERO, config, world.seeds().entropy(&["endpoint"]));
    let we = world
        .add_host(Box::new(SctpHost::new(endpoint, Encapsulation::None, ours)), &[here])
        .expect("the address is free");
    let way = Envelope::plain(there, here);
    let task = Task { connects: !we_connect, messages: theirs.clone(), expected: mine.len(), way };
    let they = world.add_host(Box::new(make(task)), &[there]).expect("the address is free");
    add_links(&mut world, here, there, loss);

    let done = |world: &World| {
        let ours = &world.host::<SctpHost<Exchange>>(we).application;
        ours.events.contains(&AssociationEvent::Closed) && world.host::<P>(they).is_over()
    };
    while !done(&world) {
        let went_on = world.step_until(Time::ZERO + LIMIT);
        assert!(went_on, "not over after {LIMIT:?}: {}", report::<P>(&world, we, they));
    }
    world.host::<SctpHost<Exchange>>(we).application.inbox.assert_is(&theirs, "at our side");
    world.host::<P>(they).inbox().assert_is(&mine, "at the peer");
    let discards = world.host::<SctpHost<Exchange>>(we).endpoint.discards();
    assert_eq!(discards.of(anabranch_core::Discard::Malformed), 0, "we understand all that the peer sends");
    println!("done at {:?} with {discards:?}", world.now());
}

fn add_links(world: &mut World, here: IpAddr, there: IpAddr, loss: f64) {
    for (name, from, to) in [("out", here, there), ("back", there, here)] {
        let rate = Rate::from_bps(20_000_000);
        let config = LinkConfig::new(name, rate, Span::from_millis(20), QueueConfig::packets(200))
            .with_loss(LossModel::Bernoulli(loss), LossPlace::BeforeQueue);
        let link = world.add_link(config).expect("the name is free");
        world.add_route(from, to, &[link], None).expect("both ends exist");
    }
}

fn report<P: Peer>(world: &World, we: HostId, they: HostId) -> String {
    let host = world.host::<SctpHost<Exchange>>(we);
    let ours = &host.application;
    let last = &ours.events[ours.events.len().saturating_sub(5)..];
    let statistics = ours.id.and_then(|id| host.endpoint.association(id)).map(|a| a.statistics());
    let peer = world.host::<P>(they);
    format!(
        "we have {} of {} messages, the peer {}, over {}; last events {last:?}; {:?}; {statistics:?}",
        ours.inbox.messages.len(),
        ours.expected,
        peer.inbox().messages.len(),
        peer.is_over(),
        host.endpoint.discards(),
    )
}
