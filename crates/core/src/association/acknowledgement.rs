//! What SACK and NR-SACK have in common.

use anabranch_wire::{GapBlock, NrSackView, SackView, Tsn};

/// A received SACK or NR-SACK.
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

    /// Every block, whether its data may be dropped again or not.
    pub(crate) fn all_gaps(&self) -> impl Iterator<Item = GapBlock> {
        let (plain, both) = match self {
            Acknowledgement::Sack(sack) => (Some(sack.gaps()), None),
            Acknowledgement::NrSack(sack) => (None, Some(sack.gaps().chain(sack.nr_gaps()))),
        };
        plain.into_iter().flatten().chain(both.into_iter().flatten())
    }

    /// The blocks whose data the receiver keeps.
    pub(crate) fn kept(&self) -> impl Iterator<Item = GapBlock> {
        let blocks = match self {
            Acknowledgement::Sack(_) => None,
            Acknowledgement::NrSack(sack) => Some(sack.nr_gaps()),
        };
        blocks.into_iter().flatten()
    }

    /// The TSNs that arrived more than once.
    pub(crate) fn dups(&self) -> impl Iterator<Item = Tsn> {
        let (plain, other) = match self {
            Acknowledgement::Sack(sack) => (Some(sack.dups()), None),
            Acknowledgement::NrSack(sack) => (None, Some(sack.dups())),
        };
        plain.into_iter().flatten().chain(other.into_iter().flatten())
    }
}
