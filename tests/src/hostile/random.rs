//! Messages of a misbehaving peer: valid chunks of every kind, in any order, with any values.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_wire::{
    AuthRepr, Cause, ChunkType, DataFlags, DataRepr, GapBlock, InitRepr, NoSpace, PacketWriter, Param,
    SackRepr, Ssn, StreamId, Tsn,
};

use super::craft;
use super::peer::{Peer, Wire};
use crate::dice::Dice;

/// Generator of an attack from a seed.
#[derive(Clone, Debug)]
pub struct Attack {
    dice: Dice,
}

/// Values around which the chunks of a message are built.
#[derive(Clone, Copy, Debug)]
struct Known {
    next_tsn: Tsn,
    seen_tsn: Tsn,
    repr: InitRepr,
}

impl Attack {
    /// Returns the attack of this seed.
    pub fn new(seed: u64) -> Self {
        Attack { dice: Dice::new(seed ^ 0xBAD_5EED) }
    }

    /// Returns the pause before the next message: usually none, sometimes until timers expire.
    pub fn pause(&mut self) -> Span {
        match self.dice.below(100) {
            0..70 => Span::ZERO,
            70..90 => Span::from_micros(self.dice.below(50_000)),
            90..99 => Span::from_millis(self.dice.below(2_000)),
            _ => Span::from_secs(self.dice.below(90)),
        }
    }

    /// Returns `true` if the peer answers as a real one.
    pub fn has_manners(&mut self) -> bool {
        self.dice.chance(300)
    }

    /// Returns the action of the endpoint's application, out of this number, or `None`.
    pub fn application(&mut self, things: u64) -> Option<u64> {
        self.dice.chance(20).then(|| self.dice.below(things))
    }

    /// Returns the next message for an endpoint with which this peer is associated.
    pub fn message<W: Wire>(&mut self, peer: &mut Peer<W>) -> Vec<u8> {
        let known = Known { next_tsn: peer.next_tsn, seen_tsn: peer.seen_tsn, repr: peer.init_repr() };
        if self.dice.chance(20) {
            // An earlier message, if it stores any.
            let kind = self.dice.below(15) as u8;
            if let Some(old) = peer.sent_of(kind).last() {
                return old.clone();
            }
        }
        let tag = if self.dice.chance(970) { peer.tag } else { self.dice.roll() as u32 };
        let chunks = 1 + self.dice.below(4) * self.dice.below(4);
        let mut bytes = craft::packet_between(peer.ports, tag, |writer| {
            for _ in 0..chunks {
                // Chunks that do not fit are omitted.
                let _ = self.chunk(writer, known);
            }
            Ok(())
        });
        if self.dice.chance(30) {
            self.damage(&mut bytes);
        }
        // In half of the cases its TSN skips some, as after lost packets.
        let ahead = self.dice.below(3) as u32;
        peer.next_tsn = Tsn::new(known.next_tsn.get().wrapping_add(ahead));
        bytes
    }

    /// Changes a byte of a packet behind its header, and its checksum.
    fn damage(&mut self, bytes: &mut [u8]) {
        if bytes.len() > 12 {
            let at = 12 + self.dice.below(bytes.len() as u64 - 12) as usize;
            bytes[at] = self.dice.roll() as u8;
            craft::fix_checksum(bytes);
        }
    }

    /// Returns a number near this one, or any number.
    fn near(&mut self, center: u32) -> u32 {
        match self.dice.below(10) {
            0..6 => center.wrapping_add(self.dice.below(20) as u32).wrapping_sub(8),
            6..8 => center.wrapping_add(self.dice.below(5_000) as u32),
            8 => center.wrapping_add(self.dice.below(1 << 31) as u32),
            _ => self.dice.roll() as u32,
        }
    }

    fn near_tsn(&mut self, center: Tsn) -> Tsn {
        Tsn::new(self.near(center.get()))
    }

    fn filler(&mut self, most: u64) -> Vec<u8> {
        let count = self.dice.below(most + 1) as usize;
        self.dice.bytes(count)
    }

    fn address(&mut self) -> IpAddr {
        match self.dice.below(3) {
            0 => IpAddr::from([10, 0, self.dice.below(3) as u8, self.dice.below(12) as u8]),
            1 => IpAddr::from((self.dice.roll() as u32).to_be_bytes()),
            _ => IpAddr::from((u128::from(self.dice.roll()) << 64).to_be_bytes()),
        }
    }

    fn chunk(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        match self.dice.below(1000) {
            0..380 => self.data(writer, known),
            380..560 => self.sack(writer, known),
            560..640 => self.forward_tsn(writer, known),
            640..700 => {
                let info = self.filler(300);
                writer.heartbeat(&info)
            }
            700..730 => {
                let info = self.dice.bytes(16);
                writer.heartbeat_ack(&info)
            }
            730..790 => self.unknown(writer),
            790..850 => self.asconf(writer),
            850..890 => self.error(writer),
            890..930 => self.handshake(writer, known),
            930..936 => {
                let payload = self.filler(40);
                writer.raw_parts(ChunkType(self.dice.below(16) as u8), self.dice.roll() as u8, &payload)
            }
            936..980 => {
                let code = AuthRepr { key_id: self.dice.below(2) as u16, hmac_id: self.dice.below(4) as u16 };
                writer.auth(code, 32).map(|pending| writer.authenticate(pending, |_| [7; 32]))
            }
            980..985 => writer.ecne(Tsn::new(1)),
            985..998 => writer.cwr(Tsn::new(1)),
            _ => self.end(writer, known),
        }
    }

    fn data(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        let flags = self.dice.roll();
        let whole = self.dice.chance(980);
        let repr = DataRepr {
            flags: DataFlags {
                ending: whole || flags & 1 != 0,
                beginning: whole || flags & 2 != 0,
                unordered: flags & 4 != 0,
                immediate: flags & 8 != 0,
            },
            tsn: self.near_tsn(known.next_tsn),
            stream: StreamId::new(if self.dice.chance(950) {
                self.dice.below(5) as u16
            } else {
                flags as u16
            }),
            ssn: Ssn::new(if self.dice.chance(800) { self.dice.below(30) as u16 } else { flags as u16 }),
            ppid: 0,
        };
        let longest = if self.dice.chance(200) { 1_300 } else { 8 };
        let mut payload = self.filler(longest);
        if payload.is_empty() && self.dice.chance(950) {
            // The association would usually end if it had no user data.
            payload.push(1);
        }
        writer.data(&repr, &payload)
    }

    fn sack(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        let a_rwnd = [0, 1, 1_000, 100_000, u32::MAX][self.dice.below(5) as usize];
        let flags = if self.dice.chance(100) { self.dice.roll() as u8 } else { 0 };
        // An acknowledgement of unsent data would usually end the association.
        let behind = Tsn::new(known.seen_tsn.get().wrapping_sub(self.dice.below(12) as u32));
        let cum_tsn = if self.dice.chance(990) { behind } else { self.near_tsn(known.seen_tsn) };
        let repr = SackRepr { cum_tsn, a_rwnd, flags };
        let blocks = self.dice.below(4) * self.dice.below(20);
        let span = if self.dice.chance(100) { 65_535 } else { 30 };
        let gaps: Vec<_> = (0..blocks)
            .map(|_| {
                let (start, end) = (self.dice.below(span) as u16, self.dice.below(span) as u16);
                GapBlock { start, end }
            })
            .collect();
        let dups: Vec<_> = (0..self.dice.below(4)).map(|_| self.near_tsn(known.seen_tsn)).collect();
        if self.dice.chance(200) {
            writer.nr_sack(&repr, gaps.iter().copied(), gaps.iter().rev().copied(), dups)
        } else {
            writer.sack(&repr, gaps, dups)
        }
    }

    fn forward_tsn(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        let streams: Vec<_> = (0..self.dice.below(5))
            .map(|_| (StreamId::new(self.dice.below(6) as u16), Ssn::new(self.near(3) as u16)))
            .collect();
        writer.forward_tsn(self.near_tsn(known.next_tsn), streams)
    }

    /// Writes chunks of undefined types with all four kinds of action, and of stream reconfiguration and I-DATA.
    fn unknown(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let kinds = [0x82, 0x40, 0xC2, 0x3F, 0x7F, 0xBF, 0xFE];
        let kind = kinds[self.dice.below(kinds.len() as u64) as usize];
        let count = if self.dice.chance(300) { 30 } else { 1 };
        let longest = if count == 1 { 600 } else { 4 };
        for _ in 0..count {
            let value = self.filler(longest);
            writer.raw_parts(ChunkType(kind), self.dice.roll() as u8, &value)?;
        }
        Ok(())
    }

    fn asconf(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let serial = self.dice.roll() as u32;
        let address = self.address();
        if self.dice.chance(700) { writer.asconf(serial, address, []) } else { writer.asconf_ack(serial, []) }
    }

    fn error(&mut self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        let quoted = self.filler(60);
        let cause = match self.dice.below(6) {
            0 => Cause::InvalidStream(StreamId::new(self.dice.roll() as u16)),
            1 => Cause::StaleCookie { staleness_us: self.dice.roll() as u32 },
            2 => Cause::OutOfResource,
            3 => Cause::ProtocolViolation(&quoted),
            4 => Cause::UnrecognizedChunk(&quoted),
            _ => Cause::UnsupportedHmac { hmac_id: 1 },
        };
        writer.error([cause])
    }

    fn handshake(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        let repr = InitRepr { initiate_tag: self.near(known.repr.initiate_tag), ..known.repr };
        let cookie = self.filler(150);
        match self.dice.below(5) {
            0 => writer.cookie_echo(&cookie),
            1 => writer.cookie_ack(),
            2 => {
                let listed = match self.address() {
                    IpAddr::V4(v4) => Param::Ipv4Address(v4),
                    IpAddr::V6(v6) => Param::Ipv6Address(v6),
                };
                writer.init(&repr, [listed])
            }
            3 => writer.init_ack(&repr, [Param::StateCookie(&cookie)]),
            _ => {
                let length = self.dice.below(100) as usize;
                writer.pad(length.max(4))
            }
        }
    }

    /// Writes a chunk that may end the association.
    fn end(&mut self, writer: &mut PacketWriter<'_>, known: Known) -> Result<(), NoSpace> {
        match self.dice.below(10) {
            0..4 => writer.shutdown(self.near_tsn(known.seen_tsn)),
            4..6 => writer.shutdown_ack(),
            6..8 => writer.shutdown_complete(self.dice.chance(500)),
            _ => writer.abort(self.dice.chance(300), []),
        }
    }
}
