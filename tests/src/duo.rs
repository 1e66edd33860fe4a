//! Two endpoints, the network between them and the applications on them, driven in virtual time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use anabranch_core::policy::Scheme;
use anabranch_core::profile::Profile;
use anabranch_core::protection::RestartContext;
use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, EndpointConfig,
    Handled, Reliability, SendError, SendOptions, StreamDirection,
};
use anabranch_schemes::registry;

use crate::capricious::{self, Capricious};
use crate::flow::Flow;
use crate::network::{Link, Network, Packet, Side};
use crate::node::Node;
use crate::witness::Witness;

/// Port of both endpoints.
pub const PORT: u16 = 5001;

/// Maximum number of steps, which exceeds that of all tests: it reveals a clock that does not advance.
const MOST_STEPS: u64 = 200_000;

/// Setup of a pair of endpoints.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Number of pairs of addresses.
    pub pairs: usize,
    /// Bit `i` is set if pair `i` uses IPv6.
    pub ipv6: u8,
    /// Configurations of both sides.
    pub sides: [AssociationConfig; 2],
    /// Initial state of every link.
    pub link: Link,
    /// Seed of the network and of the endpoints.
    pub seed: u64,
    /// Set if both sides connect at once.
    pub collide: bool,
    /// Set if messages are carried, and not only their lengths.
    pub carries_contents: bool,
}

impl Setup {
    /// Returns a setup with this number of good paths of 25 ms, this scheme on both sides, and its row of this profile.
    ///
    /// # Panics
    /// Panics if the scheme or profile does not exist.
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

    /// Returns the address of a side in a pair.
    pub fn address(&self, side: Side, pair: usize) -> IpAddr {
        let host = side.index() as u8 + 1;
        if self.ipv6 >> pair & 1 == 1 {
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, pair as u16, u16::from(host)))
        } else {
            IpAddr::V4(Ipv4Addr::new(10, 0, pair as u8, host))
        }
    }

    /// Returns a side's endpoint.
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
        Node::new(side, self.endpoint(side), &self.sides)
    }
}

/// Returns a configuration with four streams.
///
/// # Panics
/// Panics if the scheme or profile does not exist.
pub fn config(scheme: &str, profile: &str) -> AssociationConfig {
    let scheme: Arc<dyn Scheme> = match scheme {
        capricious::NAME => Arc::new(Capricious),
        text => registry::parse(text).expect("a scheme").into_scheme(),
    };
    let profile = Profile::named(profile, scheme.is_multipath()).expect("a profile");
    AssociationConfig { streams: 4, ..AssociationConfig::new(scheme, profile) }
}

/// Reading behaviour of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Reads only on request.
    ByHand,
    /// Reads everything when an event reports readable data.
    WhenTold,
}

/// Two endpoints with their environment.
#[derive(Debug)]
pub struct Duo {
    /// Setup of the pair.
    pub setup: Setup,
    /// Current time.
    pub now: Time,
    /// Both endpoints.
    pub nodes: [Node; 2],
    /// Network between them.
    pub network: Network,
    /// Messages that each side has sent.
    pub flows: [Flow; 2],
    /// Reading behaviour of each side.
    pub reading: [Reading; 2],
    /// Set if a send was refused and no `Writable` has followed.
    pub refused: [bool; 2],
    /// Hash over all packets with their times and addresses.
    pub hash: u64,
    /// All sent packets, if they are stored.
    pub kept: Option<Vec<(Time, Packet)>>,
    /// Checker of all packets, if there is one.
    pub witness: Option<Witness>,
    steps: u64,
}

impl Duo {
    /// Returns both endpoints, not connected. Both read all data.
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

    /// Returns both endpoints, connected.
    ///
    /// # Panics
    /// Panics if connecting takes more than a minute.
    pub fn connected(setup: Setup) -> Self {
        let mut duo = Duo::new(setup);
        duo.connect();
        let up =
            |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(|a| a.is_established()));
        assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
        duo
    }

    /// Connects A, and B too if the setup requests it.
    ///
    /// # Panics
    /// Panics if an endpoint refuses to connect.
    pub fn connect(&mut self) {
        self.connect_side(Side::A);
        if self.setup.collide {
            self.connect_side(Side::B);
        }
        self.settle();
    }

    /// Connects a side.
    ///
    /// # Panics
    /// Panics if the side's endpoint refuses.
    pub fn connect_side(&mut self, side: Side) -> AssociationId {
        let pairs = self.address_pairs(side);
        let node = &mut self.nodes[side.index()];
        let config = self.setup.sides[side.index()].clone();
        let id = node.endpoint.connect(self.now, PORT, &pairs, config).expect("it can connect");
        node.id = Some(id);
        id
    }

    /// Restarts an association that a side has [lost](Self::lose_state), with keys that were stored for this.
    ///
    /// # Panics
    /// Panics if the side's endpoint refuses.
    pub fn restart_side(&mut self, side: Side, keys: RestartContext) {
        let pairs = self.address_pairs(side);
        let node = &mut self.nodes[side.index()];
        let config = self.setup.sides[side.index()].clone();
        node.id = Some(node.endpoint.restart(self.now, PORT, &pairs, config, keys).expect("it can restart"));
    }

    /// Returns the pairs of addresses from a side's view.
    fn address_pairs(&self, side: Side) -> Vec<(IpAddr, IpAddr)> {
        let of = |pair| (self.setup.address(side, pair), self.setup.address(side.other(), pair));
        (0..self.setup.pairs).map(of).collect()
    }

    /// Replaces a side's endpoint by one without state, as after a restart of the host.
    pub fn lose_state(&mut self, side: Side) {
        let setup = Setup { seed: !self.setup.seed, ..self.setup.clone() };
        self.nodes[side.index()] = setup.node(side);
        self.flows = Side::BOTH.map(|side| Flow::new(setup.sides[side.index()].first_ssn));
        self.refused = [false; 2];
    }

    /// Sends a message. Returns `None` if there is no association yet.
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

    /// Sends a message that may be abandoned.
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

    /// Sends an unordered message that asks for a copy on a second path.
    pub fn send_duplicated(&mut self, side: Side, size: usize) -> Option<Result<(), SendError>> {
        let (payload, options) = self.flows[side.index()].draft(size, 0, true);
        self.send_draft(side, payload, options.duplicated())
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

    /// Sends messages of this size, in order on stream 0, and transmits the packets.
    ///
    /// # Panics
    /// Panics if a message is refused.
    pub fn send_all(&mut self, side: Side, size: usize, count: usize) {
        for _ in 0..count {
            self.send(side, size, 0, false).expect("there is an association").expect("it takes the message");
        }
        self.settle();
    }

    /// Reads at most this number of messages or parts of them on this side, and returns the actual number.
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

    /// Asks a side for its deadlines again. This happens automatically after every call; this function is for a deadline that a
    /// test sets in a policy.
    pub fn refresh_deadlines(&mut self, side: Side) {
        let _ = self.nodes[side.index()].try_association_mut();
        self.settle_side(side);
    }

    /// Transmits and processes everything that is possible without time passing.
    pub fn settle(&mut self) {
        for side in Side::BOTH {
            self.settle_side(side);
        }
    }

    /// Transmits and processes everything of one side.
    pub fn settle_side(&mut self, side: Side) {
        loop {
            self.drain(side);
            if !self.process_events(side) {
                return;
            }
        }
    }

    /// Transmits at most `most` packets of a side, without processing its events.
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

    /// Processes all events of a side with its application. Returns `true` if there was one.
    fn process_events(&mut self, side: Side) -> bool {
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
                AssociationEvent::StreamsReset { direction: StreamDirection::Incoming, streams } => {
                    self.flows[side.other().index()].reset(&streams);
                }
                _ => {}
            }
        }
        any
    }

    /// Returns the time of the next event.
    pub fn next_event(&mut self) -> Option<Time> {
        let timers = self.nodes.iter_mut().filter_map(|n| n.endpoint.poll_timeout());
        timers.chain(self.network.next()).min()
    }

    /// Replaces an association that this side abandoned before the other one considered it up. Queued data of the old association
    /// is lost.
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

    /// Processes everything that is due.
    ///
    /// # Panics
    /// Panics if an endpoint returns a deadline that has passed.
    pub fn happen(&mut self) {
        self.step();
        while let Some(side) = self.take_arrival() {
            self.settle_side(side);
        }
        self.handle_timeouts();
    }

    /// Delivers a due packet to its side, which then has to answer.
    ///
    /// # Panics
    /// Panics if time does not advance.
    pub fn take_arrival(&mut self) -> Option<Side> {
        self.step();
        let packet = self.network.arrival(self.now)?;
        self.deliver(&packet);
        Some(packet.from.other())
    }

    /// Delivers a packet of any origin to its side.
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
    /// Panics if an endpoint returns a deadline that has passed.
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

    /// Advances the time.
    pub fn run(&mut self, span: Span) {
        self.run_until(span, |_| false);
    }

    /// Advances the time until a condition is met. Returns `true` if it was met within `span`.
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

    /// Advances the time without calling the endpoints until its end.
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

    /// Aborts an association.
    pub fn abort(&mut self, side: Side) {
        let now = self.now;
        if let Some(association) = self.nodes[side.index()].try_association_mut() {
            association.abort(now);
            self.nodes[side.index()].check();
        }
    }

    /// Interrupts or restores the link of a pair.
    pub fn cut(&mut self, pair: usize, cut: bool) {
        self.link(pair).cut = cut;
    }

    /// Returns the link of a pair.
    pub fn link(&mut self, pair: usize) -> &mut Link {
        let (a, b) = (self.setup.address(Side::A, pair), self.setup.address(Side::B, pair));
        self.network.link(a, b)
    }

    /// Returns `true` if everything that a side sent has been read on the other.
    pub fn all_arrived(&self, from: Side) -> bool {
        self.flows[from.index()].missing() == 0
    }

    /// Returns `true` if a side's association has ended, or never existed.
    pub fn is_over(&self, side: Side) -> bool {
        self.nodes[side.index()].try_association().is_none_or(|a| a.is_closed())
    }
}
