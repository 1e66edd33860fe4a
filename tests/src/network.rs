//! A network in memory: links between pairs of addresses that delay, lose, duplicate, reorder and damage packets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_core::time::{Span, Time};

use crate::dice::Dice;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Connecting side.
    A,
    /// Accepting side.
    B,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    /// Returns the index of the side.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the other side.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// Properties of a link in both directions. Probabilities are in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One-way delay.
    pub delay: Span,
    /// Probability of a loss.
    pub loss: u32,
    /// Probability of a second copy, which arrives later.
    pub duplicate: u32,
    /// Probability that a packet takes up to three times as long.
    pub reorder: u32,
    /// Probability that one bit flips.
    pub corrupt: u32,
    /// Set if no packet passes.
    pub cut: bool,
    /// Longest IPv4 packet that passes unfragmented, including headers. Longer ones pass only if they may be fragmented.
    pub mtu: usize,
    /// Set if a packet longer than the MTU is lost although it may be fragmented, as at a switch.
    pub never_fragments: bool,
}

/// Length of an IPv4 header.
const IP_HEADER: usize = 20;

impl Link {
    /// Returns a good link with this delay.
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
    /// Sending side.
    pub from: Side,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// SCTP common header and chunks.
    pub bytes: Vec<u8>,
    /// Set if IP may fragment it.
    pub may_fragment: bool,
}

/// Maximum number of packets on their way, which exceeds that of all tests.
const MOST_UNDER_WAY: usize = 50_000;

/// Filter of packets in front of the links, which may change them. The filter returns `false` to lose a packet.
pub type Filter = Box<dyn FnMut(&mut Packet) -> bool>;

/// All links with their packets.
pub struct Network {
    links: BTreeMap<(IpAddr, IpAddr), Link>,
    default: Link,
    under_way: BTreeMap<(Time, u64), Packet>,
    sequence: u64,
    dice: Dice,
    filter: Option<Filter>,
    /// Addresses of A, and the addresses that B observes instead.
    translated: BTreeMap<IpAddr, IpAddr>,
    /// Number of packets that a link damaged.
    pub damaged: u64,
}

impl Network {
    /// Returns a network whose links all equal `default`.
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

    /// Returns the link between an address of A and one of B.
    pub fn link(&mut self, a: IpAddr, b: IpAddr) -> &mut Link {
        self.links.entry((a, b)).or_insert(self.default)
    }

    /// Makes every link good, with its current delay.
    pub fn heal(&mut self) {
        for link in self.links.values_mut().chain([&mut self.default]) {
            *link = Link::good(link.delay);
        }
        self.filter = None;
    }

    /// Puts an address translator in front of an address of A: B observes another one.
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

    /// Sets a filter in front of the links.
    pub fn set_filter(&mut self, mut filter: impl FnMut(&Packet) -> bool + 'static) {
        self.filter = Some(Box::new(move |packet: &mut Packet| filter(packet)));
    }

    /// Sets a filter in front of the links that may change packets.
    pub fn set_tampering(&mut self, change: impl FnMut(&mut Packet) -> bool + 'static) {
        self.filter = Some(Box::new(change));
    }

    /// Removes the filter.
    pub fn clear_filter(&mut self) {
        self.filter = None;
    }

    /// Sends a packet.
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

    /// Loses all packets on their way.
    pub fn lose_all(&mut self) {
        self.under_way.clear();
    }

    /// Returns the time of the next arrival.
    pub fn next(&self) -> Option<Time> {
        self.under_way.keys().next().map(|(at, _)| *at)
    }

    /// Returns the next packet that has arrived.
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
