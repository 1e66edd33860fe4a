//! SACK chunk: acknowledges TSNs and advertises the receiver window (RFC 9260 section 3.3.4).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 3      | flags         | length = 16 + 4 * (N + X)     |
//!  +---------------+---------------+---------------+---------------+
//!  | cumulative TSN: all up to and including it have arrived       |
//!  +---------------------------------------------------------------+
//!  | advertised receiver window                                    |
//!  +-------------------------------+-------------------------------+
//!  | N gap ack blocks              | X duplicate TSNs              |
//!  +-------------------------------+-------------------------------+
//!  | N times: first, last, both as offsets from the cumulative TSN |
//!  +---------------------------------------------------------------+
//!  | X times: a TSN that arrived again since the last SACK         |
//!  +---------------------------------------------------------------+
//! ```

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{Items, WireList, item};
use crate::reader::Reader;
use crate::serial::Tsn;
use crate::writer::PacketWriter;

/// Length of a SACK up to its blocks, in bytes.
pub const SACK_HEADER_LEN: usize = 16;

/// Offset of the number of gap ack blocks from the start of the chunk. The number of duplicates follows.
const COUNTS: usize = 12;

/// Returns the length of a SACK with these numbers of gap ack blocks and duplicates.
pub const fn sack_len(gaps: usize, dups: usize) -> usize {
    SACK_HEADER_LEN.saturating_add(gaps.saturating_add(dups).saturating_mul(4))
}

/// Gap ack block: a run of received TSNs, as offsets from the cumulative TSN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GapBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

item!(
    GapBlock,
    4,
    |[a, b, c, d]: [u8; 4]| GapBlock { start: u16::from_be_bytes([a, b]), end: u16::from_be_bytes([c, d]) },
    |block: GapBlock| {
        // Swaps the bytes of both ends in one word, so that compilers vectorise it over several blocks.
        let ends = u32::from(block.start) | u32::from(block.end) << 16;
        (((ends >> 8) & 0x00FF_00FF) | ((ends << 8) & 0xFF00_FF00)).to_le_bytes()
    }
);

impl GapBlock {
    /// Returns `true` if the block does not start at the cumulative TSN and does not end before its start.
    pub const fn is_valid(self) -> bool {
        self.start != 0 && self.start <= self.end
    }
}

/// Fields of a SACK or NR-SACK except its lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackRepr {
    /// Cumulative TSN: the last TSN received in sequence.
    pub cum_tsn: Tsn,
    /// Advertised receiver window, in bytes.
    pub a_rwnd: u32,
    /// Flags. RFC 9260 defines none, but some multipath receivers put a count here.
    pub flags: u8,
}

impl SackRepr {
    pub(super) fn read(flags: u8, fields: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self { cum_tsn: Tsn::new(fields.u32()?), a_rwnd: fields.u32()?, flags })
    }
}

/// Reads a list of `count` four-byte items, `before` bytes after the position of `fields`. Returns the list and the
/// offset of its end.
pub(super) fn take_list<'a, T: crate::list::Item>(
    fields: &Reader<'a>,
    before: usize,
    count: u16,
) -> Result<(WireList<'a, T>, usize), ParseError> {
    let end = before + 4 * usize::from(count);
    let list = fields.rest().get(before..end).and_then(WireList::new);
    list.map(|list| (list, end)).ok_or(fields.error(ParseErrorKind::CountMismatch))
}

/// Received SACK whose counts match its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackView<'a> {
    repr: SackRepr,
    gaps: WireList<'a, GapBlock>,
    dups: WireList<'a, Tsn>,
}

impl<'a> SackView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let repr = SackRepr::read(chunk.flags(), &mut fields)?;
        let (gap_count, dup_count) = (fields.u16()?, fields.u16()?);
        let (gaps, end) = take_list(&fields, 0, gap_count)?;
        let (dups, end) = take_list(&fields, end, dup_count)?;
        if end != fields.rest().len() {
            return Err(fields.error(ParseErrorKind::CountMismatch));
        }
        Ok(Self { repr, gaps, dups })
    }

    /// Returns all fields except the lists.
    pub const fn repr(&self) -> SackRepr {
        self.repr
    }

    /// Returns the cumulative TSN.
    pub const fn cum_tsn(&self) -> Tsn {
        self.repr.cum_tsn
    }

    /// Returns the advertised receiver window, in bytes.
    pub const fn a_rwnd(&self) -> u32 {
        self.repr.a_rwnd
    }

    /// Returns the flags.
    pub const fn flags(&self) -> u8 {
        self.repr.flags
    }

    /// Returns the number of gap ack blocks.
    pub const fn gap_count(&self) -> usize {
        self.gaps.len()
    }

    /// Iterates over the gap ack blocks as sent. Their values are not checked; see [`GapBlock::is_valid`].
    pub fn gaps(&self) -> Items<'a, GapBlock> {
        self.gaps.iter()
    }

    /// Returns the number of duplicate TSNs.
    pub const fn dup_count(&self) -> usize {
        self.dups.len()
    }

    /// Iterates over the duplicate TSNs, each listed once per duplicate arrival.
    pub fn dups(&self) -> Items<'a, Tsn> {
        self.dups.iter()
    }
}

impl PacketWriter<'_> {
    /// Adds a SACK with these gap ack blocks and duplicates.
    pub fn sack(
        &mut self,
        repr: &SackRepr,
        gaps: impl IntoIterator<Item = GapBlock, IntoIter: ExactSizeIterator>,
        dups: impl IntoIterator<Item = Tsn, IntoIter: ExactSizeIterator>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::SACK, repr.flags, |cursor| {
            //= docs/rfc9260.txt#section-3.3.4
            //# The SACK chunk MUST contain the Cumulative TSN Ack, Advertised Receiver Window Credit (a_rwnd), Number of
            //# Gap Ack Blocks, and Number of Duplicate TSNs fields.
            cursor.u32(repr.cum_tsn.get())?;
            cursor.u32(repr.a_rwnd)?;
            cursor.u32(0)?;
            let gap_count = cursor.items(gaps)?;
            let dup_count = cursor.items(dups)?;
            cursor.set_u16(COUNTS, gap_count)?;
            cursor.set_u16(COUNTS + 2, dup_count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{decode, gaps, only, only_chunk, sack_repr, tsns, write};
    use proptest::prelude::*;

    //= docs/rfc9260.txt#section-3.3.4
    //= type=test
    //# The SACK chunk MUST contain the Cumulative TSN Ack, Advertised Receiver Window Credit (a_rwnd), Number of Gap Ack
    //# Blocks, and Number of Duplicate TSNs fields.
    #[test]
    fn counts_have_to_match_the_length() {
        let mut value = [0; 12 + 8];
        for (gap_count, dup_count) in
            [(0, 0), (1, 0), (0, 1), (3, 0), (2, 1), (0xFFFF, 0xFFFF), (0x8000, 0x8002)]
        {
            value[8..10].copy_from_slice(&u16::to_be_bytes(gap_count));
            value[10..12].copy_from_slice(&u16::to_be_bytes(dup_count));
            let error = decode(3, 0, &value).unwrap_err();
            assert_eq!(error, ParseError::new(ParseErrorKind::CountMismatch, 16), "{gap_count} {dup_count}");
        }
        value[8..12].copy_from_slice(&[0, 1, 0, 1]);
        assert!(decode(3, 0, &value).is_ok());
        assert_eq!(decode(3, 0, &value[..11]).unwrap_err().kind, ParseErrorKind::WrongLength);
        assert_eq!(decode(3, 0, &value[..19]).unwrap_err().kind, ParseErrorKind::CountMismatch);
    }

    #[test]
    fn invalid_blocks_are_kept_and_reported() {
        let block = |start, end| GapBlock { start, end };
        let odd = [block(0, 3), block(5, 4), block(1, 1), block(2, 0xFFFF)];
        let packet = write(|packet| packet.sack(&SackRepr::default(), odd, []));
        let judged: Vec<_> = only!(Sack, &packet).gaps().map(GapBlock::is_valid).collect();
        assert_eq!(judged, [false, false, true, true]);
    }

    proptest! {
        #[test]
        fn round_trip(repr in sack_repr(), gaps in gaps(), dups in tsns()) {
            let packet = write(|packet| packet.sack(&repr, gaps.iter().copied(), dups.iter().copied()));
            let view = only!(Sack, &packet);
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!((view.cum_tsn(), view.a_rwnd(), view.flags()), (repr.cum_tsn, repr.a_rwnd, repr.flags));
            prop_assert_eq!((view.gap_count(), view.dup_count()), (gaps.len(), dups.len()));
            prop_assert!(view.gaps().eq(gaps.iter().copied()));
            prop_assert!(view.dups().eq(dups.iter().copied()));
            prop_assert_eq!(only_chunk(&packet).bytes().len(), sack_len(gaps.len(), dups.len()));
        }
    }
}
