//! Reading the gap blocks of a SACK.
//!
//! While paths deliver at different times each SACK has hundreds of blocks, and nearly all of them were in the SACK before. They are
//! compared with what is known, and only those behind the first that differs are read and judged.

use anabranch_wire::{GapBlock, Item};

use crate::association::Association;
use crate::association::acknowledgement::Acknowledgement;
use crate::intervals::{self, Interval};

impl Association {
    /// Puts the blocks in order, and finds out how many of the first are known.
    pub(super) fn read_blocks(&mut self, cumulative: u64, sack: &Acknowledgement<'_>) {
        let last = self.sender.outstanding().next_tsn();
        let [mut gaps, more] = sack.gap_lists();
        if self.sack.blocks.capacity() == 0 && gaps.len() > 0 {
            self.sack.make_room();
            self.sender.make_room_for_blocks();
        }
        let blocks = &mut self.sack.blocks;
        forget_passed(blocks, cumulative);
        let repeated = repeated(gaps.as_wire(), blocks, cumulative);
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
            blocks.sort_unstable();
            intervals::join(blocks);
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

/// Leaves the blocks above the cumulative TSN. If it stands in one, none is left: a SACK that repeats that block is wrong, since blocks
/// begin above the cumulative TSN, and is not to be believed for having been right before.
fn forget_passed(blocks: &mut Vec<Interval>, cumulative: u64) {
    blocks.drain(..blocks.len() - intervals::above(blocks, cumulative).len());
    if blocks.first().is_some_and(|&(start, _)| start <= cumulative) {
        blocks.clear();
    }
}

/// How many blocks are compared without a branch for each.
const AT_ONCE: usize = 16;

/// How many blocks at the start of a SACK are those of a list.
pub(super) fn repeated(gaps: &[[u8; 4]], list: &[Interval], cumulative: u64) -> usize {
    let differ = |(gap, block): (&[u8; 4], &Interval)| {
        let (start, end) = unwrapped(GapBlock::from_wire(*gap), cumulative);
        (start ^ block.0) | (end ^ block.1)
    };
    let parts = gaps.chunks_exact(AT_ONCE).zip(list.chunks_exact(AT_ONCE));
    let same =
        parts.take_while(|(gaps, list)| gaps.iter().zip(*list).fold(0, |all, pair| all | differ(pair)) == 0);
    let whole = same.count() * AT_ONCE;
    whole + gaps[whole..].iter().zip(&list[whole..]).take_while(|&pair| differ(pair) == 0).count()
}

fn unwrapped(gap: GapBlock, cumulative: u64) -> Interval {
    (cumulative + u64::from(gap.start), cumulative + u64::from(gap.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_forgotten_as_the_cumulative_tsn_passes_them_and_all_if_it_enters_one() {
        for (cumulative, left) in [(9, 2), (10, 0), (11, 0), (12, 1), (19, 1), (20, 0), (24, 0)] {
            let mut blocks = vec![(10, 12), (20, 24)];
            forget_passed(&mut blocks, cumulative);
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
}
