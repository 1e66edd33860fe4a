//! Common form of SACK and NR-SACK.

use anabranch_wire::{GapBlock, Items, NrSackView, SackView, Tsn};

use crate::units::WindowBytes;

/// Received SACK or NR-SACK.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) cum_tsn: Tsn,
    pub(crate) a_rwnd: WindowBytes,
    pub(crate) flags: u8,
    /// Blocks whose data the receiver may drop.
    gaps: Items<'a, GapBlock>,
    /// Blocks whose data the receiver never drops.
    pub(crate) kept: Items<'a, GapBlock>,
    /// TSNs that arrived more than once.
    pub(crate) duplicates: Items<'a, Tsn>,
}

impl Acknowledgement<'_> {
    /// Returns every block, renegable or not. The first list is empty only if both are.
    pub(crate) fn gap_lists(&self) -> [Items<'_, GapBlock>; 2] {
        let (gaps, kept) = (self.gaps.clone(), self.kept.clone());
        if gaps.len() == 0 { [kept, gaps] } else { [gaps, kept] }
    }
}

impl<'a> From<SackView<'a>> for Acknowledgement<'a> {
    fn from(sack: SackView<'a>) -> Self {
        Acknowledgement {
            cum_tsn: sack.cum_tsn(),
            a_rwnd: WindowBytes::new(u64::from(sack.a_rwnd())),
            flags: sack.flags(),
            gaps: sack.gaps(),
            kept: Items::default(),
            duplicates: sack.dups(),
        }
    }
}

impl<'a> From<NrSackView<'a>> for Acknowledgement<'a> {
    fn from(sack: NrSackView<'a>) -> Self {
        Acknowledgement {
            cum_tsn: sack.cum_tsn(),
            a_rwnd: WindowBytes::new(u64::from(sack.a_rwnd())),
            flags: sack.flags(),
            gaps: sack.gaps(),
            kept: sack.nr_gaps(),
            duplicates: sack.dups(),
        }
    }
}
