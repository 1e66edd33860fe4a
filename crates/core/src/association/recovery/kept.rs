//! Chunks that the receiver never drops: their payloads are released before the cumulative TSN passes them (NR-SACK).
//!
//! NR-SACKs repeat earlier reports. Only new TSNs cost time.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::blocks::repeated;
use crate::association::recovery::{Acknowledgement, LossRecovery};
use crate::intervals;

impl LossRecovery {
    /// Releases chunks that an NR-SACK reports as non-renegable.
    pub(super) fn release_kept(
        &mut self,
        cumulative: u64,
        sack: &Acknowledgement<'_>,
        d: &mut Dispatcher<'_>,
    ) {
        let mut blocks = sack.kept.clone();
        let known = intervals::above(&self.kept, cumulative);
        let repeated = repeated(blocks.as_wire(), known, cumulative);
        if repeated > 0 {
            blocks.nth(repeated - 1);
        }
        let mut at = self.kept.len() - known.len() + repeated;
        for block in blocks {
            let (start, end) = (cumulative + u64::from(block.start), cumulative + u64::from(block.end));
            // Behind a hole that was filled all blocks are known, but one index further up.
            if !intervals::holds_from(&self.kept, &mut at, (start, end)) {
                self.keep(start, end, d);
                at = self.kept.len() - intervals::above(&self.kept, start - 1).len();
            }
        }
    }

    /// Records outstanding TSNs that the receiver never drops, and releases those that were not recorded before.
    fn keep(&mut self, start: u64, end: u64, d: &mut Dispatcher<'_>) {
        let outstanding = d.sender.outstanding();
        let cumulative = outstanding.cumulative();
        let (start, end) = (start.max(cumulative + 1), end.min(outstanding.next_tsn() - 1));
        if start > end || intervals::holds(&self.kept, start, end) {
            return;
        }
        intervals::forget_up_to(&mut self.kept, cumulative);
        d.update_sender(|sender| {
            intervals::uncovered(&self.kept, start, end).for_each(|(first, last)| sender.keep(first, last));
        });
        intervals::insert(&mut self.kept, (start, end));
    }
}
