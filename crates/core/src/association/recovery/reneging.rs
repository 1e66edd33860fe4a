//! Reneging: chunks that a gap block of one SACK covered and a later SACK does not.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::LossRecovery;
use crate::association::recovery::blocks::Change;
use crate::intervals;
use crate::path_id::PathId;
use crate::policy::LossCause;
use crate::profile::Reneging;
use crate::send::Sender;
use crate::time::Time;

impl LossRecovery {
    /// Compares the blocks of the current SACK with the chunks that earlier gap blocks acknowledged.
    pub(super) fn check_reneging(&mut self, d: &mut Dispatcher<'_>) {
        match d.paths.profile().reneging {
            Reneging::AtOnce => self.renege_now(d),
            Reneging::AfterLongestRto => self.suspect_reneging(d),
        }
    }

    fn renege_now(&mut self, d: &mut Dispatcher<'_>) {
        self.renege_uncovered(d);
        self.know_blocks(self.blocks.unchanged(), d.sender);
    }

    fn suspect_reneging(&mut self, d: &mut Dispatcher<'_>) {
        if self.covers_known(d.sender) {
            self.know_blocks(self.blocks.unchanged(), d.sender);
            self.reneging_at = None;
        } else {
            self.known.add(&self.blocks, d.sender.outstanding().cumulative());
            if self.reneging_at.is_none() {
                let longest = d.paths.all_facts().iter().map(|f| f.rto).max().unwrap_or_default();
                self.reneging_at = Some(d.now + longest);
            }
        }
        if self.reneging_at.is_some() {
            self.latest_blocks.clear();
            self.latest_blocks.extend_from_slice(&self.blocks);
        }
    }

    /// Replaces the known blocks by those of the current SACK; the first `same` are unchanged.
    fn know_blocks(&mut self, same: usize, sender: &Sender) {
        self.known.replace_behind(&self.blocks, same, sender.outstanding().cumulative());
    }

    /// Returns `true` if the blocks cover all chunks that earlier gap blocks acknowledged.
    fn covers_known(&self, sender: &Sender) -> bool {
        let cumulative = sender.outstanding().cumulative();
        let known = intervals::above(&self.known, cumulative);
        let blocks = &self.blocks;
        blocks.changes().iter().all(|Change { blocks: ours, known: theirs }| {
            intervals::hold_above(&blocks[ours.clone()], &known[theirs.clone()], cumulative)
        })
    }

    /// Returns the time at which uncovered gap acknowledgements count as reneged.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.reneging_at
    }

    /// Stops the deadline for reneging, because the association is closed.
    pub(crate) fn stop(&mut self) {
        self.reneging_at = None;
    }

    /// Counts chunks as outstanding again that no SACK has covered for too long, if their time has come. Returns a removed path on
    /// which a chunk was outstanding: the chunk is lost, and may be sent on another path.
    pub(crate) fn on_deadline(&mut self, d: &mut Dispatcher<'_>) -> Option<PathId> {
        self.reneging_at.take_if(|at| *at <= d.now)?;
        let cumulative = d.sender.outstanding().cumulative();
        let known = intervals::above(&self.known, cumulative).len();
        let LossRecovery { blocks, latest_blocks, .. } = self;
        blocks.replace(intervals::above(latest_blocks, cumulative));
        blocks.change_all(0, known);
        let removed = self.renege_uncovered(d);
        self.know_blocks(0, d.sender);
        for id in d.paths.ids() {
            if !d.paths.facts(id).in_flight.is_zero() {
                d.paths.ensure_t3(id, d.now);
            }
        }
        removed
    }

    /// Reneges all uncovered chunks. Returns a removed path on which one was outstanding.
    fn renege_uncovered(&mut self, d: &mut Dispatcher<'_>) -> Option<PathId> {
        let cumulative = d.sender.outstanding().cumulative();
        let LossRecovery { blocks, known, difference: uncovered, .. } = self;
        let known = intervals::above(known, cumulative);
        uncovered.clear();
        for change in blocks.changes() {
            intervals::subtract(&known[change.known.clone()], &blocks[change.blocks.clone()], uncovered);
        }
        let mut removed = None;
        for &(start, end) in uncovered.iter() {
            for tsn in start.max(cumulative + 1)..=end {
                removed = renege(tsn, d).or(removed);
            }
        }
        removed
    }
}

/// Counts a chunk as outstanding again. If its path is removed, the chunk is lost, because no timer runs there, and that path is
/// returned.
fn renege(tsn: u64, d: &mut Dispatcher<'_>) -> Option<PathId> {
    let left = d.update_sender(|sender| sender.renege(tsn))?;
    let path = left.previous_path;
    d.outputs.statistics.reneged += 1;
    if !d.paths[path].removed {
        return None;
    }
    d.mark_lost(tsn, LossCause::Timeout);
    Some(path)
}
