//! One transfer each way between our endpoint and somebody else's, over links that may lose packets.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::{AssociationEvent, AssociationId, Encapsulation, Endpoint, SendOptions};
use anabranch_sim::{
    Application, Envelope, Host, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World,
};

use crate::rig::messages::{Inbox, Message, mixed};
use crate::rig::{PORT, address, association, endpoint};

/// User bytes in each direction.
const TOTAL: usize = 1_000_000;
/// Streams in use, of the eight that are offered.
const STREAMS: u16 = 6;
/// The whole exchange takes no longer than this.
const LIMIT: Span = Span::from_secs(120);

/// What the other endpoint is told.
pub(crate) struct Task {
    /// It opens the association, and closes it when all is there.
    pub(crate) connects: bool,
    /// Its messages.
    pub(crate) messages: Vec<Message>,
    /// How many messages it waits for.
    pub(crate) expected: usize,
    /// How its packets go.
    pub(crate) way: Envelope,
}

/// Somebody else's endpoint.
pub(crate) trait Peer: Host {
    /// What it has received.
    fn inbox(&self) -> &Inbox;
    /// Whether its association has ended in good order.
    fn is_over(&self) -> bool;
}

/// Our side: sends everything, reads everything, and closes if it is the one that connected.
struct Ours {
    connects: Option<(IpAddr, IpAddr)>,
    closes: bool,
    id: Option<AssociationId>,
    outbox: VecDeque<Message>,
    inbox: Inbox,
    expected: usize,
    parts: BTreeMap<(u16, bool), Vec<u8>>,
    events: Vec<AssociationEvent>,
}

impl Ours {
    fn new(connects: Option<(IpAddr, IpAddr)>, messages: &[Message], expected: usize) -> Self {
        Ours {
            connects,
            closes: connects.is_some(),
            id: None,
            outbox: messages.iter().cloned().collect(),
            inbox: Inbox::default(),
            expected,
            parts: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn read(&mut self, endpoint: &mut Endpoint, id: AssociationId) {
        let Some(association) = endpoint.association_mut(id) else { return };
        let mut bytes = Vec::new();
        while let Some(piece) = association.recv(&mut bytes) {
            let key = (piece.stream, piece.unordered);
            self.parts.entry(key).or_default().append(&mut bytes);
            if piece.ending {
                let whole = self.parts.remove(&key).unwrap_or_default();
                self.inbox.take(piece.stream, piece.ppid, whole);
            }
        }
    }

    fn write(&mut self, endpoint: &mut Endpoint, id: AssociationId) {
        let Some(association) = endpoint.association_mut(id) else { return };
        if !association.is_established() {
            return;
        }
        for message in self.outbox.drain(..) {
            let (ppid, unordered) = (message.ppid(), message.unordered);
            let options = SendOptions { stream: message.stream, ppid, unordered, immediate: false };
            association.send(message.payload, options).expect("the send buffer is unlimited");
        }
    }
}

impl Application for Ours {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(pair) = self.connects.take() {
            let id = endpoint.connect(now, PORT, &[pair], association("sctp")).expect("it can be opened");
            self.id = Some(id);
        }
        let Some(id) = self.id else { return };
        self.write(endpoint, id);
        self.read(endpoint, id);
        let all = self.outbox.is_empty() && self.inbox.messages.len() >= self.expected;
        if self.closes && all && let Some(association) = endpoint.association_mut(id) {
            association.shutdown(now);
        }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        assert_eq!(*self.id.get_or_insert(id), id, "there is one association only");
        self.events.push(event.clone());
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Both ways at once, then a graceful shutdown by who connected; everything must arrive as it was sent.
pub(crate) fn exchange<P: Peer>(make: impl FnOnce(Task) -> P, we_connect: bool, loss: f64, seed: u64) {
    let (here, there) = (address(0, 1), address(0, 2));
    let (mine, theirs) = (mixed(seed, TOTAL, STREAMS), mixed(seed + 1000, TOTAL, STREAMS));
    let mut world = World::new(Seeds::new(seed, 0));
    let ours = Ours::new(we_connect.then_some((here, there)), &mine, theirs.len());
    let config = endpoint(vec![here], association("sctp"));
    let endpoint = Endpoint::new(Time::ZERO, config, world.seeds().entropy(&["endpoint"]));
    let we = world
        .add_host(Box::new(SctpHost::new(endpoint, Encapsulation::None, ours)), &[here])
        .expect("the address is free");
    let way = Envelope::plain(there, here);
    let task = Task { connects: !we_connect, messages: theirs.clone(), expected: mine.len(), way };
    let they = world.add_host(Box::new(make(task)), &[there]).expect("the address is free");
    add_links(&mut world, here, there, loss);

    let done = |world: &World| {
        let ours = &world.host::<SctpHost<Ours>>(we).application;
        ours.events.contains(&AssociationEvent::Closed) && world.host::<P>(they).is_over()
    };
    while !done(&world) {
        let went_on = world.step_until(Time::ZERO + LIMIT);
        assert!(went_on, "not over after {LIMIT:?}: {}", report::<P>(&world, we, they));
    }
    world.host::<SctpHost<Ours>>(we).application.inbox.assert_is(&theirs, "at our side");
    world.host::<P>(they).inbox().assert_is(&mine, "at the peer");
    let discards = world.host::<SctpHost<Ours>>(we).endpoint.discards();
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

fn report<P: Peer>(world: &World, we: anabranch_sim::HostId, they: anabranch_sim::HostId) -> String {
    let host = world.host::<SctpHost<Ours>>(we);
    let ours = &host.application;
    let statistics = ours.id.and_then(|id| host.endpoint.association(id)).map(|a| *a.statistics());
    let peer = world.host::<P>(they);
    format!(
        "we have {} of {} messages, the peer {}, over {}; events {:?}; {:?}; {statistics:?}",
        ours.inbox.messages.len(),
        ours.expected,
        peer.inbox().messages.len(),
        peer.is_over(),
        ours.events,
        host.endpoint.discards(),
    )
}
