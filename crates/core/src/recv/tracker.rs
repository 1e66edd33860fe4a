//! Record of the TSNs that have arrived: cumulative TSN, blocks beyond it, and duplicates (RFC 9260 sections 3.3.4 and 6.2).
//!
//! TSNs are unwrapped to 64 bits before, so all comparisons are those of plain integers.

use arrayvec::ArrayVec;

use crate::sliding::Sliding;

/// Largest distance from the cumulative TSN in a gap block, which has 16 bits (RFC 9260 section 3.3.4).
const REACH: u64 = u16::MAX as u64;
/// Number of blocks for which memory is reserved when the first one is added.
const BLOCK_ROOM: usize = 64;
/// Number of duplicates listed until the next SACK; further ones are not listed.
const LISTED_DUPLICATES: usize = 32;

/// Class of an arriving TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The TSN has arrived before, or a FORWARD-TSN has passed over it.
    Duplicate,
    /// The TSN is the lowest missing one.
    Next,
    /// The TSN is new, and at least one below it is missing.
    Beyond,
    /// The TSN is too far ahead for a SACK to name it, and must be dropped.
    OutOfReach,
}

/// TSNs received so far.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    /// TSN up to which all have arrived.
    cumulative: u64,
    /// First TSN of each block beyond it, ascending; at least one TSN is missing between two blocks. The low 16 bits suffice: no
    /// TSN out of reach is recorded, and the cumulative TSN only rises.
    starts: Sliding<u16>,
    /// Last TSN of each block. Two short lists, unlike one of pairs, let a SACK process several blocks at a time.
    ends: Sliding<u16>,
    duplicates: ArrayVec<u64, LISTED_DUPLICATES>,
}

impl Tracker {
    /// Returns a tracker that waits for the TSN `initial` first.
    pub(crate) fn new(initial: u64) -> Self {
        Self {
            cumulative: initial.saturating_sub(1),
            starts: Sliding::new(),
            ends: Sliding::new(),
            duplicates: ArrayVec::new(),
        }
    }

    /// Returns the class of a TSN, without recording it.
    pub(crate) fn classify(&self, tsn: u64) -> Arrival {
        match tsn.checked_sub(self.cumulative) {
            None | Some(0) => Arrival::Duplicate,
            Some(1) => Arrival::Next,
            Some(distance @ 2..=REACH) if self.in_a_block(distance as u16) => Arrival::Duplicate,
            Some(2..=REACH) => Arrival::Beyond,
            Some(_) => Arrival::OutOfReach,
        }
    }

    /// Records a TSN as received, with its class from [`classify`](Self::classify). A duplicate, or one out of reach, changes nothing.
    pub(crate) fn record(&mut self, tsn: u64, judged: Arrival) {
        debug_assert_eq!(judged, self.classify(tsn));
        match judged {
            // A TSN in order needs no search if there are no blocks.
            Arrival::Next if !self.has_gaps() => self.cumulative = tsn,
            Arrival::Next => self.advance(1),
            Arrival::Beyond => self.add_beyond((tsn - self.cumulative) as u16),
            Arrival::Duplicate | Arrival::OutOfReach => {}
        }
    }

    /// Records a repeated TSN for the list of duplicates in the next SACK.
    pub(crate) fn note_duplicate(&mut self, tsn: u64) {
        // RFC 9260 section 3.3.4 lists a TSN once for each repetition. A full list drops the rest: the sender takes it only as a
        // hint, and the SACK must stay small.
        let _ = self.duplicates.try_push(tsn);
    }

    /// Returns the duplicates listed since they were last cleared, in order of arrival.
    pub(crate) fn duplicates(&self) -> &[u64] {
        &self.duplicates
    }

    /// Clears the duplicates after a SACK has reported them.
    pub(crate) fn clear_duplicates(&mut self) {
        self.duplicates.clear();
    }

    /// Returns the TSN up to which all have arrived.
    pub(crate) fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// Returns the highest TSN that has arrived.
    #[cfg(test)]
    pub(crate) fn highest(&self) -> u64 {
        self.cumulative + self.ends.last().map_or(0, |&end| u64::from(self.distance(end)))
    }

    /// Returns `true` if a TSN is missing below one that has arrived.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Returns the number of blocks beyond the cumulative TSN.
    pub(crate) fn gap_count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the first `most` blocks beyond the cumulative TSN, lowest first, each as the distances of its first and last TSN.
    //= docs/rfc9260.txt#section-3.3.4
    //# Then, the parameter part of the SACK chunk MUST be constructed as follows (assuming the new a_rwnd is set to 4660
    //# by the sender):
    pub(crate) fn gap_blocks(&self, most: usize) -> impl ExactSizeIterator<Item = (u16, u16)> {
        let cumulative = self.cumulative as u16;
        let count = most.min(self.starts.len());
        let blocks = self.starts[..count].iter().zip(&self.ends[..count]);
        blocks.map(move |(start, end)| (start.wrapping_sub(cumulative), end.wrapping_sub(cumulative)))
    }

    /// Moves the cumulative TSN to at least `new_cumulative`, as if all TSNs up to it had arrived (RFC 3758 section 3.6).
    pub(crate) fn forward(&mut self, new_cumulative: u64) {
        // A value at or below the cumulative TSN comes from a late FORWARD-TSN and has no effect.
        self.advance(new_cumulative.saturating_sub(self.cumulative));
    }

    /// Raises the cumulative TSN, and joins it to the next block if no TSN is missing between them.
    fn advance(&mut self, by: u64) {
        let reached = |low: u16, by: u64| u64::from(self.distance(low)) <= by;
        let mut passed = self.ends.iter().take_while(|&&end| reached(end, by)).count();
        let mut risen = by;
        if self.starts.get(passed).is_some_and(|&start| reached(start, by.saturating_add(1))) {
            risen = u64::from(self.distance(self.ends[passed]));
            passed += 1;
        }
        self.cumulative += risen;
        self.starts.forget(passed);
        self.ends.forget(passed);
    }

    /// Returns the distance of an end of a block from the cumulative TSN.
    fn distance(&self, low: u16) -> u16 {
        low.wrapping_sub(self.cumulative as u16)
    }

    fn in_a_block(&self, distance: u16) -> bool {
        let after = self.starts.partition_point(|&start| self.distance(start) <= distance);
        let before = after.checked_sub(1).and_then(|before| self.ends.get(before));
        before.is_some_and(|&end| distance <= self.distance(end))
    }

    /// Adds the TSN at a distance from the cumulative one, in no block and not next to the cumulative TSN.
    //= docs/rfc9260.txt#section-3.3.4
    //# The Gap Ack Blocks SHOULD be isolated.
    fn add_beyond(&mut self, distance: u16) {
        // Most arrivals are the highest so far, which the search finds as fast as any other: no special case.
        let after = self.starts.partition_point(|&start| self.distance(start) < distance);
        let before = after.wrapping_sub(1);
        let low = distance.wrapping_add(self.cumulative as u16);
        let extends = self.ends.get(before).is_some_and(|&end| end.wrapping_add(1) == low);
        let precedes = self.starts.get(after).is_some_and(|&start| low.wrapping_add(1) == start);
        match (extends, precedes) {
            (true, true) => {
                self.starts.remove(after);
                self.ends.remove(before);
            }
            (true, false) => self.ends[before] = low,
            (false, true) => self.starts[after] = low,
            // Later blocks are moved; new ones are mostly the last.
            (false, false) => {
                if self.starts.is_empty() {
                    self.starts.reserve(BLOCK_ROOM);
                    self.ends.reserve(BLOCK_ROOM);
                }
                self.starts.insert(after, low);
                self.ends.insert(after, low);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn blocks(tracker: &Tracker) -> Vec<(u16, u16)> {
        tracker.gap_blocks(usize::MAX).collect()
    }

    fn record_all(tracker: &mut Tracker, tsns: &[u64]) {
        tsns.iter().for_each(|&tsn| tracker.record(tsn, tracker.classify(tsn)));
    }

    //= docs/rfc9260.txt#section-6.2
    //= type=test
    //# In particular, the SCTP endpoint MUST fill in the Cumulative TSN Ack field to indicate the latest sequential TSN
    //# (of a valid DATA chunk) it has received.
    #[test]
    fn tsns_in_order_raise_the_cumulative_point_and_leave_no_gap() {
        let mut tracker = Tracker::new(1 << 32);
        assert_eq!(tracker.cumulative(), (1 << 32) - 1);
        for tsn in 1 << 32..(1 << 32) + 5 {
            assert_eq!(tracker.classify(tsn), Arrival::Next);
            tracker.record(tsn, Arrival::Next);
        }
        assert_eq!((tracker.cumulative(), tracker.highest()), ((1 << 32) + 4, (1 << 32) + 4));
        assert!(!tracker.has_gaps());
    }

    //= docs/rfc9260.txt#section-3.3.4
    //= type=test
    //# Then, the parameter part of the SACK chunk MUST be constructed as follows (assuming the new a_rwnd is set to 4660
    //# by the sender):
    #[test]
    fn the_example_of_the_sack_chunk_gives_its_blocks() {
        // RFC 9260 section 3.3.4: 10 to 12, 14, 15 and 17 have arrived, the cumulative TSN is 12.
        let mut tracker = Tracker::new(10);
        record_all(&mut tracker, &[17, 15, 10, 14, 12, 11]);
        assert_eq!((tracker.cumulative(), tracker.highest()), (12, 17));
        assert_eq!(blocks(&tracker), [(2, 3), (5, 5)]);
        assert_eq!([13, 14, 16, 17, 18].map(|tsn| tracker.classify(tsn)), {
            use Arrival::{Beyond, Duplicate, Next};
            [Next, Duplicate, Beyond, Duplicate, Beyond]
        });
    }

    #[test]
    fn a_tsn_that_no_gap_block_can_name_is_out_of_reach() {
        let mut tracker = Tracker::new(1000);
        let last = 999 + 65_535;
        assert_eq!(tracker.classify(last), Arrival::Beyond);
        assert_eq!(tracker.classify(last + 1), Arrival::OutOfReach);
        assert_eq!(tracker.classify(u64::MAX), Arrival::OutOfReach);
        tracker.record(last + 1, Arrival::OutOfReach);
        assert!(!tracker.has_gaps());
        tracker.record(last, Arrival::Beyond);
        assert_eq!(blocks(&tracker), [(65_535, 65_535)]);
    }

    #[test]
    fn duplicates_are_all_counted_but_listed_only_up_to_a_bound() {
        let mut tracker = Tracker::new(1);
        for tsn in 0..40 {
            tracker.note_duplicate(tsn);
        }
        assert_eq!(tracker.duplicates(), (0..32).collect::<Vec<_>>());
        tracker.clear_duplicates();
        assert!(tracker.duplicates().is_empty());
    }

    #[test]
    fn a_forward_tsn_fills_gaps_and_joins_the_block_that_follows() {
        let mut tracker = Tracker::new(10);
        record_all(&mut tracker, &[12, 14, 15, 18]);
        tracker.forward(13);
        assert_eq!((tracker.cumulative(), blocks(&tracker)), (15, vec![(3, 3)]));
        tracker.forward(3);
        assert_eq!(tracker.cumulative(), 15);
        tracker.forward(40);
        assert_eq!((tracker.cumulative(), tracker.highest(), tracker.has_gaps()), (40, 40, false));
    }

    #[test]
    fn a_forward_tsn_into_the_middle_of_a_block_joins_all_of_it() {
        let mut tracker = Tracker::new(10);
        record_all(&mut tracker, &[12, 13, 14]);
        tracker.forward(13);
        assert_eq!((tracker.cumulative(), tracker.has_gaps()), (14, false));
    }

    #[test]
    fn wrap_of_the_number_range_is_handled() {
        let mut tracker = Tracker::new(5);
        tracker.forward(u64::MAX - 2);
        record_all(&mut tracker, &[u64::MAX, u64::MAX - 1, u64::MAX]);
        assert_eq!(tracker.cumulative(), u64::MAX);
        assert_eq!(tracker.classify(0), Arrival::Duplicate);
    }

    /// Received TSNs as a plain set.
    struct Model {
        initial: u64,
        received: BTreeSet<u64>,
    }

    impl Model {
        fn cumulative(&self) -> u64 {
            (self.initial..).find(|tsn| !self.received.contains(tsn)).unwrap() - 1
        }

        fn classify(&self, tsn: u64) -> Arrival {
            let cumulative = self.cumulative();
            if tsn <= cumulative || self.received.contains(&tsn) {
                Arrival::Duplicate
            } else if tsn == cumulative + 1 {
                Arrival::Next
            } else if tsn <= cumulative + 65_535 {
                Arrival::Beyond
            } else {
                Arrival::OutOfReach
            }
        }

        fn blocks(&self) -> Vec<(u16, u16)> {
            let cumulative = self.cumulative();
            let mut blocks: Vec<(u16, u16)> = Vec::new();
            for tsn in self.received.range(cumulative + 1..) {
                let distance = (tsn - cumulative) as u16;
                match blocks.last_mut() {
                    Some(last) if last.1 + 1 == distance => last.1 = distance,
                    _ => blocks.push((distance, distance)),
                }
            }
            blocks
        }
    }

    fn initials() -> impl Strategy<Value = u64> {
        prop_oneof![(1_u64 << 32)..(1 << 32) + 20, (1_u64 << 33) - 20..(1 << 33) + 5, Just(3 << 32)]
    }

    proptest! {
        //= docs/rfc9260.txt#section-3.3.4
        //= type=test
        //# The Gap Ack Blocks SHOULD be isolated.
        #[test]
        fn any_order_of_arrivals_agrees_with_a_plain_set(
            initial in initials(),
            steps in prop::collection::vec((prop::bool::weighted(0.05), -3_i64..60), 1..150),
        ) {
            let mut tracker = Tracker::new(initial);
            let mut model = Model { initial, received: BTreeSet::new() };
            for (forward, distance) in steps {
                let tsn = initial.saturating_add_signed(distance);
                if forward {
                    let target = tsn.min(model.cumulative() + 10);
                    tracker.forward(target);
                    model.received.extend(initial..=target);
                } else {
                    prop_assert_eq!(tracker.classify(tsn), model.classify(tsn));
                    tracker.record(tsn, model.classify(tsn));
                    if tsn >= initial {
                        model.received.insert(tsn);
                    }
                }
                prop_assert_eq!(tracker.cumulative(), model.cumulative());
                prop_assert_eq!(tracker.gap_count(), model.blocks().len());
                prop_assert!(tracker.gap_blocks(2).eq(model.blocks().into_iter().take(2)));
                prop_assert_eq!(blocks(&tracker), model.blocks());
                prop_assert_eq!(tracker.has_gaps(), !model.blocks().is_empty());
                let highest = model.received.last().copied().unwrap_or(initial - 1);
                prop_assert_eq!(tracker.highest(), highest);
            }
        }

        #[test]
        fn random_numbers_do_not_panic(
            initial: u64,
            steps in prop::collection::vec((any::<bool>(), any::<u64>(), 0_u64..70_000), 0..40),
        ) {
            let mut tracker = Tracker::new(initial);
            for (forward, tsn, near) in steps {
                record_all(&mut tracker, &[tsn]);
                let ahead = tracker.cumulative().saturating_add(near);
                record_all(&mut tracker, &[ahead]);
                if forward {
                    tracker.forward(tsn);
                }
                prop_assert!(blocks(&tracker).is_sorted());
            }
        }
    }
}
