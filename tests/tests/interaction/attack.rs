//! An attacker on the path, who observes, delays, drops, changes and repeats packets, and forges packets under observed tags.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use anabranch_core::protection::KEY_MANAGEMENT_PPID;
use anabranch_core::{Endpoint, Handled, PacketBuffer, PathAddress};
use anabranch_tests::dice::Dice;
use anabranch_tests::duo::{PORT, Setup};
use anabranch_tests::hostile::craft::{self, cookie_of, fix_checksum, packet_between};
use anabranch_tests::network::{Network, Packet, Side};
use anabranch_wire::{
    Chunk, ChunkType, DataFlags, DataRepr, InitRepr, NoSpace, PacketView, PacketWriter, Ssn, StreamId, Tsn,
};
use proptest::prelude::*;

use crate::interaction::op::side;
use crate::interaction::pair::Pair;

/// Bytes before the chunks.
const HEADER: usize = 12;

/// Offset of the parameters of an INIT or an INIT ACK in its packet.
const PARAMETERS: usize = HEADER + 20;

/// Type of the parameter that offers or accepts protection.
const PROTECTION: [u8; 2] = [0x80, 0x06];

/// Number of packets that include those of the handshake.
const FIRST_PACKETS: usize = 12;

/// Change of an observed packet before it is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Leaves the packet unchanged.
    Nothing,
    /// Inverts a bit.
    Flip { bit: usize },
    /// Truncates the packet.
    Cut { length: usize },
    /// Adds a chunk before or behind the content.
    Bundle { before: bool },
    /// Returns the packet to its sender, under that side's tag.
    Reflect,
}

/// One step of the attacker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attack {
    /// Repeats an observed packet, one of the first ones if `early`.
    Repeat { which: usize, early: bool, change: Change, stranger: bool },
    /// Sends a chunk of any type without protection.
    Chunk { from: Side, kind: usize, seed: u64, stranger: bool },
    /// Sends DATA that would be accepted without protection.
    Data { from: Side, ahead: u32, key_management: bool },
    /// Sends a record under no valid key.
    Record { from: Side, seed: u64, stranger: bool },
    /// Starts a handshake in a side's name, as after a restart.
    Restart { from: Side },
    /// Holds the next packets of a side.
    Hold { from: Side, count: usize },
    /// Releases the held packets in reverse order.
    Release,
    /// Loses the next packets of a side.
    Swallow { from: Side, count: usize },
}

/// Action of the attacker during the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnHandshake {
    /// No action.
    Watch,
    /// Removes the offer of protection from INITs, or its acceptance from INIT ACKs.
    Strip { init: bool, ack: bool },
    /// Inverts a bit of the offer.
    ChangeOffer,
    /// Answers INITs at once, from the server's address or from another one.
    AnswerFaster { stranger: bool },
}

/// Chunk types with a meaning, and some without.
const KINDS: [u8; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 0x41, 0x80, 0xC0, 0xC1];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Nothing),
        3 => (0..12_000_usize).prop_map(|bit| Change::Flip { bit }),
        1 => (0..1_500_usize).prop_map(|length| Change::Cut { length }),
        1 => prop::bool::ANY.prop_map(|before| Change::Bundle { before }),
        1 => Just(Change::Reflect),
    ]
}

/// Returns any step.
pub(crate) fn any() -> impl Strategy<Value = Attack> {
    let stranger = || prop::bool::weighted(0.3);
    prop_oneof![
        8 => (0..100_000_usize, prop::bool::weighted(0.3), change(), stranger())
            .prop_map(|(which, early, change, stranger)| Attack::Repeat { which, early, change, stranger }),
        3 => (side(), 0..KINDS.len(), any_seed(), stranger())
            .prop_map(|(from, kind, seed, stranger)| Attack::Chunk { from, kind, seed, stranger }),
        2 => (side(), 0..4_u32, prop::bool::ANY)
            .prop_map(|(from, ahead, key_management)| Attack::Data { from, ahead, key_management }),
        2 => (side(), any_seed(), stranger())
            .prop_map(|(from, seed, stranger)| Attack::Record { from, seed, stranger }),
        1 => side().prop_map(|from| Attack::Restart { from }),
        2 => (side(), 1..10_usize).prop_map(|(from, count)| Attack::Hold { from, count }),
        3 => Just(Attack::Release),
        1 => (side(), 1..10_usize).prop_map(|(from, count)| Attack::Swallow { from, count }),
    ]
}

fn any_seed() -> impl Strategy<Value = u64> {
    0..u64::MAX
}

/// Returns any interference with the handshake; mostly none, so that there is an association to attack.
pub(crate) fn on_handshake() -> impl Strategy<Value = OnHandshake> {
    let strip = prop_oneof![Just((true, false)), Just((false, true)), Just((true, true))];
    prop_oneof![
        16 => Just(OnHandshake::Watch),
        2 => strip.prop_map(|(init, ack)| OnHandshake::Strip { init, ack }),
        2 => Just(OnHandshake::ChangeOffer),
        1 => prop::bool::ANY.prop_map(|stranger| OnHandshake::AnswerFaster { stranger }),
    ]
}

/// An attacker on the path.
#[derive(Debug)]
pub(crate) struct Attacker {
    grip: Rc<RefCell<Grip>>,
    /// Results of the attacker's own packets.
    pub(crate) sent: Vec<Handled>,
}

/// Attacks on passing packets.
#[derive(Debug)]
struct Grip {
    on_handshake: OnHandshake,
    hold: [usize; 2],
    swallow: [usize; 2],
    held: Vec<Packet>,
    forged: Vec<Packet>,
    /// Endpoint that answers in the server's place, with its own cookies.
    accomplice: Endpoint,
}

impl Attacker {
    pub(crate) fn new(on_handshake: OnHandshake, setup: &Setup) -> Self {
        let other = Setup { seed: setup.seed ^ 1, ..setup.clone() };
        let grip = Grip {
            on_handshake,
            hold: [0; 2],
            swallow: [0; 2],
            held: Vec::new(),
            forged: Vec::new(),
            accomplice: other.endpoint(Side::B),
        };
        Attacker { grip: Rc::new(RefCell::new(grip)), sent: Vec::new() }
    }

    /// Places the attacker on the paths of a network.
    pub(crate) fn seize(&self, network: &mut Network) {
        let grip = Rc::clone(&self.grip);
        network.set_tampering(move |packet| grip.borrow_mut().pass(packet));
    }

    /// Sends the packets that were forged as others passed.
    pub(crate) fn answer(&mut self, pair: &mut impl Pair) {
        let forged = std::mem::take(&mut self.grip.borrow_mut().forged);
        for packet in forged {
            self.send(pair, packet);
        }
    }

    /// Performs one step.
    pub(crate) fn step(&mut self, pair: &mut impl Pair, attack: &Attack) {
        match *attack {
            Attack::Repeat { which, early, change, stranger } => {
                let Some(packet) = repeated(pair, which, early, change) else { return };
                self.send_from(pair, packet, stranger.then_some(which));
            }
            Attack::Chunk { from, kind, seed, stranger } => {
                let mut dice = Dice::new(seed);
                let length = dice.below(60) as usize;
                let (flags, value) = (dice.roll() as u8, dice.bytes(length));
                let kind = ChunkType(KINDS[kind]);
                let packet = plain(pair, from, |w| w.raw_parts(kind, flags, &value));
                self.send_from(pair, packet, stranger.then_some(length));
            }
            Attack::Data { from, ahead, key_management } => {
                let Some(data) = believable(pair, from, ahead, key_management) else { return };
                let packet = plain(pair, from, |w| w.data(&data, &[3, 22, 3, 3, 0, 1, 2]));
                self.send(pair, packet);
            }
            Attack::Record { from, seed, stranger } => {
                let mut dice = Dice::new(seed);
                let length = 20 + dice.below(60) as usize;
                let header = [0, 0b10_1000 | dice.below(4) as u8];
                let record = [&header[..], &dice.bytes(length)].concat();
                let packet = plain(pair, from, |w| w.raw_parts(ChunkType::DTLS, 0, &record));
                self.send_from(pair, packet, stranger.then_some(length));
            }
            Attack::Restart { from } => self.restart(pair, from),
            Attack::Hold { from, count } => self.grip.borrow_mut().hold[from.index()] += count,
            Attack::Swallow { from, count } => self.grip.borrow_mut().swallow[from.index()] += count,
            Attack::Release => {
                let held = std::mem::take(&mut self.grip.borrow_mut().held);
                for packet in held.into_iter().rev() {
                    self.send(pair, packet);
                }
            }
        }
    }

    fn send_from(&mut self, pair: &mut impl Pair, packet: Packet, stranger: Option<usize>) {
        let source = stranger.map_or(packet.source, |number| stranger_like(packet.source, number));
        self.send(pair, Packet { source, ..packet });
    }

    fn send(&mut self, pair: &mut impl Pair, packet: Packet) {
        self.sent.push(pair.deliver(&packet));
    }

    /// Sends INIT and COOKIE ECHO in the name of a side. Before the agreement they would open an association as usual.
    fn restart(&mut self, pair: &mut impl Pair, from: Side) {
        let to = pair.duo().nodes[from.other().index()].try_association();
        if to.is_none_or(|to| to.is_closed() || to.protection().is_none()) {
            return;
        }
        let (initiate_tag, initial_tsn) = (0x5EED_0001, Tsn::new(1));
        let init =
            InitRepr { initiate_tag, a_rwnd: 100_000, outbound_streams: 4, inbound_streams: 4, initial_tsn };
        let seen = pair.duo().kept.iter().flatten().count();
        let init = packet_between([PORT, PORT], 0, |w| w.init(&init, []));
        self.send(pair, crossing(pair, from, init));
        let answers = pair.duo().kept.iter().flatten().skip(seen).map(|(_, packet)| &packet.bytes);
        let to_us = |bytes: &&Vec<u8>| bytes[4..8] == initiate_tag.to_be_bytes();
        let echo = answers.filter(to_us).find_map(|bytes| {
            let tag = bytes[HEADER + 4..HEADER + 8].try_into().map(u32::from_be_bytes).ok()?;
            Some(packet_between([PORT, PORT], tag, |w| w.cookie_echo(&cookie_of(bytes).unwrap_or_default())))
        });
        if let Some(echo) = echo {
            self.send(pair, crossing(pair, from, echo));
        }
    }
}

impl Grip {
    /// Returns `true` if a packet passes.
    fn pass(&mut self, packet: &mut Packet) -> bool {
        if is_stranger(packet.destination) {
            return false;
        }
        self.meddle(packet);
        let from = packet.from.index();
        if self.swallow[from] > 0 {
            self.swallow[from] -= 1;
            return false;
        }
        if self.hold[from] > 0 {
            self.hold[from] -= 1;
            self.held.push(packet.clone());
            return false;
        }
        true
    }

    fn meddle(&mut self, packet: &mut Packet) {
        let kind = packet.bytes[HEADER];
        match self.on_handshake {
            OnHandshake::Strip { init, ack } => {
                if (kind == craft::INIT && init) || (kind == craft::INIT_ACK && ack) {
                    strip(&mut packet.bytes);
                }
            }
            OnHandshake::ChangeOffer if kind == craft::INIT => {
                if let Some((at, _)) = parameter(&packet.bytes) {
                    // The changed byte is within the tie breaker, which has no effect in this case.
                    packet.bytes[at + 4] ^= 1;
                    fix_checksum(&mut packet.bytes);
                }
            }
            OnHandshake::AnswerFaster { stranger } if kind == craft::INIT && packet.from == Side::A => {
                self.forge_answer(packet, stranger);
            }
            OnHandshake::Watch | OnHandshake::ChangeOffer | OnHandshake::AnswerFaster { .. } => {}
        }
    }

    fn forge_answer(&mut self, init: &Packet, stranger: bool) {
        let now = anabranch_core::time::Time::ZERO;
        let address = PathAddress::from((init.destination, init.source));
        let mut bytes = PacketBuffer::new();
        self.accomplice.handle_datagram(now, address, &init.bytes);
        if self.accomplice.poll_transmit(now, &mut bytes).is_some() {
            let source = if stranger { stranger_like(init.destination, 1) } else { init.destination };
            let (destination, bytes) = (init.source, bytes.to_vec());
            self.forged.push(Packet { from: Side::B, source, destination, bytes, may_fragment: false });
        }
    }
}

/// Returns the offset of the parameter that offers protection, and its padded length.
fn parameter(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut at = PARAMETERS;
    while let Some(header) = bytes.get(at..at + 4) {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]])).max(4).next_multiple_of(4);
        if header[..2] == PROTECTION {
            return Some((at, length.min(bytes.len() - at)));
        }
        at += length;
    }
    None
}

/// Removes the offer, as if the sender did not support protection.
fn strip(bytes: &mut Vec<u8>) {
    let Some((at, length)) = parameter(bytes) else { return };
    bytes.drain(at..at + length);
    let chunk = u16::from_be_bytes([bytes[HEADER + 2], bytes[HEADER + 3]]) - length as u16;
    bytes[HEADER + 2..HEADER + 4].copy_from_slice(&chunk.to_be_bytes());
    fix_checksum(bytes);
}

/// Returns an unused address of the same family.
fn stranger_like(address: IpAddr, number: usize) -> IpAddr {
    let number = 1 + number as u8 % 4;
    match address {
        IpAddr::V4(_) => Ipv4Addr::new(10, 77, 0, number).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xFD77, 0, 0, 0, 0, 0, 0, u16::from(number)).into(),
    }
}

fn is_stranger(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[1] == 77,
        IpAddr::V6(v6) => v6.segments()[0] == 0xFD77,
    }
}

/// Returns a packet between the first addresses.
fn crossing(pair: &impl Pair, from: Side, bytes: Vec<u8>) -> Packet {
    let setup = &pair.duo().setup;
    let (source, destination) = (setup.address(from, 0), setup.address(from.other(), 0));
    Packet { from, source, destination, bytes, may_fragment: false }
}

/// Returns the tag in a side's packets.
fn tag_of(pair: &impl Pair, from: Side) -> u32 {
    let theirs = pair.duo().kept.iter().flatten().map(|(_, packet)| packet).filter(|p| p.from == from);
    let tags = theirs.map(|packet| u32::from_be_bytes([4, 5, 6, 7].map(|at: usize| packet.bytes[at])));
    tags.rev().find(|&tag| tag != 0).unwrap_or(0)
}

fn plain(
    pair: &impl Pair,
    from: Side,
    chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Packet {
    crossing(pair, from, packet_between([PORT, PORT], tag_of(pair, from), chunks))
}

/// Returns DATA with one of the next TSNs of a side, derived from its INIT or INIT ACK.
fn believable(pair: &impl Pair, from: Side, ahead: u32, key_management: bool) -> Option<DataRepr> {
    let theirs = pair.duo().kept.iter().flatten().map(|(_, packet)| packet).filter(|p| p.from == from);
    let initial = theirs.into_iter().find_map(|packet| {
        let view = PacketView::parse(&packet.bytes).ok()?;
        match view.chunks().next()?.ok()?.decode().ok()? {
            Chunk::Init(init) | Chunk::InitAck(init) => Some(init.initial_tsn()),
            _ => None,
        }
    })?;
    Some(DataRepr {
        flags: DataFlags::WHOLE,
        tsn: Tsn::new(initial.get().wrapping_add(ahead)),
        stream: StreamId::new(0),
        ssn: Ssn::new(ahead as u16),
        ppid: if key_management { KEY_MANAGEMENT_PPID } else { 7 },
    })
}

/// Returns a changed copy of an observed packet.
fn repeated(pair: &impl Pair, which: usize, early: bool, change: Change) -> Option<Packet> {
    let kept = pair.duo().kept.as_ref()?;
    let among = if early { kept.len().min(FIRST_PACKETS) } else { kept.len() };
    let mut packet = kept.get(which.checked_rem(among)?)?.1.clone();
    let length = packet.bytes.len();
    match change {
        Change::Nothing => return Some(packet),
        Change::Flip { bit } => {
            let bit = bit % (length * 8);
            packet.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        Change::Cut { length: to } => packet.bytes.truncate(to % length),
        Change::Bundle { before } => {
            let at = if before { HEADER } else { length };
            packet.bytes.splice(at..at, [craft::COOKIE_ACK, 0, 0, 4]);
        }
        Change::Reflect => {
            std::mem::swap(&mut packet.source, &mut packet.destination);
            packet.from = packet.from.other();
            packet.bytes[4..8].copy_from_slice(&tag_of(pair, packet.from).to_be_bytes());
        }
    }
    fix_checksum(&mut packet.bytes);
    Some(packet)
}
