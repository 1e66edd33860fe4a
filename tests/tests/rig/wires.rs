//! Endpoints on wires of equal delay, on which a test sees every packet and may drop it.

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
    /// Time of sending.
    pub(crate) sent: Time,
    /// Source address.
    pub(crate) from: IpAddr,
    /// Destination address.
    pub(crate) to: IpAddr,
    /// The SCTP packet.
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    /// Returns the type of its first chunk.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[12]
    }

    /// Returns the types of all its chunks.
    pub(crate) fn kinds(&self) -> Vec<u8> {
        super::craft::kinds(&self.bytes)
    }

    /// Returns its verification tag.
    pub(crate) fn tag(&self) -> u32 {
        u32::from_be_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]])
    }
}

/// An endpoint with its addresses and its events.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) events: Vec<(AssociationId, AssociationEvent)>,
}

impl Node {
    /// Returns `true` if this event has occurred.
    pub(crate) fn reported(&self, event: &AssociationEvent) -> bool {
        self.times_told(event) > 0
    }

    /// Returns the number of occurrences of this event.
    pub(crate) fn times_told(&self, event: &AssociationEvent) -> usize {
        self.events.iter().filter(|(_, e)| e == event).count()
    }

    /// Returns the number of associations.
    pub(crate) fn count(&self) -> usize {
        self.endpoint.associations().count()
    }

    /// Returns its only association.
    pub(crate) fn only(&self) -> &Association {
        let mut all = self.endpoint.associations();
        let id = all.next().expect("there is an association");
        assert_eq!(all.next(), None, "there is only one");
        self.endpoint.association(id).expect("it exists")
    }

    /// Returns its only association for use.
    pub(crate) fn only_mut(&mut self) -> &mut Association {
        let id = self.endpoint.associations().next().expect("there is an association");
        self.endpoint.association_mut(id).expect("it exists")
    }
}

/// Function that returns `true` for a packet to be lost.
pub(crate) type Loss = Box<dyn FnMut(&Packet) -> bool>;

/// Nodes, and the packets between them.
pub(crate) struct Wires {
    pub(crate) now: Time,
    pub(crate) delay: Span,
    pub(crate) nodes: Vec<Node>,
    /// Every sent packet, lost ones included.
    pub(crate) log: Vec<Packet>,
    pub(crate) loses: Loss,
    flying: VecDeque<(Time, Packet)>,
}

impl Wires {
    /// Returns wires without a node.
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

    /// Returns two nodes with an address on each of these networks.
    pub(crate) fn pair(networks: u8, config: &AssociationConfig) -> Self {
        let mut wires = Wires::new();
        for node in 1..=2 {
            wires.add(node, networks, config.clone());
        }
        wires
    }

    /// Returns a pair of which the first node has connected over every network.
    pub(crate) fn connected(networks: u8) -> Self {
        let mut wires = Wires::pair(networks, &association("sctp"));
        wires.connect(0, 1);
        wires.run(Span::from_secs(1));
        assert!(wires.nodes.iter().all(|n| n.reported(&AssociationEvent::Connected)));
        wires
    }

    /// Adds a node. The number of a wire determines its addresses and, with the time, its randomness.
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

    /// Replaces a node's endpoint by a new one, as after a crash.
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

    /// Passes a node a packet from a wire, and sends the answers.
    pub(crate) fn inject(&mut self, to: usize, from: IpAddr, local: IpAddr, bytes: &[u8]) -> Handled {
        let path = PathAddress::from((local, from));
        let now = self.now;
        let handled = self.nodes[to].endpoint.handle_datagram(now, path, bytes);
        self.drain();
        handled
    }

    /// Passes a packet to its receiver again.
    pub(crate) fn replay(&mut self, packet: &Packet) -> Handled {
        let to = self.owner(packet.to).expect("somebody has the address");
        self.inject(to, packet.from, packet.to, &packet.bytes)
    }

    fn owner(&self, address: IpAddr) -> Option<usize> {
        self.nodes.iter().position(|n| n.addresses.contains(&address))
    }

    /// Takes the packets and events of every node.
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

    /// Lets time pass until a condition is true. Panics if it is still false after `limit`.
    pub(crate) fn run_until(&mut self, what: &str, limit: Span, mut so: impl FnMut(&mut Wires) -> bool) {
        let end = self.now + limit;
        while !so(self) {
            assert!(self.step(end), "not within {limit:?}: {what}");
        }
    }

    /// Handles the next arrival or deadline. Returns `false` if there is none before `end`.
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

    /// Returns the packets whose first chunk has this type.
    pub(crate) fn sent(&self, kind: u8) -> Vec<Packet> {
        self.log.iter().filter(|p| p.kind() == kind).cloned().collect()
    }

    /// Returns the packets that were sent after the log had this length.
    pub(crate) fn since(&self, mark: usize) -> &[Packet] {
        &self.log[mark..]
    }
}
