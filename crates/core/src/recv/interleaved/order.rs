//! Unfinished and waiting messages of one stream, in the order of their message identifiers (MIDs).

use std::collections::VecDeque;

use anabranch_wire::Mid;

use crate::recv::arena::Arena;
use crate::recv::reassembly::Violation;

/// Number of unfinished unordered messages of a stream that are tolerated beyond the number of missing TSNs. Senders need one.
const MOST_UNORDERED: u64 = 16;

/// Fragments with consecutive fragment sequence numbers (FSNs), which are joined in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// FSN of the first fragment.
    first: u64,
    /// Slot of the first fragment.
    pub(super) head: u32,
}

impl Run {
    /// Returns the FSN behind the last fragment.
    fn end(self, arena: &Arena) -> u64 {
        self.first + arena[self.head].run_chunks as u64
    }
}

/// Message of which fragments have arrived.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// MID, unwrapped.
    pub(super) mid: u64,
    /// FSN of the first fragment that has not been read.
    pub(super) next: u64,
    /// FSN of the last fragment, if that has arrived.
    pub(super) last: Option<u64>,
    pub(super) ppid: u32,
    pub(super) runs: VecDeque<Run>,
}

impl Open {
    /// Returns the slot of the first unread fragment, if it has arrived.
    pub(super) fn head(&self) -> Option<u32> {
        self.runs.front().filter(|run| run.first == self.next).map(|run| run.head)
    }

    /// Returns `true` if no unread fragment is missing.
    pub(super) fn is_complete(&self, arena: &Arena) -> bool {
        let ends = |run: &Run| Some(run.end(arena)) == self.last.map(|last| last + 1);
        self.head().is_some() && self.runs.front().is_some_and(ends)
    }

    /// Returns the index of the first run behind an FSN.
    fn behind(&self, fsn: u64) -> usize {
        match self.runs.back() {
            // Fragments mostly arrive in order.
            Some(last) if last.first <= fsn => self.runs.len(),
            _ => self.runs.partition_point(|run| run.first <= fsn),
        }
    }

    /// Checks a fragment against those that have arrived.
    pub(super) fn check(&self, arena: &Arena, fsn: u64, ending: bool) -> Result<(), Violation> {
        let arrived = fsn < self.next
            || self.behind(fsn).checked_sub(1).is_some_and(|at| fsn < self.runs[at].end(arena));
        if arrived {
            return Err(Violation::RepeatedFragment);
        }
        let beyond_end = self.last.is_some_and(|last| ending || fsn > last);
        let ends_early = ending && self.runs.back().is_some_and(|run| run.end(arena) > fsn);
        if beyond_end || ends_early { Err(Violation::ContinuesNothing) } else { Ok(()) }
    }

    /// Adds a fragment that [`check`](Self::check) admits.
    pub(super) fn join(&mut self, arena: &mut Arena, fsn: u64, slot: u32) {
        if arena[slot].ending {
            self.last = Some(fsn);
        }
        if arena[slot].beginning {
            self.ppid = arena[slot].message.ppid;
        }
        let at = self.behind(fsn);
        let left = at.checked_sub(1).map(|left| self.runs[left]).filter(|run| run.end(arena) == fsn);
        let right = self.runs.get(at).copied().filter(|run| run.first == fsn + 1);
        if let Some(right) = right {
            arena.join(slot, right.head);
        }
        match (left, right) {
            (Some(left), _) => {
                arena.join(left.head, slot);
                if right.is_some() {
                    self.runs.remove(at);
                }
            }
            (None, Some(_)) => self.runs[at] = Run { first: fsn, head: slot },
            (None, None) => self.runs.insert(at, Run { first: fsn, head: slot }),
        }
    }
}

/// Messages with the same U bit.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// MID of the next ordered message to deliver, or the MID behind the highest unordered one.
    pub(super) next: u64,
    /// Messages in the order of their MIDs.
    pub(super) open: VecDeque<Open>,
    /// Highest MID that the peer has abandoned.
    skipped: Option<u64>,
    /// Empty lists of runs, to use again.
    spare: Vec<VecDeque<Run>>,
}

impl Order {
    pub(super) fn new(first: u64) -> Self {
        Order { next: first, open: VecDeque::new(), skipped: None, spare: Vec::new() }
    }

    pub(super) fn unwrap(&self, mid: Mid) -> u64 {
        mid.unwrap_near(self.next)
    }

    /// Returns the index of a message, or the index at which it belongs as an error.
    pub(super) fn search(&self, mid: u64) -> Result<usize, usize> {
        match self.open.back() {
            Some(last) if mid <= last.mid => self.open.binary_search_by_key(&mid, |open| open.mid),
            _ => Err(self.open.len()),
        }
    }

    /// Returns `true` if a message is not abandoned. `reach` is the number of TSNs from the first missing one to that of a fragment.
    ///
    /// Each earlier message of the stream takes at least one of the TSNs below.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be at this message yet, or is past it.
    pub(super) fn admits(&self, mid: u64, unordered: bool, reach: u64) -> Result<bool, Violation> {
        if self.skipped.is_some_and(|skipped| mid <= skipped) {
            return Ok(false);
        }
        if self.search(mid).is_ok() {
            return Ok(true);
        }
        match unordered {
            true if self.open.len() as u64 >= reach + MOST_UNORDERED => Err(Violation::TooManyMessages),
            false if mid < self.next => Err(Violation::RepeatedSequence),
            false if mid - self.next >= reach => Err(Violation::TooFarAhead),
            _ => Ok(true),
        }
    }

    /// Records the MID of an unordered message.
    pub(super) fn note(&mut self, mid: u64) {
        self.next = self.next.max(mid + 1);
    }

    pub(super) fn insert(&mut self, at: usize, mid: u64) {
        let runs = self.spare.pop().unwrap_or_default();
        self.open.insert(at, Open { mid, next: 0, last: None, ppid: 0, runs });
    }

    /// Removes a message whose runs the caller has taken.
    pub(super) fn remove(&mut self, at: usize) {
        if let Some(mut open) = self.open.remove(at)
            && self.spare.is_empty()
        {
            open.runs.clear();
            self.spare.push(open.runs);
        }
    }

    /// Removes the first message up to this MID.
    pub(super) fn pop_up_to(&mut self, mid: u64) -> Option<Open> {
        self.open.pop_front_if(|open| open.mid <= mid)
    }

    /// Continues behind abandoned messages.
    pub(super) fn skip_to(&mut self, mid: u64) {
        self.skipped = self.skipped.max(Some(mid));
        self.note(mid);
    }

    /// Starts again with MID zero.
    pub(super) fn restart(&mut self) {
        self.next = (self.next | u64::from(u32::MAX)) + 1;
        self.skipped = None;
    }

    /// Returns the number of messages that wait for an earlier one.
    pub(super) fn blocked(&self) -> usize {
        let has_next = self.open.front().is_some_and(|open| open.mid == self.next);
        self.open.len() - usize::from(has_next)
    }
}
