//! Endpoints on wires of one delay, where a test sees every packet and may drop it.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    Association, AssociationConfig, AssociationEvent, AssociationId, Endpoint, Handled, PacketBuffer,
    PathAddress,
};

use super::{PORT, address, association, endpoint};

/// A packet on a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// When it was sent.
    pub(crate) sent: Time,
    /// Its source.
    pub(crate) from: IpAddr,
    /// Its destination.
    pub(crate) to: IpAddr,
    /// The SCTP packet.
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    /// The type of its first chunk.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[12]
    }

    /// The types of all its chunks.
    pub(crate) fn kinds(&self) -> Vec<u8> {
        super::craft::kinds(&self.bytes)
    }

    /// Its verification tag.
    pub(crate) fn tag(&self) -> u32 {
        u32::from_be_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]])
    }
}

/// An endpoint, its addresses, and what it has told.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) events: Vec<(AssociationId, AssociationEvent)>,
}

impl Node {
    /// Whether such an event has been told.
    pub(crate) fn told(&self, event: &AssociationEvent) -> bool {
        self.times_told(event) > 0
    }

    /// How often such an event has been told.
    pub(crate) fn times_told(&self, event: &AssociationEvent) -> usize {
        self.events.iter().filter(|(_, e)| e == event).count()
    }

    /// How many associations there are.
    pub(crate) fn count(&self) -> usize {
        self.endpoint.associations().count()
    }

    /// Its only association.
    pub(crate) fn only(&self) -> &Association {
        let mut all = self.endpoint.associations();
        let id = all.next().expect("there is an association");
        assert_eq!(all.next(), None, "there is only one");
        self.endpoint.association(id).expect("it exists")
    }

    /// Its only association, to use.
    pub(crate) fn only_mut(&mut self) -> &mut Association {
        let id = self.endpoint.associations().next().expect("there is an association");
        self.endpoint.association_mut(id).expect("it exists")
    }
}

/// What decides whether a packet is lost.
pub(crate) type Loss = Box<dyn FnMut(&Packet) -> bool>;

/// Nodes, and the packets between them.
pub(crate) struct Wires {
    pub(crate) now: Time,
    pub(crate) delay: Span,
    pub(crate) nodes: Vec<Node>,
    /// Every packet sent, lost ones included.
    pub(crate) log: Vec<Packet>,
    pub(crate) loses: Loss,
    flying: VecDeque<(Time, Packet)>,
}

impl Wires {
    /// Wires without a node.
    pub(crate) fn new() -> Self {
        Wires {
            now: Time::ZERO,
            delay: Span::from_millis(10),
            nodes: Vec::new(),
            log: Vec::new(),
            loses: Box::new(|_| false),
            flying: VecDeque::new(),
        }
    }

    /// Two nodes with an address on each of so many networks.
    pub(crate) fn pair(networks: u8, config: &AssociationConfig) -> Self {
        let mut wires = Wires::new();
        for node in 1..=2 {
            wires.add(node, networks, config.clone());
        }
        wires
    }

    /// A pair of which the first node has connected over every network.
    pub(crate) fn connected(networks: u8) -> Self {
        let mut wires = Wires::pair(networks, &association("sctp"));
        wires.connect(0, 1);
        wires.run(Span::from_secs(1));
        assert!(wires.nodes.iter().all(|n| n.told(&AssociationEvent::Connected)));
        wires
    }

    /// Adds a node; its number decides its addresses and, with the time, its randomness.
    pub(crate) fn add(&mut self, node: u8, networks: u8, config: AssociationConfig) -> usize {
        let addresses: Vec<_> = (0..networks).map(|network| address(network, node)).collect();
        let config = endpoint(addresses.clone(), config);
        let endpoint = Endpoint::new(self.now, config, self.entropy(node));
        self.nodes.push(Node { endpoint, addresses, events: Vec::new() });
        self.nodes.len() - 1
    }

    fn entropy(&self, node: u8) -> [u8; 32] {
        let mut seed = [node; 32];
        seed[..8].copy_from_slice(&self.now.as_nanos().to_be_bytes());
        seed
    }

    /// Puts a new endpoint in a node's place, as after a crash.
    pub(crate) fn replace(&mut self, index: usize, node: u8, config: AssociationConfig) {
        let addresses = self.nodes[index].addresses.clone();
        let endpoint = Endpoint::new(self.now, endpoint(addresses.clone(), config), self.entropy(node));
        self.nodes[index] = Node { endpoint, addresses, events: Vec::new() };
    }

    /// Opens an association over the networks that both nodes are on.
    pub(crate) fn connect(&mut self, from: usize, to: usize) -> AssociationId {
        let pairs: Vec<_> = self.nodes[from]
            .addresses
            .iter()
            .copied()
            .zip(self.nodes[to].addresses.iter().copied())
            .collect();
        self.connect_over(from, &pairs, association("sctp"))
    }

    /// Opens an association over these pairs of addresses.
    pub(crate) fn connect_over(
        &mut self,
        from: usize,
        pairs: &[(IpAddr, IpAddr)],
        config: AssociationConfig,
    ) -> AssociationId {
        let now = self.now;
        let id = self.nodes[from].endpoint.connect(now, PORT, pairs, config).expect("it can be opened");
        self.drain();
        id
    }

    /// Gives a node a packet as if it had come over a wire, and sends what follows.
    pub(crate) fn inject(&mut self, to: usize, from: IpAddr, local: IpAddr, bytes: &[u8]) -> Handled {
        let path = PathAddress::from((local, from));
        let now = self.now;
        let handled = self.nodes[to].endpoint.handle_datagram(now, path, bytes);
        self.drain();
        handled
    }

    /// Gives a packet again to whom it was sent.
    pub(crate) fn replay(&mut self, packet: &Packet) -> Handled {
        let to = self.owner(packet.to).expect("somebody has the address");
        self.inject(to, packet.from, packet.to, &packet.bytes)
    }

    fn owner(&self, address: IpAddr) -> Option<usize> {
        self.nodes.iter().position(|n| n.addresses.contains(&address))
    }

    /// Takes what every node has to send and to tell.
    pub(crate) fn drain(&mut self) {
        let mut buf = PacketBuffer::new();
        for node in &mut self.nodes {
            while let Some(to) = node.endpoint.poll_transmit(self.now, &mut buf) {
                let packet = Packet {
                    sent: self.now,
                    from: to.address.local,
                    to: to.address.remote,
                    bytes: buf.to_vec(),
                };
                if !(self.loses)(&packet) {
                    self.flying.push_back((self.now + self.delay, packet.clone()));
                }
                self.log.push(packet);
            }
            while let Some(event) = node.endpoint.poll_event() {
                node.events.push(event);
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Lets time pass until something is so; panics if it is not within `limit`.
    pub(crate) fn run_until(&mut self, what: &str, limit: Span, mut so: impl FnMut(&mut Wires) -> bool) {
        let end = self.now + limit;
        while !so(self) {
            assert!(self.step(end), "not within {limit:?}: {what}");
        }
    }

    /// Handles the next arrival or deadline; false if there is none before `end`.
    fn step(&mut self, end: Time) -> bool {
        self.drain();
        let arrival = self.flying.front().map(|(at, _)| *at);
        let deadline = self.nodes.iter_mut().filter_map(|n| n.endpoint.poll_timeout()).min();
        let Some(next) = [arrival, deadline].into_iter().flatten().min().filter(|&at| at <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if arrival == Some(next) {
            let (_, packet) = self.flying.pop_front().expect("a packet arrives");
            if let Some(owner) = self.owner(packet.to) {
                let path = PathAddress::from((packet.to, packet.from));
                self.nodes[owner].endpoint.handle_datagram(now, path, &packet.bytes);
            }
        } else {
            for node in &mut self.nodes {
                node.endpoint.handle_timeout(now);
            }
        }
        self.drain();
        true
    }

    /// The packets so far whose first chunk has this type.
    pub(crate) fn sent(&self, kind: u8) -> Vec<Packet> {
        self.log.iter().filter(|p| p.kind() == kind).cloned().collect()
    }

    /// The packets that were sent since the log had this length.
    pub(crate) fn since(&self, mark: usize) -> &[Packet] {
        &self.log[mark..]
    }
}
