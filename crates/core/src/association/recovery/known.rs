//! TSNs that gap blocks of earlier SACKs have acknowledged.

use std::ops::Deref;

use crate::intervals::{self, Interval};
use crate::sliding::Sliding;

/// TSNs that gap blocks have acknowledged, as disjoint inclusive intervals in order. Intervals up to the cumulative TSN are removed
/// with the next change.
#[derive(Clone, Debug)]
pub(super) struct KnownBlocks {
    intervals: Sliding<Interval>,
    /// Reused memory in which the next intervals are computed.
    united: Vec<Interval>,
}

impl KnownBlocks {
    pub(super) const fn new() -> Self {
        KnownBlocks { intervals: Sliding::new(), united: Vec::new() }
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        self.intervals.reserve(additional);
        self.united.reserve(additional);
    }

    /// Adds `blocks`, which may overlap the known ones.
    pub(super) fn add(&mut self, blocks: &[Interval], cumulative: u64) {
        let known = intervals::above(&self.intervals, cumulative);
        intervals::unite(known, blocks, &mut self.united);
        std::mem::swap(self.intervals.as_vec(), &mut self.united);
    }

    /// Replaces the intervals behind the first `same` above the cumulative TSN, which equal those of `blocks`.
    pub(super) fn replace_behind(&mut self, blocks: &[Interval], same: usize, cumulative: u64) {
        let passed = self.intervals.len() - intervals::above(&self.intervals, cumulative).len();
        self.intervals.truncate(passed + same);
        self.intervals.forget(passed);
        self.intervals.extend(blocks[same..].iter().copied());
        debug_assert_eq!(*self.intervals, *blocks);
    }
}

impl Deref for KnownBlocks {
    type Target = [Interval];

    fn deref(&self) -> &[Interval] {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_add_up_until_the_cumulative_tsn_passes_them() {
        let mut known = KnownBlocks::new();
        known.replace_behind(&[(16, 16), (18, 18)], 0, 9);
        known.add(&[(12, 13), (17, 17)], 9);
        assert_eq!(*known, [(12, 13), (16, 18)]);
        known.add(&[], 13);
        assert_eq!(*known, [(16, 18)]);
    }

    #[test]
    fn replaced_blocks_keep_the_unchanged_ones_at_the_start() {
        let mut known = KnownBlocks::new();
        known.replace_behind(&[(12, 13), (15, 18)], 0, 9);
        known.replace_behind(&[(15, 18), (20, 20)], 1, 13);
        assert_eq!(*known, [(15, 18), (20, 20)]);
        known.replace_behind(&[(15, 15)], 0, 13);
        assert_eq!(*known, [(15, 15)]);
    }
}
