//! Gap blocks of a SACK, compared with those of the SACK before.
//!
//! While paths deliver at different times each SACK has hundreds of blocks, and nearly all of them were in the SACK before. They
//! are compared with those, several at a time, and only the ones that differ are processed. A hole that is filled moves all blocks
//! behind it up by one, without changing them.

use anabranch_wire::{GapBlock, Item};
use std::ops::{Deref, Range};

use crate::association::recovery::{Acknowledgement, LossRecovery};
use crate::intervals::{self, Interval};
use crate::send::Sender;
use crate::sliding::Sliding;

/// Blocks that replace others. Both lists are ordered and disjoint, so their changes suffice to compare them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Blocks of the SACK.
    pub(super) blocks: Range<usize>,
    /// Known blocks that these blocks replace.
    pub(super) known: Range<usize>,
}

/// Gap blocks of the latest SACK as unwrapped inclusive intervals, ordered and disjoint.
#[derive(Clone, Debug)]
pub(super) struct SackBlocks {
    intervals: Sliding<Interval>,
    /// Low 16 bits of the first and last TSNs of the blocks. Several are compared at a time with those of the next SACK.
    ends: Sliding<[u16; 2]>,
    /// Intervals of the SACK before, from the first that the latest SACK does not repeat.
    before: Vec<Interval>,
    ends_before: Vec<[u16; 2]>,
    /// Differences between the latest SACK and the one before.
    changes: Vec<Change>,
}

/// Progress of reading the blocks of a SACK.
struct Reading {
    cumulative: u64,
    /// First TSN that was never sent.
    unsent: u64,
    /// `true` while blocks are ordered and disjoint, as the standard requires: the next one starts at `lowest_apart` or above.
    in_order: bool,
    lowest_apart: u64,
}

impl SackBlocks {
    pub(super) const fn new() -> Self {
        Self {
            intervals: Sliding::new(),
            ends: Sliding::new(),
            before: Vec::new(),
            ends_before: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn has_room(&self) -> bool {
        self.intervals.capacity() > 0
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        self.intervals.reserve(additional);
        self.ends.reserve(additional);
        self.before.reserve(additional);
        self.ends_before.reserve(additional);
        self.changes.reserve(additional);
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the number of unchanged blocks at the start.
    pub(super) fn unchanged(&self) -> usize {
        self.changes.first().map_or(self.len(), |change| change.blocks.start)
    }

    /// Replaces the known blocks from `same` to `known` by all blocks from `same` on.
    pub(super) fn change_all(&mut self, same: usize, known: usize) {
        self.changes.clear();
        self.note_change(same, same..known);
    }

    /// Records that the blocks from `at` on replace these known blocks.
    fn note_change(&mut self, at: usize, known: Range<usize>) {
        let blocks = at..self.len();
        if !blocks.is_empty() || !known.is_empty() {
            self.changes.push(Change { blocks, known });
        }
    }

    /// Removes the blocks up to the cumulative TSN. If it lies inside a block, all are removed: a SACK that repeats that block is
    /// malformed, because blocks start above the cumulative TSN.
    fn forget_passed(&mut self, cumulative: u64) {
        let passed = self.len() - intervals::above(self, cumulative).len();
        self.intervals.forget(passed);
        self.ends.forget(passed);
        if self.first().is_some_and(|&(start, _)| start <= cumulative) {
            self.truncate(0);
        }
    }

    /// Returns the number of blocks at the start that a SACK repeats. Its cumulative TSN is below all of them, and at least that of
    /// the SACK before.
    fn repeated(&self, gaps: &[[u8; 4]], cumulative: u64) -> usize {
        // Therefore all TSNs that either SACK can name have different low bits.
        debug_assert!(self.first().is_none_or(|&(start, _)| start > cumulative));
        debug_assert!(self.last().is_none_or(|&(_, end)| end - cumulative <= u64::from(u16::MAX)));
        common_ends(gaps, &self.ends, cumulative)
    }

    /// Replaces the SACK before, whose first blocks are repeated.
    fn replace_from(&mut self, repeated: usize) {
        self.before.clear();
        self.before.extend_from_slice(&self.intervals[repeated..]);
        self.ends_before.clear();
        self.ends_before.extend_from_slice(&self.ends[repeated..]);
        self.changes.clear();
        self.truncate(repeated);
    }

    /// Reads the blocks behind `repeated`: runs that were in the SACK before, and new ones between them.
    fn read(&mut self, gaps: &[[u8; 4]], repeated: usize, reading: &mut Reading) {
        let (mut next, mut old) = (repeated, 0);
        while next < gaps.len() {
            let (at, known) = (self.len(), repeated + old);
            let mut run = 0;
            while run == 0 && next < gaps.len() {
                let end = self.read_one(GapBlock::from_wire(gaps[next]), reading);
                next += 1;
                old += self.before[old..].iter().take_while(|&&(start, _)| start <= end).count();
                run = common_ends(&gaps[next..], &self.ends_before[old..], reading.cumulative);
            }
            self.note_change(at, known..repeated + old);
            self.repeat(old..old + run, reading);
            (next, old) = (next + run, old + run);
        }
        self.note_change(self.len(), repeated + old..repeated + self.before.len());
    }

    /// Reads a block and returns its end.
    fn read_one(&mut self, gap: GapBlock, reading: &mut Reading) -> u64 {
        let (start, end) = unwrapped(gap, reading.cumulative);
        // A block is ignored if it is empty, touches the cumulative TSN or names a TSN that was never sent.
        if gap.is_valid() && end < reading.unsent {
            reading.in_order &= start >= reading.lowest_apart;
            reading.lowest_apart = end + 2;
            self.push((start, end));
        }
        end
    }

    /// Copies blocks from the SACK before.
    fn repeat(&mut self, which: Range<usize>, reading: &mut Reading) {
        let (Some(first), Some(last)) =
            (self.before[which.clone()].first(), self.before[which.clone()].last())
        else {
            return;
        };
        reading.in_order &= first.0 >= reading.lowest_apart;
        reading.lowest_apart = last.1 + 2;
        self.intervals.extend_from_slice(&self.before[which.clone()]);
        self.ends.extend_from_slice(&self.ends_before[which]);
    }

    fn truncate(&mut self, len: usize) {
        self.intervals.truncate(len);
        self.ends.truncate(len);
    }

    fn push(&mut self, interval: Interval) {
        self.intervals.push(interval);
        self.ends.push(low_bits(interval));
    }

    /// Sorts the blocks, and joins those that overlap or touch.
    fn sort(&mut self) {
        self.intervals.sort_unstable();
        intervals::join(self.intervals.as_vec());
        self.ends.clear();
        self.ends.extend(self.intervals.iter().copied().map(low_bits));
    }

    /// Replaces the blocks by others, which are ordered and disjoint.
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

impl LossRecovery {
    /// Reads the blocks in order, and finds those that are known.
    pub(super) fn read_blocks(&mut self, cumulative: u64, sack: &Acknowledgement<'_>, sender: &Sender) {
        let [gaps, more] = sack.gap_lists();
        if !self.blocks.has_room() && gaps.len() > 0 {
            self.make_room();
        }
        let blocks = &mut self.blocks;
        blocks.forget_passed(cumulative);
        let were = blocks.len();
        let repeated = blocks.repeated(gaps.as_wire(), cumulative);
        blocks.replace_from(repeated);
        let mut reading = Reading {
            cumulative,
            unsent: sender.outstanding().next_tsn(),
            in_order: true,
            lowest_apart: blocks.last().map_or(0, |&(_, end)| end + 2),
        };
        blocks.read(gaps.as_wire(), repeated, &mut reading);
        // A second list is ordered in itself, but mostly not behind the first.
        let one_list = more.len() == 0;
        more.for_each(|gap| {
            blocks.read_one(gap, &mut reading);
        });
        if !reading.in_order {
            blocks.sort();
        }
        let known = intervals::above(&self.known, cumulative);
        // If the SACK before covered all known blocks, its blocks are the known ones.
        let compared = reading.in_order && one_list && self.reneging_at.is_none() && were == known.len();
        if !compared {
            blocks.change_all(intervals::common_start(blocks, known), known.len());
        }
        debug_assert!(only_changes_differ(blocks, known), "{:?}", blocks.changes);
    }
}

/// Returns `true` if blocks and known blocks differ by the changes alone.
fn only_changes_differ(blocks: &SackBlocks, known: &[Interval]) -> bool {
    let mut from = (0, 0);
    let ends = (blocks.len()..blocks.len(), known.len()..known.len());
    let changes = blocks.changes.iter().map(|change| (change.blocks.clone(), change.known.clone()));
    changes.chain([ends]).all(|(ours, theirs)| {
        let same = blocks[from.0..ours.start] == known[from.1..theirs.start];
        from = (ours.end, theirs.end);
        same
    })
}

/// Number of blocks that are compared without a branch for each.
const AT_ONCE: usize = 16;

/// Returns the number of blocks at the start of a SACK that a list has too.
pub(super) fn repeated(gaps: &[[u8; 4]], list: &[Interval], cumulative: u64) -> usize {
    common_start(gaps, list, |gap, &(start, end)| {
        let block = unwrapped(gap, cumulative);
        (block.0 == start) & (block.1 == end)
    })
}

/// Returns the number of blocks at the start of a SACK with these low bits.
fn common_ends(gaps: &[[u8; 4]], ends: &[[u16; 2]], cumulative: u64) -> usize {
    let low = cumulative as u16;
    common_start(gaps, ends, |gap, &[start, end]| {
        (gap.start.wrapping_add(low) == start) & (gap.end.wrapping_add(low) == end)
    })
}

/// Returns the number of equal items at the start of two lists. The comparison does not branch for a single pair, neither in `same`
/// nor in the code around it.
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
    fn cumulative_tsn_removes_passed_blocks_and_all_if_it_enters_one() {
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

    /// Changes the blocks of a SACK for the next one: fills a hole, lets a block grow, begins or removes one, or draws any blocks.
    fn change(gaps: &mut Vec<GapBlock>, at: usize, edit: u8, bytes: [u8; 4]) {
        let at = at % gaps.len().max(1);
        let next = gaps.get(at + 1).copied();
        match (gaps.get_mut(at), next, edit) {
            (Some(gap), Some(next), 0) => {
                gap.end = next.end;
                gaps.remove(at + 1);
            }
            (Some(gap), _, 1) => gap.end = gap.end.saturating_add(1),
            (Some(_), _, 2) => drop(gaps.remove(at)),
            (Some(gap), Some(next), 3) if gap.end + 3 < next.start => {
                let between = gap.end + 2;
                gaps.insert(at + 1, GapBlock { start: between, end: between });
            }
            (_, _, 4) => gaps.insert(at.min(gaps.len()), GapBlock::from_wire(bytes)),
            _ => {}
        }
    }

    fn low_halves() -> impl Strategy<Value = u64> {
        prop_oneof![1 => 0..u64::from(u16::MAX), 9 => 1_u64..4]
    }

    #[test]
    fn a_hole_that_is_filled_and_a_block_that_grows_change_nothing_else() {
        let cumulative = 1 << 32;
        let mut blocks = SackBlocks::new();
        let of_one_tsn: Vec<Interval> = (1..=100).map(|i| (cumulative + 2 * i, cumulative + 2 * i)).collect();
        blocks.replace(&of_one_tsn);
        let gap = |start: u16, end: u16| GapBlock { start, end }.to_wire();
        let mut gaps: Vec<[u8; 4]> = (1..=100).map(|i| gap(2 * i, 2 * i)).collect();
        gaps[49] = gap(100, 102);
        gaps.remove(50);
        gaps[98] = gap(200, 203);

        let repeated = blocks.repeated(&gaps, cumulative);
        blocks.replace_from(repeated);
        let mut reading = Reading { cumulative, unsent: u64::MAX, in_order: true, lowest_apart: 0 };
        blocks.read(&gaps, repeated, &mut reading);
        let changes = [Change { blocks: 49..50, known: 49..51 }, Change { blocks: 98..99, known: 99..100 }];
        assert_eq!((reading.in_order, blocks.changes()), (true, &changes[..]));
    }

    proptest! {
        #[test]
        fn repeated_blocks_are_found_by_low_bits_of_tsns(
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
        fn blocks_are_those_of_the_sack_and_only_changes_differ_from_those_before(
            cumulative in (1_u64 << 32) - 70_000..(1 << 32) + 70_000,
            lengths in prop::collection::vec((low_halves(), low_halves()), 0..60),
            edits in prop::collection::vec((0_usize..60, 0_u8..5, any::<[u8; 4]>()), 0..6),
        ) {
            let apart: Vec<(u64, u64)> = lengths.into_iter().map(|(gap, len)| (gap.max(1), len)).collect();
            let mut blocks = blocks_above(cumulative, &apart);
            let known = blocks.to_vec();
            let distance = |tsn: u64| (tsn - cumulative) as u16;
            let gap = |&(start, end): &Interval| GapBlock { start: distance(start), end: distance(end) };
            let mut gaps: Vec<GapBlock> = known.iter().map(gap).collect();
            edits.into_iter().for_each(|(at, edit, bytes)| change(&mut gaps, at, edit, bytes));
            let wire: Vec<[u8; 4]> = gaps.iter().map(|gap| gap.to_wire()).collect();

            let repeated = blocks.repeated(&wire, cumulative);
            blocks.replace_from(repeated);
            let lowest_apart = blocks.last().map_or(0, |&(_, end)| end + 2);
            let mut reading = Reading { cumulative, unsent: u64::MAX, in_order: true, lowest_apart };
            blocks.read(&wire, repeated, &mut reading);

            let valid = gaps.iter().filter(|gap| gap.is_valid());
            let expected: Vec<Interval> = valid.map(|&gap| unwrapped(gap, cumulative)).collect();
            prop_assert_eq!(&*blocks, &expected[..]);
            prop_assert_eq!(&*blocks.ends, &expected.iter().copied().map(low_bits).collect::<Vec<_>>()[..]);
            prop_assert_eq!(reading.in_order, expected.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            if reading.in_order {
                prop_assert!(only_changes_differ(&blocks, &known), "{:?}", blocks.changes);
                for (ours, theirs) in [(&expected, &known), (&known, &expected)] {
                    let (mut whole, mut parts) = (Vec::new(), Vec::new());
                    intervals::subtract(ours, theirs, &mut whole);
                    for Change { blocks, known: before } in blocks.changes() {
                        let (ours_at, theirs_at) =
                            if *ours == expected { (blocks, before) } else { (before, blocks) };
                        intervals::subtract(&ours[ours_at.clone()], &theirs[theirs_at.clone()], &mut parts);
                    }
                    prop_assert_eq!(parts, whole);
                }
            }
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
