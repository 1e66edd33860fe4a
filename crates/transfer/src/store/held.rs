//! Blocks of a file that the receiver has.

use rangemap::RangeSet;

use crate::block::{BLOCK_BYTES, block_at, block_len, blocks_of};
use crate::protocol::Run;

/// Blocks that a part file contains, each counted once. The number of received blocks bounds the memory, because each range
/// contains at least one.
#[derive(Debug, Default)]
pub(crate) struct HeldBlocks {
    blocks: RangeSet<u64>,
    count: u64,
    bytes: u64,
    /// Index and length of the last block, if it is shorter than the others.
    short: Option<(u64, u32)>,
}

impl HeldBlocks {
    pub(crate) fn contains(&self, index: u64) -> bool {
        self.blocks.contains(&index)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns `true` if a block of a file of this size, or of a stream of unknown size, is consistent with the blocks stored so
    /// far.
    pub(crate) fn admits(&self, size_bytes: Option<u64>, index: u64, len: u32) -> bool {
        let fits = match size_bytes {
            Some(size) => index < blocks_of(size) && len == block_len(size, index),
            None => self.fits_stream(index, len),
        };
        fits && len > 0 && !self.contains(index)
    }

    /// Returns `true` if the block is valid in a stream, in which only the last block may be short.
    fn fits_stream(&self, index: u64, len: u32) -> bool {
        let is_in_range = index < u64::MAX / u64::from(BLOCK_BYTES) && len <= BLOCK_BYTES;
        let is_before_end = self.short.is_none_or(|(short, _)| index < short);
        let is_end =
            len == BLOCK_BYTES || self.short.is_none() && self.last().is_none_or(|last| last < index);
        is_in_range && is_before_end && is_end
    }

    fn last(&self) -> Option<u64> {
        self.blocks.last().map(|range| range.end - 1)
    }

    /// Returns the end of the last block, in bytes.
    pub(crate) fn end_bytes(&self) -> u64 {
        let last_len = self.short.map_or(BLOCK_BYTES, |(_, len)| len);
        self.last().map_or(0, |last| block_at(last).saturating_add(u64::from(last_len)))
    }

    /// Adds a block that [is admitted](Self::admits).
    pub(crate) fn insert(&mut self, index: u64, len: u32) {
        debug_assert!(!self.contains(index), "a block is counted once");
        self.blocks.insert(index..index + 1);
        self.count += 1;
        self.bytes += u64::from(len);
        if len < BLOCK_BYTES {
            self.short = Some((index, len));
        }
    }

    /// Returns `true` if these are all blocks of a file of this size.
    pub(crate) fn is_all_of(&self, size_bytes: u64) -> bool {
        let blocks = blocks_of(size_bytes);
        self.bytes == size_bytes && self.blocks.gaps(&(0..blocks)).next().is_none()
    }

    /// Returns `true` if all of these are valid in a file of this size.
    pub(crate) fn is_within(&self, size_bytes: u64) -> bool {
        let last_len = self.short.map_or(BLOCK_BYTES, |(_, len)| len);
        self.last().is_none_or(|last| block_len(size_bytes, last) == last_len)
    }

    /// Returns at most `most` runs, in order.
    pub(crate) fn runs(&self, most: usize) -> Vec<Run> {
        let run = |range: &std::ops::Range<u64>| Run { first: range.start, count: range.end - range.start };
        self.blocks.iter().take(most).map(run).collect()
    }
}

/// Returns `true` if a block is in one of these runs, which are in order.
pub(crate) fn contain(runs: &[Run], index: u64) -> bool {
    let behind = runs.partition_point(|run| run.first <= index);
    behind.checked_sub(1).is_some_and(|at| index - runs[at].first < runs[at].count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = BLOCK_BYTES as u64;

    fn held(blocks: &[u64]) -> HeldBlocks {
        let mut held = HeldBlocks::default();
        blocks.iter().for_each(|&index| held.insert(index, BLOCK_BYTES));
        held
    }

    #[test]
    fn blocks_are_reported_as_ordered_runs() {
        let held = held(&[9, 1, 0, 2, 7, 10]);
        let run = |first, count| Run { first, count };
        let runs = held.runs(usize::MAX);
        assert_eq!(runs, [run(0, 3), run(7, 1), run(9, 2)]);
        assert_eq!(held.runs(2), [run(0, 3), run(7, 1)]);
        let told: Vec<u64> = (0..12).filter(|index| contain(&runs, *index)).collect();
        assert_eq!(told, [0, 1, 2, 7, 9, 10]);
        assert_eq!((held.count(), held.bytes()), (6, 6 * MIB));
    }

    #[test]
    fn file_is_complete_by_its_held_blocks_and_not_by_their_number() {
        let size = 3 * MIB;
        assert!(!held(&[0, 1]).is_all_of(size));
        assert!(held(&[2, 0, 1]).is_all_of(size));
        assert!(!held(&[0, 1, 3]).is_all_of(size));
        assert!(held(&[]).is_all_of(0));
    }

    #[test]
    fn a_block_has_a_place_once_and_within_its_file() {
        let held = held(&[1]);
        assert!(held.admits(Some(3 * MIB + 5), 3, 5));
        for (index, len) in [(1, BLOCK_BYTES), (3, BLOCK_BYTES), (4, 5), (0, 5), (u64::MAX, 5)] {
            assert!(!held.admits(Some(3 * MIB + 5), index, len), "{index} {len}");
        }
    }

    #[test]
    fn a_stream_ends_with_its_only_short_block() {
        let mut stream = held(&[0, 4]);
        assert!(stream.admits(None, 2, BLOCK_BYTES));
        assert!(!stream.admits(None, 2, 7), "something is held behind it");
        assert!(!stream.admits(None, 6, 0) && !stream.admits(None, u64::MAX, BLOCK_BYTES));
        assert!(stream.admits(None, 6, 7));
        stream.insert(6, 7);
        for (index, len) in [(7, BLOCK_BYTES), (7, 1), (6, 7), (5, 1)] {
            assert!(!stream.admits(None, index, len), "{index} {len}");
        }
        assert!(stream.admits(None, 5, BLOCK_BYTES));
        assert_eq!(
            (stream.end_bytes(), held(&[0, 4]).end_bytes(), held(&[]).end_bytes()),
            (6 * MIB + 7, 5 * MIB, 0)
        );
        assert!(stream.is_within(6 * MIB + 7));
        for size in [6 * MIB + 8, 6 * MIB + 6, 6 * MIB, 7 * MIB, 0] {
            assert!(!stream.is_within(size), "{size}");
        }
        assert!(held(&[0, 4]).is_within(5 * MIB) && held(&[0, 4]).is_within(5 * MIB + 1));
        assert!(!held(&[0, 4]).is_within(5 * MIB - 1));
    }
}
