//! What becomes of chunks that one SACK covered by a gap block and a later one does not.

use crate::association::Association;
use crate::association::gap_blocks::Change;
use crate::association::sack_in::SackProcessing;
use crate::intervals;
use crate::policy::{LossCause, OpportunityCause};
use crate::profile::Reneging;

impl Association {
    /// Compares the present SACK's blocks with everything acknowledged by gap blocks before.
    pub(crate) fn check_reneging(&mut self) {
        match self.profile.reneging {
            Reneging::AtOnce => self.take_back_now(),
            Reneging::AfterLongestRto => self.suspect_reneging(),
        }
    }

    fn take_back_now(&mut self) {
        self.take_back_uncovered();
        self.sender.set_gap_acked(&self.sack.blocks, self.sack.blocks.unchanged());
    }

    fn suspect_reneging(&mut self) {
        if self.covers_what_was_known() {
            self.sender.set_gap_acked(&self.sack.blocks, self.sack.blocks.unchanged());
            self.sack.reneging_at = None;
        } else {
            self.sender.add_gap_acked(&self.sack.blocks);
            if self.sack.reneging_at.is_none() {
                let longest = self.paths.all_facts().iter().map(|f| f.rto).max().unwrap_or_default();
                self.sack.reneging_at = Some(self.now + longest);
            }
        }
        if self.sack.reneging_at.is_some() {
            self.sack.latest_blocks.clear();
            self.sack.latest_blocks.extend_from_slice(&self.sack.blocks);
        }
    }

    /// Whether the blocks cover all that was acknowledged by gap blocks before.
    fn covers_what_was_known(&self) -> bool {
        let cumulative = self.sender.outstanding().cumulative();
        let known = intervals::above(self.sender.outstanding().gap_acked(), cumulative);
        let blocks = &self.sack.blocks;
        blocks.changes().iter().all(|Change { blocks: ours, known: theirs }| {
            intervals::hold_above(&blocks[ours.clone()], &known[theirs.clone()], cumulative)
        })
    }

    /// No SACK has covered what was acknowledged before for too long: it is outstanding again.
    pub(crate) fn believe_reneging(&mut self) {
        self.sack.reneging_at = None;
        let cumulative = self.sender.outstanding().cumulative();
        let known = intervals::above(self.sender.outstanding().gap_acked(), cumulative).len();
        let SackProcessing { blocks, latest_blocks, .. } = &mut self.sack;
        blocks.replace(intervals::above(latest_blocks, cumulative));
        blocks.change_all(0, known);
        self.take_back_uncovered();
        self.sender.set_gap_acked(&self.sack.blocks, 0);
        for id in self.paths.ids() {
            if !self.paths.facts(id).in_flight.is_zero() {
                self.paths.ensure_t3(id, self.now);
            }
        }
    }

    fn take_back_uncovered(&mut self) {
        let cumulative = self.sender.outstanding().cumulative();
        let known = intervals::above(self.sender.outstanding().gap_acked(), cumulative);
        let SackProcessing { blocks, difference: uncovered, .. } = &mut self.sack;
        uncovered.clear();
        for change in blocks.changes() {
            intervals::subtract(&known[change.known.clone()], &blocks[change.blocks.clone()], uncovered);
        }
        for index in 0..self.sack.difference.len() {
            let (start, end) = self.sack.difference[index];
            (start.max(cumulative + 1)..=end).for_each(|tsn| self.take_back(tsn));
        }
    }

    fn take_back(&mut self, tsn: u64) {
        let Some(left) = self.update_sender(|sender| sender.renege(tsn)) else { return };
        let path = left.previous_path;
        self.outputs.statistics.reneged += 1;
        if self.paths[path].removed {
            // No timer runs for a path that is gone, so nothing may be in flight there.
            self.mark_lost(tsn, LossCause::Timeout);
            self.open_opportunity(OpportunityCause::PathRestored(path), true);
        }
    }
}
