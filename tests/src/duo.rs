//! Two endpoints, the network between them and the applications on them, driven in virtual time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use anabranch_core::policy::Scheme;
use anabranch_core::profile::Profile;
use anabranch_core::protection::RestartContext;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, EndpointConfig,
    Handled, Reliability, SendError, SendOptions,
};
use anabranch_schemes::registry;

use crate::capricious::{self, Capricious};
use crate::flow::Flow;
use crate::network::{Link, Network, Packet, Side};
use crate::node::Node;
use crate::witness::Witness;

/// The port of both.
pub const PORT: u16 = 5001;

/// More steps than any test needs: a clock that stands still shows here.
const MOST_STEPS: u64 = 200_000;

/// What a pair of endpoints is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Pairs of addresses.
    pub pairs: usize,
    /// Bit `i` says that pair `i` is of IPv6.
    pub ipv6: u8,
    /// One configuration for each side.
    pub sides: [AssociationConfig; 2],
    /// Every link at first.
    pub link: Link,
    /// Seed of the network and of the endpoints.
    pub seed: u64,
    /// Both sides connect at once.
    pub collide: bool,
    /// Messages are carried, and not their lengths alone.
    pub carries_contents: bool,
}

impl Setup {
    /// So many good paths of 25 ms, both sides with this scheme and the row of this profile that it wants.
    ///
    /// # Panics
    /// If there is no such scheme or profile.
    pub fn new(pairs: usize, scheme: &str, profile: &str) -> Self {
        let config = config(scheme, profile);
        Setup {
            pairs,
            ipv6: 0,
            sides: [config.clone(), config],
            link: Link::good(Span::from_millis(25)),
            seed: 1,
            collide: false,
            carries_contents: true,
        }
    }

    /// Changes both configurations.
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut AssociationConfig)) -> Self {
        self.sides.iter_mut().for_each(change);
        self
    }

    /// Changes one side's configuration.
    #[must_use]
    pub fn with_side(mut self, side: Side, change: impl FnOnce(&mut AssociationConfig)) -> Self {
        change(&mut self.sides[side.index()]);
        self
    }

    /// The address of a side in a pair.
    pub fn address(&self, side: Side, pair: usize) -> IpAddr {
        let host = side.index() as u8 + 1;
        if self.ipv6 >> pair & 1 == 1 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, pair as u16, u16::from(host)))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, pair as u8, host))
        }
    }

    /// A side's endpoint.
    pub fn endpoint(&self, side: Side) -> Endpoint {
        let config = EndpointConfig {
            port: PORT,
            addresses: (0..self.pairs).map(|pair| self.address(side, pair)).collect(),
            encapsulation: Encapsulation::None,
            accept: Some(self.sides[side.index()].clone()),
            accept_from: AcceptFrom::Everyone,
            max_associations: 4,
            guard: None,
        };
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.seed.to_le_bytes());
        entropy[8] = side.index() as u8;
        let endpoint = Endpoint::new(Time::ZERO, config, entropy);
        if self.carries_contents { endpoint } else { endpoint.without_contents() }
    }

    fn node(&self, side: Side) -> Node {
        Node::new(side, self.endpoint(side), self.sides[side.index()].profile.lost_counts_until_resent)
    }
}

/// A configuration with four streams.
///
/// # Panics
/// If there is no such scheme or profile.
pub fn config(scheme: &str, profile: &str) -> AssociationConfig {
    let scheme: Arc<dyn Scheme> = match scheme {
        capricious::NAME => Arc::new(Capricious),
        text => registry::parse(text).expect("a scheme").into_scheme(),
    };
    let profile = Profile::named(profile, scheme.is_multipath()).expect("a profile");
    AssociationConfig { streams: 4, ..AssociationConfig::new(scheme, profile) }
}

/// How an application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Only when told to.
    ByHand,
    /// Everything, whenever it hears that something can be read.
    WhenTold,
}

/// Two endpoints and all around them.
#[derive(Debug)]
pub struct Duo {
    /// What it was made of.
    pub setup: Setup,
    /// The time.
    pub now: Time,
    /// The endpoints.
    pub nodes: [Node; 2],
    /// Between them.
    pub network: Network,
    /// What each side has sent.
    pub flows: [Flow; 2],
    /// How each side reads.
    pub reading: [Reading; 2],
    /// A send was refused and no `Writable` has come since.
    pub refused: [bool; 2],
    /// A hash over all packets and where and when they went.
    pub hash: u64,
    /// Every packet sent, if they are kept.
    pub kept: Option<Vec<(Time, Packet)>>,
    /// Whoever checks every packet, if somebody does.
    pub witness: Option<Witness>,
    steps: u64,
}

impl Duo {
    /// Both endpoints, not connected; both read what comes.
    pub fn new(setup: Setup) -> Self {
        Duo {
            now: Time::ZERO,
            nodes: Side::BOTH.map(|side| setup.node(side)),
            network: Network::new(setup.link, setup.seed),
            flows: Side::BOTH.map(|side| Flow::new(setup.sides[side.index()].first_ssn)),
            reading: [Reading::WhenTold; 2],
            refused: [false; 2],
            hash: 0xCBF2_9CE4_8422_2325,
            kept: None,
            witness: None,
            steps: 0,
            setup,
        }
    }

    /// Both endpoints, connected.
    ///
    /// # Panics
    /// If that takes more than a minute.
    pub fn connected(setup: Setup) -> Self {
        let mut duo = Duo::new(setup);
        duo.connect();
        let up =
            |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(|a| a.is_established()));
        assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
        duo
    }

    /// A connects, and B too if the setup says so.
    ///
    /// # Panics
    /// If an endpoint refuses.
    pub fn connect(&mut self) {
        self.connect_side(Side::A);
        if self.setup.collide {
            self.connect_side(Side::B);
        }
        self.settle();
    }

    /// A side connects.
    ///
    /// # Panics
    /// If its endpoint refuses.
    pub fn connect_side(&mut self, side: Side) -> AssociationId {
        let pairs = self.address_pairs(side);
        let node = &mut self.nodes[side.index()];
        let config = self.setup.sides[side.index()].clone();
        let id = node.endpoint.connect(self.now, PORT, &pairs, config).expect("it can connect");
        node.id = Some(id);
        id
    }

    /// A side that has [lost](Self::lose_state) an association restarts it with keys that were kept for that.
    ///
    /// # Panics
    /// If its endpoint refuses.
    pub fn restart_side(&mut self, side: Side, keys: RestartContext) {
        let pairs = self.address_pairs(side);
        let node = &mut self.nodes[side.index()];
        let config = self.setup.sides[side.index()].clone();
        node.id = Some(node.endpoint.restart(self.now, PORT, &pairs, config, keys).expect("it can restart"));
    }

    /// As a side sees them.
    fn address_pairs(&self, side: Side) -> Vec<(IpAddr, IpAddr)> {
        let of = |pair| (self.setup.address(side, pair), self.setup.address(side.other(), pair));
        (0..self.setup.pairs).map(of).collect()
    }

    /// Puts an endpoint in the place of a side's that knows nothing of what was: the host has started anew.
    pub fn lose_state(&mut self, side: Side) {
        let setup = Setup { seed: !self.setup.seed, ..self.setup.clone() };
        self.nodes[side.index()] = setup.node(side);
        self.flows = Side::BOTH.map(|side| Flow::new(setup.sides[side.index()].first_ssn));
        self.refused = [false; 2];
    }

    /// Sends a message; `None` if there is no association yet.
    pub fn send(
        &mut self,
        side: Side,
        size: usize,
        stream: u16,
        unordered: bool,
    ) -> Option<Result<(), SendError>> {
        let (payload, options) = self.flows[side.index()].draft(size, stream, unordered);
        self.send_draft(side, payload, options)
    }

    /// Sends a message that may be given up.
    pub fn send_limited(
        &mut self,
        side: Side,
        size: usize,
        stream: u16,
        unordered: bool,
        reliability: Reliability,
    ) -> Option<Result<(), SendError>> {
        let (payload, options) = self.flows[side.index()].draft(size, stream, unordered);
        self.send_draft(side, payload, SendOptions { reliability, ..options })
    }

    fn send_draft(
        &mut self,
        side: Side,
        payload: bytes::Bytes,
        options: SendOptions,
    ) -> Option<Result<(), SendError>> {
        let now = self.now;
        let association = self.nodes[side.index()].try_association_mut()?;
        let result = association.send_at(now, payload.clone(), options);
        match result {
            Ok(()) => self.flows[side.index()].sent(payload, options),
            Err(SendError::BufferFull { .. }) => self.refused[side.index()] = true,
            Err(_) => {}
        }
        self.nodes[side.index()].check();
        Some(result)
    }

    /// Sends messages of this size, in order on stream 0, and lets the packets leave.
    ///
    /// # Panics
    /// If one is refused.
    pub fn send_all(&mut self, side: Side, size: usize, count: usize) {
        for _ in 0..count {
            self.send(side, size, 0, false).expect("there is an association").expect("it takes the message");
        }
        self.settle();
    }

    /// Reads at most so many messages or parts of them on this side; how many there were.
    pub fn read(&mut self, side: Side, most: usize) -> usize {
        let mut bytes = Vec::new();
        for done in 0..most {
            bytes.clear();
            let Some(association) = self.nodes[side.index()].try_association_mut() else { return done };
            let Some(piece) = association.recv(&mut bytes) else { return done };
            self.flows[side.other().index()].received(&piece, &bytes);
            self.nodes[side.index()].check();
        }
        most
    }

    /// Has a side ask for deadlines anew. It does so after every call by itself; this is for one that a test sets in a policy
    /// from outside.
    pub fn look_again(&mut self, side: Side) {
        let _ = self.nodes[side.index()].try_association_mut();
        self.settle_side(side);
    }

    /// Lets everything leave and be heard that can without time passing.
    pub fn settle(&mut self) {
        for side in Side::BOTH {
            self.settle_side(side);
        }
    }

    /// Lets everything of one side leave and be heard.
    pub fn settle_side(&mut self, side: Side) {
        loop {
            self.drain(side);
            if !self.hear(side) {
                return;
            }
        }
    }

    /// Lets at most `most` packets of a side leave, and whatever it has to tell go unheard.
    pub fn drain_some(&mut self, side: Side, most: usize) {
        for _ in 0..most {
            let Some(packet) = self.nodes[side.index()].transmit(self.now) else { return };
            self.dispatch(packet);
        }
    }

    fn drain(&mut self, side: Side) {
        let mut packets = Vec::new();
        self.nodes[side.index()].drain(self.now, &mut packets);
        for packet in packets {
            self.dispatch(packet);
        }
    }

    fn dispatch(&mut self, packet: Packet) {
        self.mix(&self.now.as_nanos().to_le_bytes());
        self.mix(format!("{}>{}", packet.source, packet.destination).as_bytes());
        self.mix(&packet.bytes);
        if let Some(witness) = &mut self.witness {
            witness.sent(&packet);
        }
        if let Some(kept) = &mut self.kept {
            kept.push((self.now, packet.clone()));
        }
        self.network.send(self.now, packet);
    }

    fn mix(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    /// Hears all events of a side and does what its application does then; whether there was one.
    fn hear(&mut self, side: Side) -> bool {
        let mut any = false;
        while let Some(event) = self.nodes[side.index()].event() {
            any = true;
            match event {
                AssociationEvent::Readable if self.reading[side.index()] == Reading::WhenTold => {
                    self.read(side, usize::MAX);
                }
                AssociationEvent::Writable => self.refused[side.index()] = false,
                AssociationEvent::Abandoned { stream, context, cause, .. } => {
                    self.flows[side.index()].abandoned(stream, context, cause);
                }
                _ => {}
            }
        }
        any
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<Time> {
        let timers = self.nodes.iter_mut().filter_map(|n| n.endpoint.poll_timeout());
        timers.chain(self.network.next()).min()
    }

    /// An association that this side gave up before the other knew it to be up has a successor: what was handed to it is gone.
    fn replace(&mut self, side: Side, id: AssociationId) {
        let was_up = self.nodes[side.other().index()].was_told(&AssociationEvent::Connected);
        assert!(!was_up, "{side:?}: a second association was opened");
        self.nodes[side.index()].adopt(id);
        self.flows[side.index()] = Flow::new(self.setup.sides[side.index()].first_ssn);
        self.refused[side.index()] = false;
    }

    fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "time does not pass");
    }

    /// Lets everything happen that is due.
    ///
    /// # Panics
    /// If an endpoint wants to be woken at a time that has come.
    pub fn happen(&mut self) {
        self.step();
        while let Some(side) = self.take_arrival() {
            self.settle_side(side);
        }
        self.handle_timeouts();
    }

    /// Gives a packet that is due to the side that it is for, which then has yet to answer.
    ///
    /// # Panics
    /// If time does not pass.
    pub fn take_arrival(&mut self) -> Option<Side> {
        self.step();
        let packet = self.network.arrival(self.now)?;
        self.deliver(&packet);
        Some(packet.from.other())
    }

    /// Gives a packet to the side that it is for, whoever has made it.
    pub fn deliver(&mut self, packet: &Packet) -> Handled {
        let to = packet.from.other();
        let node = &mut self.nodes[to.index()];
        let required = node
            .try_association()
            .is_some_and(|association| association.requires_protection() && !association.is_closed());
        let before = *node.endpoint.discards();
        let handled = node.handle(self.now, packet);
        if let Some(witness) = &mut self.witness {
            witness.received(packet, handled, required, &before, node.endpoint.discards());
        }
        if let Handled::New(id) = handled
            && node.id != Some(id)
        {
            self.replace(to, id);
        }
        handled
    }

    /// Runs the timers that are due.
    ///
    /// # Panics
    /// If an endpoint wants to be woken at a time that has come.
    pub fn handle_timeouts(&mut self) {
        for side in Side::BOTH {
            if self.nodes[side.index()].endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                self.nodes[side.index()].timeout(self.now);
                self.drain(side);
                let next = self.nodes[side.index()].endpoint.poll_timeout();
                assert!(
                    next.is_none_or(|at| at > self.now),
                    "{side:?} wants to be woken at {next:?}, it is {:?}",
                    self.now
                );
                self.settle_side(side);
            }
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Span) {
        self.run_until(span, |_| false);
    }

    /// Lets time pass until something is so; whether it came to be within `span`.
    pub fn run_until(&mut self, span: Span, mut done: impl FnMut(&Duo) -> bool) -> bool {
        let end = self.now + span;
        self.settle();
        while !done(self) {
            match self.next_event() {
                Some(at) if at <= end => {
                    self.now = self.now.max(at);
                    self.happen();
                }
                _ => {
                    self.now = end;
                    return done(self);
                }
            }
        }
        true
    }

    /// Lets time pass unseen by the endpoints, and only then tells them.
    pub fn oversleep(&mut self, span: Span) {
        self.now += span;
        self.happen();
    }

    /// Begins a shutdown.
    pub fn shutdown(&mut self, side: Side) {
        let now = self.now;
        if let Some(association) = self.nodes[side.index()].try_association_mut() {
            association.shutdown(now);
            self.nodes[side.index()].check();
        }
    }

    /// Aborts.
    pub fn abort(&mut self, side: Side) {
        let now = self.now;
        if let Some(association) = self.nodes[side.index()].try_association_mut() {
            association.abort(now);
            self.nodes[side.index()].check();
        }
    }

    /// Cuts or mends the link of a pair.
    pub fn cut(&mut self, pair: usize, cut: bool) {
        self.link(pair).cut = cut;
    }

    /// The link of a pair.
    pub fn link(&mut self, pair: usize) -> &mut Link {
        let (a, b) = (self.setup.address(Side::A, pair), self.setup.address(Side::B, pair));
        self.network.link(a, b)
    }

    /// Whether everything that a side sent has been read on the other.
    pub fn all_arrived(&self, from: Side) -> bool {
        self.flows[from.index()].missing() == 0
    }

    /// Whether a side's association is over, or never was.
    pub fn is_over(&self, side: Side) -> bool {
        self.nodes[side.index()].try_association().is_none_or(|a| a.is_closed())
    }
}
