//! NR-SACK chunk: a SACK in which the receiver promises not to renege on some blocks
//! (draft-natarajan-tsvwg-sctp-nrsack, the basis of draft-tuexen-tsvwg-sctp-multipath).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 16     | flags         | length = 20 + 4 * (N + M + X) |
//!  +---------------+---------------+---------------+---------------+
//!  | cumulative TSN                                                |
//!  +---------------------------------------------------------------+
//!  | advertised receiver window                                    |
//!  +-------------------------------+-------------------------------+
//!  | N gap blocks that may be      | M gap blocks that will not be |
//!  | dropped (renegable)           | dropped (non-renegable)       |
//!  +-------------------------------+-------------------------------+
//!  | X duplicate TSNs              | reserved = 0                  |
//!  +-------------------------------+-------------------------------+
//!  | N blocks, then M blocks, then X TSNs, as in a SACK            |
//!  +---------------------------------------------------------------+
//! ```

use super::sack::{GapBlock, SackRepr, take_list};
use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{Items, WireList};
use crate::serial::Tsn;
use crate::writer::PacketWriter;

/// Length of an NR-SACK up to its blocks, in bytes.
pub const NR_SACK_HEADER_LEN: usize = 20;

/// Offset of the number of renegable blocks from the start of the chunk. The other two counts follow.
const COUNTS: usize = 12;

/// Returns the length of an NR-SACK with these numbers of renegable blocks, non-renegable blocks and duplicates.
pub const fn nr_sack_len(gaps: usize, nr_gaps: usize, dups: usize) -> usize {
    NR_SACK_HEADER_LEN.saturating_add(gaps.saturating_add(nr_gaps).saturating_add(dups).saturating_mul(4))
}

/// Received NR-SACK whose counts match its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NrSackView<'a> {
    repr: SackRepr,
    gaps: WireList<'a, GapBlock>,
    nr_gaps: WireList<'a, GapBlock>,
    dups: WireList<'a, Tsn>,
}

impl<'a> NrSackView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let repr = SackRepr::read(chunk.flags(), &mut fields)?;
        let (gap_count, nr_gap_count, dup_count) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let _reserved = fields.u16()?;
        let (gaps, end) = take_list(&fields, 0, gap_count)?;
        let (nr_gaps, end) = take_list(&fields, end, nr_gap_count)?;
        let (dups, end) = take_list(&fields, end, dup_count)?;
        if end != fields.rest().len() {
            return Err(fields.error(ParseErrorKind::CountMismatch));
        }
        Ok(Self { repr, gaps, nr_gaps, dups })
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

    /// Returns the number of renegable blocks.
    pub const fn gap_count(&self) -> usize {
        self.gaps.len()
    }

    /// Iterates over the renegable blocks, whose data the receiver may still drop.
    pub fn gaps(&self) -> Items<'a, GapBlock> {
        self.gaps.iter()
    }

    /// Returns the number of non-renegable blocks.
    pub const fn nr_gap_count(&self) -> usize {
        self.nr_gaps.len()
    }

    /// Iterates over the non-renegable blocks, whose data the receiver keeps.
    pub fn nr_gaps(&self) -> Items<'a, GapBlock> {
        self.nr_gaps.iter()
    }

    /// Returns the number of duplicate TSNs.
    pub const fn dup_count(&self) -> usize {
        self.dups.len()
    }

    /// Iterates over the duplicate TSNs.
    pub fn dups(&self) -> Items<'a, Tsn> {
        self.dups.iter()
    }
}

impl PacketWriter<'_> {
    /// Adds an NR-SACK with these renegable blocks, non-renegable blocks and duplicates.
    pub fn nr_sack(
        &mut self,
        repr: &SackRepr,
        gaps: impl IntoIterator<Item = GapBlock, IntoIter: ExactSizeIterator>,
        nr_gaps: impl IntoIterator<Item = GapBlock, IntoIter: ExactSizeIterator>,
        dups: impl IntoIterator<Item = Tsn, IntoIter: ExactSizeIterator>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::NR_SACK, repr.flags, |cursor| {
            cursor.u32(repr.cum_tsn.get())?;
            cursor.u32(repr.a_rwnd)?;
            cursor.put(&[0; 8])?;
            let gap_count = cursor.items(gaps)?;
            let nr_gap_count = cursor.items(nr_gaps)?;
            let dup_count = cursor.items(dups)?;
            cursor.set_u16(COUNTS, gap_count)?;
            cursor.set_u16(COUNTS + 2, nr_gap_count)?;
            cursor.set_u16(COUNTS + 4, dup_count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{decode, gaps, only, only_chunk, sack_repr, tsns, write};
    use proptest::prelude::*;

    #[test]
    fn counts_have_to_match_the_length() {
        let mut value = [0; 16 + 12];
        for counts in [[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4], [1, 1, 2], [0xFFFF; 3], [2, 0, 0]] {
            for (field, count) in value[8..14].chunks_mut(2).zip(counts) {
                field.copy_from_slice(&u16::to_be_bytes(count));
            }
            let error = decode(0x10, 0, &value).unwrap_err();
            assert_eq!(error, ParseError::new(ParseErrorKind::CountMismatch, 20), "{counts:?}");
        }
        value[8..14].copy_from_slice(&[0, 1, 0, 1, 0, 1]);
        assert!(decode(0x10, 0, &value).is_ok());
        assert_eq!(decode(0x10, 0, &value[..15]).unwrap_err().kind, ParseErrorKind::WrongLength);
    }

    proptest! {
        #[test]
        fn round_trip(repr in sack_repr(), gaps in gaps(), nr_gaps in gaps(), dups in tsns()) {
            let packet = write(|packet| {
                packet.nr_sack(&repr, gaps.iter().copied(), nr_gaps.iter().copied(), dups.iter().copied())
            });
            let view = only!(NrSack, &packet);
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!((view.cum_tsn(), view.a_rwnd(), view.flags()), (repr.cum_tsn, repr.a_rwnd, repr.flags));
            let counts = (view.gap_count(), view.nr_gap_count(), view.dup_count());
            prop_assert_eq!(counts, (gaps.len(), nr_gaps.len(), dups.len()));
            prop_assert!(view.gaps().eq(gaps.iter().copied()));
            prop_assert!(view.nr_gaps().eq(nr_gaps.iter().copied()));
            prop_assert!(view.dups().eq(dups.iter().copied()));
            let len = nr_sack_len(gaps.len(), nr_gaps.len(), dups.len());
            prop_assert_eq!(only_chunk(&packet).bytes().len(), len);
        }
    }
}
