//! Ring of marks for the TSNs that a new fragment can have as neighbours.
//!
//! The ring covers the TSNs from the floor, up to which all have arrived, to the highest one received. A TSN is marked once, and
//! the mark is cleared once, when the floor passes it. The cost of the ring is therefore constant for each TSN.

use super::arena::NONE;

/// Maximum number of TSNs covered: the floor, and those beyond it that a gap block can name.
const WIDEST: u64 = 1 << 16;
/// Initial size of the ring, so that small associations stay small.
const NARROWEST: usize = 64;

/// Condition on the TSN that follows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Following {
    /// The next TSN must begin a message.
    Begins,
    /// The next TSN must continue the message.
    Continues,
    /// The next TSN may do either: the message was abandoned, perhaps before its end had a TSN.
    #[default]
    Either,
}

/// Record of one TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// `true` if the TSN has arrived.
    pub(super) seen: bool,
    /// `true` if it began a message.
    pub(super) begins: bool,
    /// Condition on the next TSN.
    pub(super) following: Following,
    /// Arena slot of the fragment if it is an end of an unfinished run, else [`NONE`].
    pub(super) slot: u32,
}

impl Mark {
    const UNSEEN: Mark = Mark { seen: false, begins: false, following: Following::Either, slot: NONE };

    /// Returns the mark of a TSN that has arrived.
    pub(super) fn seen(begins: bool, following: Following, slot: u32) -> Self {
        Self { seen: true, begins, following, slot }
    }
}

/// Marks from the floor upward; the number of places is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    marks: Vec<Mark>,
    floor: u64,
    highest: u64,
}

impl Ring {
    /// Returns a ring for an association whose first TSN is `initial`, which must begin a message.
    pub(super) fn new(initial: u64) -> Self {
        let floor = initial.saturating_sub(1);
        let mut ring = Self { marks: vec![Mark::UNSEEN; NARROWEST], floor, highest: floor };
        ring.put(floor, Mark::seen(false, Following::Begins, NONE));
        ring
    }

    /// Returns the TSN up to which all have arrived or been abandoned.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the highest TSN marked.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Returns `true` if this TSN is too far above the floor to be covered.
    pub(super) fn is_out_of_reach(&self, tsn: u64) -> bool {
        tsn.saturating_sub(self.floor) >= WIDEST
    }

    /// Returns the mark of a TSN if it is covered and has arrived.
    pub(super) fn get(&self, tsn: u64) -> Option<Mark> {
        let covered = (self.floor..=self.highest).contains(&tsn);
        let mark = covered.then(|| self.marks.get(self.place(tsn)).copied()).flatten()?;
        mark.seen.then_some(mark)
    }

    /// Marks a TSN above the floor and within reach; others are ignored.
    pub(super) fn mark(&mut self, tsn: u64, mark: Mark) {
        if tsn <= self.floor || self.is_out_of_reach(tsn) {
            return;
        }
        self.widen_to(tsn);
        self.highest = self.highest.max(tsn);
        self.put(tsn, mark);
        self.raise_floor();
    }

    /// Changes the slot of a TSN; TSNs that are not covered are ignored.
    pub(super) fn set_slot(&mut self, tsn: u64, slot: u32) {
        if let Some(mark) = self.get(tsn) {
            self.put(tsn, Mark { slot, ..mark });
        }
    }

    /// Records that the rest of the message to which this TSN belongs is abandoned.
    pub(super) fn abandon(&mut self, tsn: u64) {
        if let Some(mark) = self.get(tsn) {
            let following =
                if mark.following == Following::Begins { mark.following } else { Following::Either };
            self.put(tsn, Mark { following, slot: NONE, ..mark });
        }
    }

    /// Raises the floor to `tsn` over missing TSNs, and further over those that have arrived.
    pub(super) fn skip_to(&mut self, tsn: u64) {
        if tsn <= self.floor {
            return;
        }
        // No fragment had this TSN, so the next one may begin or continue a message.
        let mark = self.get(tsn).unwrap_or(Mark::seen(false, Following::Either, NONE));
        for passed in self.floor..=self.highest.min(tsn) {
            self.put(passed, Mark::UNSEEN);
        }
        self.floor = tsn;
        self.highest = self.highest.max(tsn);
        self.put(tsn, mark);
        self.raise_floor();
    }

    /// Moves the floor over all TSNs that have arrived without a gap.
    fn raise_floor(&mut self) {
        while self.get(self.floor + 1).is_some() {
            self.put(self.floor, Mark::UNSEEN);
            self.floor += 1;
        }
    }

    /// Enlarges the ring so that `tsn` and the floor have different places.
    fn widen_to(&mut self, tsn: u64) {
        let span = (tsn - self.floor) as usize + 1;
        if span <= self.marks.len() {
            return;
        }
        let wider = vec![Mark::UNSEEN; span.next_power_of_two()];
        let narrower = std::mem::replace(&mut self.marks, wider);
        let mask = narrower.len() as u64 - 1;
        for covered in self.floor..=self.highest {
            if let Some(&mark) = narrower.get((covered & mask) as usize) {
                self.put(covered, mark);
            }
        }
    }

    fn put(&mut self, tsn: u64, mark: Mark) {
        let place = self.place(tsn);
        if let Some(slot) = self.marks.get_mut(place) {
            *slot = mark;
        }
    }

    fn place(&self, tsn: u64) -> usize {
        (tsn & (self.marks.len() as u64 - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived() -> Mark {
        Mark::seen(true, Following::Begins, NONE)
    }

    #[test]
    fn the_floor_rises_over_what_has_arrived_without_a_gap() {
        let mut ring = Ring::new(100);
        ring.mark(101, arrived());
        assert_eq!((ring.floor(), ring.highest()), (99, 101));
        ring.mark(100, arrived());
        assert_eq!(ring.floor(), 101);
        assert_eq!(ring.get(100), None);
        assert_eq!(ring.get(101), Some(arrived()));
    }

    #[test]
    fn marks_stay_when_the_ring_grows() {
        let mut ring = Ring::new(1000);
        ring.mark(1001, arrived());
        ring.mark(1063, arrived());
        ring.mark(999 + 65_535, arrived());
        for tsn in [1001, 1063, 999 + 65_535] {
            assert_eq!(ring.get(tsn), Some(arrived()));
        }
        assert_eq!(ring.marks.len(), 65_536);
        assert!(ring.is_out_of_reach(999 + 65_536));
    }

    #[test]
    fn mark_below_the_floor_or_out_of_reach_is_ignored() {
        let mut ring = Ring::new(100);
        ring.mark(100, arrived());
        for tsn in [99, 100, 100 + WIDEST] {
            ring.mark(tsn, Mark::seen(false, Following::Either, 3));
            assert_eq!((ring.floor(), ring.highest(), ring.get(100)), (100, 100, Some(arrived())));
        }
    }

    #[test]
    fn skipping_leaves_no_mark_and_passes_received_data() {
        let mut ring = Ring::new(100);
        [102, 105, 106].into_iter().for_each(|tsn| ring.mark(tsn, arrived()));
        ring.skip_to(104);
        assert_eq!((ring.floor(), ring.highest()), (106, 106));
        ring.skip_to(1_000_000);
        let seen: Vec<_> = ring.marks.iter().filter(|mark| mark.seen).collect();
        assert_eq!(seen, [&Mark::seen(false, Following::Either, NONE)]);
    }
}
