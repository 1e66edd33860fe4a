//! Reading the gap blocks of a SACK.
//!
//! While paths deliver at different times each SACK has hundreds of blocks, and nearly all of them were in the SACK before. They are
//! compared with what is known, and only those behind the first that differs are read and judged.

use anabranch_wire::{GapBlock, Item};
use std::ops::Deref;

use crate::association::Association;
use crate::association::acknowledgement::Acknowledgement;
use crate::intervals::{self, Interval};
use crate::sliding::Sliding;

/// The gap blocks of the latest SACK as unwrapped inclusive intervals, in order and apart.
#[derive(Debug)]
pub(super) struct SackBlocks {
    intervals: Sliding<Interval>,
    /// The low 16 bits of their first and last TSNs, with which those of the next SACK are compared several at a time.
    ends: Sliding<[u16; 2]>,
}

impl SackBlocks {
    pub(super) const fn new() -> Self {
        Self { intervals: Sliding::new(), ends: Sliding::new() }
    }

    fn has_room(&self) -> bool {
        self.intervals.capacity() > 0
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        self.intervals.reserve(additional);
        self.ends.reserve(additional);
    }

    /// Leaves the blocks above the cumulative TSN. If it stands in one, none is left: a SACK that repeats that block is wrong, since
    /// blocks begin above the cumulative TSN, and is not to be believed for having been right before.
    fn forget_passed(&mut self, cumulative: u64) {
        let passed = self.len() - intervals::above(self, cumulative).len();
        self.intervals.forget(passed);
        self.ends.forget(passed);
        if self.first().is_some_and(|&(start, _)| start <= cumulative) {
            self.truncate(0);
        }
    }

    /// How many of the first are repeated by a SACK with a cumulative TSN below all of them, and not below that of the SACK before.
    fn repeated(&self, gaps: &[[u8; 4]], cumulative: u64) -> usize {
        // So no two TSNs that either SACK can name have the same low bits.
        debug_assert!(self.first().is_none_or(|&(start, _)| start > cumulative));
        debug_assert!(self.last().is_none_or(|&(_, end)| end - cumulative <= u64::from(u16::MAX)));
        let low = cumulative as u16;
        common_start(gaps, &self.ends, |gap, &[start, end]| {
            (gap.start.wrapping_add(low) == start) & (gap.end.wrapping_add(low) == end)
        })
    }

    fn truncate(&mut self, len: usize) {
        self.intervals.truncate(len);
        self.ends.truncate(len);
    }

    fn push(&mut self, interval: Interval) {
        self.intervals.push(interval);
        self.ends.push(low_bits(interval));
    }

    /// Puts the blocks in order, and joins those that overlap or touch.
    fn sort(&mut self) {
        self.intervals.sort_unstable();
        intervals::join(self.intervals.as_vec());
        self.ends.clear();
        self.ends.extend(self.intervals.iter().copied().map(low_bits));
    }

    /// Replaces the blocks by others, in order and apart.
    pub(super) fn replace(&mut self, blocks: &[Interval]) {
        self.truncate(0);
        blocks.iter().for_each(|&block| self.push(block));
    }
}

impl Deref for SackBlocks {
    type Target = [Interval];

    fn deref(&self) -> &[Interval] {
        &self.intervals
    }
}

fn low_bits((start, end): Interval) -> [u16; 2] {
    [start as u16, end as u16]
}

impl Association {
    /// Puts the blocks in order, and finds out how many of the first are known.
    pub(super) fn read_blocks(&mut self, cumulative: u64, sack: &Acknowledgement<'_>) {
        let last = self.sender.outstanding().next_tsn();
        let [mut gaps, more] = sack.gap_lists();
        if !self.sack.blocks.has_room() && gaps.len() > 0 {
            self.sack.make_room();
            self.sender.make_room_for_blocks();
        }
        let blocks = &mut self.sack.blocks;
        blocks.forget_passed(cumulative);
        let repeated = blocks.repeated(gaps.as_wire(), cumulative);
        blocks.truncate(repeated);
        if repeated > 0 {
            gaps.nth(repeated - 1);
        }
        // Blocks that are as the standard wants them, in order and apart, need neither sorting nor joining.
        let (mut in_order, mut lowest_apart) = (true, blocks.last().map_or(0, |&(_, end)| end + 2));
        gaps.chain(more).for_each(|gap| {
            let (start, end) = unwrapped(gap, cumulative);
            // A block that is empty, touches the cumulative TSN or names what was never sent is not believed.
            if gap.is_valid() && end < last {
                in_order &= start >= lowest_apart;
                lowest_apart = end + 2;
                blocks.push((start, end));
            }
        });
        if !in_order {
            blocks.sort();
        }
        self.count_known_blocks(cumulative, if in_order { repeated } else { 0 });
    }

    /// `repeated` of the first blocks were in the SACK before.
    fn count_known_blocks(&mut self, cumulative: u64, repeated: usize) {
        let known = intervals::above(self.sender.outstanding().gap_acked(), cumulative);
        // Where no block was missed in the SACK before, its blocks are what is known.
        let least = if self.sack.reneging_at.is_none() { repeated } else { 0 };
        debug_assert_eq!(self.sack.blocks[..least], known[..least]);
        self.sack.known_blocks = least + intervals::common_start(&self.sack.blocks[least..], &known[least..]);
    }
}

/// How many blocks are compared without a branch for each.
const AT_ONCE: usize = 16;

/// How many blocks at the start of a SACK are those of a list.
pub(super) fn repeated(gaps: &[[u8; 4]], list: &[Interval], cumulative: u64) -> usize {
    common_start(gaps, list, |gap, &(start, end)| {
        let block = unwrapped(gap, cumulative);
        (block.0 == start) & (block.1 == end)
    })
}

/// How many items at the start of two lists are the same. Neither `same` nor the code around it branches for a single pair.
fn common_start<B>(gaps: &[[u8; 4]], list: &[B], same: impl Fn(GapBlock, &B) -> bool) -> usize {
    let same = |(gap, block): (&[u8; 4], &B)| same(GapBlock::from_wire(*gap), block);
    let parts = gaps.as_chunks::<AT_ONCE>().0.iter().zip(list.as_chunks::<AT_ONCE>().0);
    let all_same =
        parts.take_while(|(gaps, list)| gaps.iter().zip(*list).fold(true, |all, pair| all & same(pair)));
    let whole = all_same.count() * AT_ONCE;
    whole + gaps[whole..].iter().zip(&list[whole..]).take_while(|&pair| same(pair)).count()
}

fn unwrapped(gap: GapBlock, cumulative: u64) -> Interval {
    (cumulative + u64::from(gap.start), cumulative + u64::from(gap.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_forgotten_as_the_cumulative_tsn_passes_them_and_all_if_it_enters_one() {
        for (cumulative, left) in [(9, 2), (10, 0), (11, 0), (12, 1), (19, 1), (20, 0), (24, 0)] {
            let mut blocks = SackBlocks::new();
            blocks.replace(&[(10, 12), (20, 24)]);
            blocks.forget_passed(cumulative);
            assert_eq!(blocks.len(), left, "{cumulative}");
        }
    }

    #[test]
    fn blocks_are_repeated_up_to_the_first_that_differs() {
        let list: Vec<Interval> = (0..40).map(|i| (1_010 + 3 * i, 1_011 + 3 * i)).collect();
        let wire = |cumulative: u64| -> Vec<[u8; 4]> {
            let gap = |&(start, end): &Interval| GapBlock {
                start: (start - cumulative) as u16,
                end: (end - cumulative) as u16,
            };
            list.iter().map(|block| gap(block).to_wire()).collect()
        };
        for cumulative in [1_000, 1_005] {
            let gaps = wire(cumulative);
            for len in 0..=40 {
                assert_eq!(repeated(&gaps, &list[..len], cumulative), len);
                assert_eq!(repeated(&gaps[..len], &list, cumulative), len);
                let mut other = gaps.clone();
                if let Some(gap) = other.get_mut(len) {
                    gap[3] ^= 1;
                    assert_eq!(repeated(&other, &list, cumulative), len);
                }
            }
        }
        assert_eq!(repeated(&wire(1_000), &list, 1_001), 0, "all have moved");
    }

    /// Blocks in order and apart, from the lengths of gaps and blocks in turn, as far as a SACK can name them.
    fn blocks_above(cumulative: u64, lengths: &[(u64, u64)]) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let mut before = cumulative;
        for (gap, len) in lengths {
            let start = before + 1 + gap;
            before = start + len;
            if before - cumulative <= u64::from(u16::MAX) {
                blocks.push((start, before));
            }
        }
        blocks
    }

    fn low_halves() -> impl Strategy<Value = u64> {
        prop_oneof![1 => 0..u64::from(u16::MAX), 9 => 1_u64..4]
    }

    proptest! {
        #[test]
        fn low_bits_tell_as_much_of_what_is_repeated_as_whole_tsns(
            cumulative in (1_u64 << 32) - 70_000..(1 << 32) + 70_000,
            lengths in prop::collection::vec((low_halves(), low_halves()), 0..100),
            advance in low_halves(),
            changes in prop::collection::vec((0_usize..100, any::<[u8; 4]>()), 0..3),
            others in prop::collection::vec(any::<[u8; 4]>(), 0..3),
            len in 0_usize..110,
        ) {
            let mut blocks = blocks_above(cumulative, &lengths);
            let cumulative = cumulative + advance;
            blocks.forget_passed(cumulative);
            let distance = |tsn: u64| (tsn - cumulative) as u16;
            let gap = |&(start, end): &Interval| GapBlock { start: distance(start), end: distance(end) };
            let mut gaps: Vec<[u8; 4]> = blocks.iter().map(|block| gap(block).to_wire()).collect();
            for (at, change) in changes {
                gaps.get_mut(at).into_iter().flatten().zip(change).for_each(|(byte, bits)| *byte ^= bits);
            }
            gaps.extend(others);
            gaps.truncate(len);
            let pairs = gaps.iter().zip(blocks.iter());
            let same = |&(gap, block): &(&[u8; 4], &Interval)| {
                unwrapped(GapBlock::from_wire(*gap), cumulative) == *block
            };
            let expected = pairs.take_while(same).count();
            prop_assert_eq!(blocks.repeated(&gaps, cumulative), expected);
            prop_assert_eq!(repeated(&gaps, &blocks, cumulative), expected);
        }

        #[test]
        fn blocks_in_any_order_are_sorted_and_joined(
            mut list in prop::collection::vec((1_u64..60, 0_u64..5), 0..20),
            passed in 0_u64..30,
        ) {
            let mut blocks = SackBlocks::new();
            list.iter().for_each(|&(start, len)| blocks.push((start, start + len)));
            blocks.sort();
            list.sort_unstable();
            let mut expected: Vec<Interval> = list.iter().map(|&(start, len)| (start, start + len)).collect();
            intervals::join(&mut expected);
            prop_assert_eq!(&*blocks, &expected[..]);
            blocks.forget_passed(passed);
            let low: Vec<[u16; 2]> = blocks.iter().copied().map(low_bits).collect();
            prop_assert_eq!(&*blocks.ends, &low[..]);
        }
    }
}
