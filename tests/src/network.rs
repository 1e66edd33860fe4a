//! A network in memory: links between pairs of addresses that delay, lose, repeat, reorder and damage packets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_core::time::{Span, Time};

use crate::dice::Dice;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that connects.
    A,
    /// The one that accepts.
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// As an index.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// What a link does to packets, in both directions. Probabilities are in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One-way delay.
    pub delay: Span,
    /// Loss.
    pub loss: u32,
    /// A second copy arrives, later.
    pub duplicate: u32,
    /// A packet takes up to three times as long.
    pub reorder: u32,
    /// One bit flips.
    pub corrupt: u32,
    /// Nothing passes.
    pub cut: bool,
    /// The longest IPv4 packet that passes whole, headers included; longer ones pass only if they may be fragmented.
    pub mtu: usize,
    /// A packet longer than the MTU is lost although it may be fragmented, as at a switch.
    pub never_fragments: bool,
}

/// An IPv4 header.
const IP_HEADER: usize = 20;

impl Link {
    /// A good link with this delay.
    pub const fn good(delay: Span) -> Self {
        Link {
            delay,
            loss: 0,
            duplicate: 0,
            reorder: 0,
            corrupt: 0,
            cut: false,
            mtu: 65_535,
            never_fragments: false,
        }
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Who sent it.
    pub from: Side,
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// SCTP common header and chunks.
    pub bytes: Vec<u8>,
    /// IP may fragment it.
    pub may_fragment: bool,
}

/// More packets than any two endpoints should have on their way at once.
const MOST_UNDER_WAY: usize = 50_000;

/// Decides about a packet before the links do, and may change it; `false` loses it.
pub type Filter = Box<dyn FnMut(&mut Packet) -> bool>;

/// All links and the packets on them.
pub struct Network {
    links: BTreeMap<(IpAddr, IpAddr), Link>,
    default: Link,
    under_way: BTreeMap<(Time, u64), Packet>,
    sequence: u64,
    dice: Dice,
    filter: Option<Filter>,
    /// Addresses of A and what B sees in their place.
    translated: BTreeMap<IpAddr, IpAddr>,
    /// Packets that a link damaged.
    pub damaged: u64,
}

impl Network {
    /// A network whose links are all like `default`.
    pub fn new(default: Link, seed: u64) -> Self {
        Network {
            links: BTreeMap::new(),
            default,
            under_way: BTreeMap::new(),
            sequence: 0,
            dice: Dice::new(seed),
            filter: None,
            translated: BTreeMap::new(),
            damaged: 0,
        }
    }

    /// The link between an address of A and one of B.
    pub fn link(&mut self, a: IpAddr, b: IpAddr) -> &mut Link {
        self.links.entry((a, b)).or_insert(self.default)
    }

    /// Every link becomes good, with the delay it has.
    pub fn heal(&mut self) {
        for link in self.links.values_mut().chain([&mut self.default]) {
            *link = Link::good(link.delay);
        }
        self.filter = None;
    }

    /// Puts a translator of addresses before an address of A: B sees another one in its place.
    pub fn translate(&mut self, real: IpAddr, seen: IpAddr) {
        self.translated.insert(real, seen);
    }

    fn pass_translator(&self, packet: &mut Packet) {
        match packet.from {
            Side::A => packet.source = *self.translated.get(&packet.source).unwrap_or(&packet.source),
            Side::B => {
                let real = self.translated.iter().find(|(_, seen)| **seen == packet.destination);
                packet.destination = real.map_or(packet.destination, |(real, _)| *real);
            }
        }
    }

    /// Lets `filter` decide about every packet first.
    pub fn set_filter(&mut self, mut filter: impl FnMut(&Packet) -> bool + 'static) {
        self.filter = Some(Box::new(move |packet: &mut Packet| filter(packet)));
    }

    /// Lets `change` decide about every packet first and write into it.
    pub fn set_tampering(&mut self, change: impl FnMut(&mut Packet) -> bool + 'static) {
        self.filter = Some(Box::new(change));
    }

    /// Lets every packet pass to its link.
    pub fn clear_filter(&mut self) {
        self.filter = None;
    }

    /// Takes a packet.
    pub fn send(&mut self, now: Time, mut packet: Packet) {
        if self.filter.as_mut().is_some_and(|passes| !passes(&mut packet)) {
            return;
        }
        let (a, b) = match packet.from {
            Side::A => (packet.source, packet.destination),
            Side::B => (packet.destination, packet.source),
        };
        let link = *self.link(a, b);
        let too_long =
            packet.bytes.len() + IP_HEADER > link.mtu && (link.never_fragments || !packet.may_fragment);
        self.pass_translator(&mut packet);
        if link.cut || too_long || self.dice.chance(link.loss) {
            return;
        }
        if self.dice.chance(link.duplicate) {
            let late = Span::from_nanos(self.dice.below(link.delay.as_nanos() * 4 + 1));
            self.enqueue(now + link.delay + late, packet.clone());
        }
        if self.dice.chance(link.corrupt) {
            let bit = self.dice.below(packet.bytes.len() as u64 * 8) as usize;
            packet.bytes[bit / 8] ^= 1 << (bit % 8);
            self.damaged += 1;
        }
        let extra =
            if self.dice.chance(link.reorder) { self.dice.below(link.delay.as_nanos() * 2 + 1) } else { 0 };
        self.enqueue(now + link.delay + Span::from_nanos(extra), packet);
    }

    fn enqueue(&mut self, at: Time, packet: Packet) {
        assert!(self.under_way.len() < MOST_UNDER_WAY, "packets breed: there are {MOST_UNDER_WAY} under way");
        self.sequence += 1;
        self.under_way.insert((at, self.sequence), packet);
    }

    /// Loses what is on its way.
    pub fn lose_all(&mut self) {
        self.under_way.clear();
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Option<Time> {
        self.under_way.keys().next().map(|(at, _)| *at)
    }

    /// The next packet that has arrived.
    pub fn arrival(&mut self, now: Time) -> Option<Packet> {
        let entry = self.under_way.first_entry().filter(|e| e.key().0 <= now)?;
        Some(entry.remove())
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("links", &self.links)
            .field("under_way", &self.under_way.len())
            .finish()
    }
}
