//! Common view of SACK and NR-SACK.

use anabranch_wire::{GapBlock, Items, NrSackView, SackView, Tsn};

/// Received SACK or NR-SACK.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Acknowledgement<'a> {
    Sack(SackView<'a>),
    NrSack(NrSackView<'a>),
}

impl Acknowledgement<'_> {
    pub(crate) fn cum_tsn(&self) -> Tsn {
        match self {
            Acknowledgement::Sack(sack) => sack.cum_tsn(),
            Acknowledgement::NrSack(sack) => sack.cum_tsn(),
        }
    }

    pub(crate) fn a_rwnd(&self) -> u32 {
        match self {
            Acknowledgement::Sack(sack) => sack.a_rwnd(),
            Acknowledgement::NrSack(sack) => sack.a_rwnd(),
        }
    }

    pub(crate) fn flags(&self) -> u8 {
        match self {
            Acknowledgement::Sack(sack) => sack.flags(),
            Acknowledgement::NrSack(sack) => sack.flags(),
        }
    }

    /// Returns every block, renegable or not. The first list is empty only if both are.
    pub(crate) fn gap_lists(&self) -> [Items<'_, GapBlock>; 2] {
        let gaps = match self {
            Acknowledgement::Sack(sack) => sack.gaps(),
            Acknowledgement::NrSack(sack) => sack.gaps(),
        };
        if gaps.len() == 0 { [self.kept(), gaps] } else { [gaps, self.kept()] }
    }

    /// Returns the blocks whose data the receiver never drops.
    pub(crate) fn kept(&self) -> Items<'_, GapBlock> {
        match self {
            Acknowledgement::Sack(_) => Items::default(),
            Acknowledgement::NrSack(sack) => sack.nr_gaps(),
        }
    }

    /// Returns the TSNs that arrived more than once.
    pub(crate) fn dups(&self) -> Items<'_, Tsn> {
        match self {
            Acknowledgement::Sack(sack) => sack.dups(),
            Acknowledgement::NrSack(sack) => sack.dups(),
        }
    }
}
