//! Invariants of every packet of a protected association, with any attacker on the path. No packet contains readable user data.
//! Each packet that reaches a side after it requires protection is a fresh record of the peer, is answered without an association,
//! or is dropped and counted once.

use std::collections::BTreeSet;

use anabranch_core::protection::KEY_MANAGEMENT_PPID;
use anabranch_core::{Discard, Discards, Handled};
use anabranch_wire::{Chunk, ChunkType, PacketView};

use crate::flow::MARK;
use crate::network::{Packet, Side};

/// Header and encrypted content. An attacker can change the rest of a packet.
type Record = ([u8; 3], Vec<u8>);

/// Outcomes of the packets that reached a side while it required protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Number of all packets.
    pub packets: u64,
    /// Number of records of the peer.
    pub taken: u64,
    /// Number of packets answered without an association, and of INITs that a closing association answers.
    pub answered: u64,
    /// Numbers of dropped packets by reason, in the order of [`Discard::ALL`].
    pub dropped: [u64; Discard::ALL.len()],
}

impl Fates {
    /// Returns the number of packets dropped for this reason.
    pub fn dropped_for(&self, reason: Discard) -> u64 {
        self.dropped[index_of(reason)]
    }
}

fn index_of(reason: Discard) -> usize {
    Discard::ALL.iter().position(|&other| other == reason).expect("every reason is in the list")
}

/// Observer of every packet.
#[derive(Debug, Default)]
pub struct Witness {
    sealed: [BTreeSet<Record>; 2],
    taken: [BTreeSet<Record>; 2],
    fates: [Fates; 2],
}

impl Witness {
    /// Returns the outcomes of the packets that reached a side while it required protection.
    pub fn fates(&self, to: Side) -> &Fates {
        &self.fates[to.index()]
    }

    /// Records that a side has sent a packet.
    ///
    /// # Panics
    /// Panics if user data in the packet is readable.
    pub fn sent(&mut self, packet: &Packet) {
        let readable = packet.bytes.windows(MARK.len()).any(|bytes| bytes == MARK);
        assert!(!readable, "{:?}: what a user sends can be read in a packet", packet.from);
        if let Some(record) = sole_record(&packet.bytes) {
            self.sealed[packet.from.index()].insert(record);
            return;
        }
        let view = PacketView::parse(&packet.bytes).expect("a packet is well formed");
        for chunk in view.chunks().flatten() {
            let Ok(Chunk::Data(data)) = chunk.decode() else { continue };
            assert_eq!(data.ppid(), KEY_MANAGEMENT_PPID, "{:?}: data without protection", packet.from);
        }
    }

    /// Records that a packet has reached a side. `required` is `true` if the side accepted only protected packets before.
    ///
    /// # Panics
    /// Panics if the packet was accepted or counted wrongly.
    pub fn received(
        &mut self,
        packet: &Packet,
        handled: Handled,
        required: bool,
        before: &Discards,
        after: &Discards,
    ) {
        let to = packet.from.other();
        if let Handled::Discarded(reason) = handled {
            assert_eq!(after.of(reason), before.of(reason) + 1, "{to:?}: a drop is counted by its reason");
            assert_eq!(after.total(), before.total() + 1, "{to:?}: a drop is counted once");
        }
        let record = sole_record(&packet.bytes);
        if !required {
            if let (Handled::Delivered(_), Some(record)) = (handled, record) {
                self.taken[to.index()].insert(record);
            }
            return;
        }
        let fates = &mut self.fates[to.index()];
        fates.packets += 1;
        match handled {
            Handled::New(_) => panic!("{to:?}: a second association beside a protected one"),
            Handled::Replied => fates.answered += 1,
            // RFC 9260 section 9.2: an endpoint in SHUTDOWN-ACK-SENT only repeats its SHUTDOWN ACK, in a record.
            Handled::Delivered(_) if first_kind(&packet.bytes) == Some(ChunkType::INIT) => {
                fates.answered += 1;
            }
            Handled::Delivered(_) => {
                fates.taken += 1;
                let record = record.unwrap_or_else(|| panic!("{to:?}: a plain packet was taken: {packet:?}"));
                let sealed = self.sealed[packet.from.index()].contains(&record);
                assert!(sealed, "{to:?}: a record was taken that its peer has not sealed");
                let is_new = self.taken[to.index()].insert(record);
                assert!(is_new, "{to:?}: a record was taken twice");
            }
            Handled::Discarded(reason) => {
                fates.dropped[index_of(reason)] += 1;
                let known = record.is_some_and(|record| self.taken[to.index()].contains(&record));
                let may_be = if known { &OF_KNOWN[..] } else { &OF_OTHERS[..] };
                assert!(may_be.contains(&reason), "{to:?}: {reason:?} for a packet, known: {known}");
            }
        }
    }

    /// Checks that every packet that reached a side under protection has exactly one outcome.
    ///
    /// # Panics
    /// Panics if one has not.
    pub fn check(&self) {
        for (side, fates) in Side::BOTH.into_iter().zip(&self.fates) {
            let dropped: u64 = fates.dropped.iter().sum();
            assert_eq!(fates.packets, fates.taken + fates.answered + dropped, "{side:?}: {fates:?}");
        }
    }
}

/// Reasons to drop a record that was accepted before, also if a changed bit gives it another tag.
const OF_KNOWN: [Discard; 5] =
    [Discard::Replayed, Discard::NoKey, Discard::Checksum, Discard::OutOfTheBlue, Discard::VerificationTag];

/// Reasons to drop any other packet.
const OF_OTHERS: [Discard; 16] = [
    Discard::Malformed,
    Discard::Checksum,
    Discard::VerificationTag,
    Discard::OutOfTheBlue,
    Discard::CookieForged,
    Discard::CookieStale,
    Discard::CookieUnexpected,
    Discard::BadInit,
    Discard::Flood,
    Discard::ShortQuestion,
    Discard::Unexpected,
    Discard::Unprotected,
    Discard::NoKey,
    Discard::Replayed,
    Discard::NotAuthentic,
    Discard::KeySpent,
];

fn first_kind(bytes: &[u8]) -> Option<ChunkType> {
    let view = PacketView::parse(bytes).ok()?;
    Some(view.chunks().next()?.ok()?.kind())
}

/// Returns the record of a packet that contains nothing else.
fn sole_record(bytes: &[u8]) -> Option<Record> {
    let view = PacketView::parse(bytes).ok()?;
    let mut chunks = view.chunks();
    let Ok(Chunk::Dtls(dtls)) = chunks.next()?.ok()?.decode() else { return None };
    let (header, content) = dtls.record().ok()?;
    chunks.next().is_none().then(|| (header.to_wire(), content.to_vec()))
}
