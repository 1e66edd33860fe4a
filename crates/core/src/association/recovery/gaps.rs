//! Credit of chunks that gap blocks acknowledge.
//!
//! Blocks repeat earlier SACKs, and name holes that wait for other paths. Only newly covered chunks are visited. The list of each
//! path replaces a walk over all unacknowledged chunks below them.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::LossRecovery;
use crate::intervals;
use crate::path_id::PathId;
use crate::paths::Paths;
use crate::send::Sender;

impl LossRecovery {
    /// Credits newly covered chunks in TSN order, and searches for pseudo-cumulative TSNs.
    pub(super) fn ack_gaps(&mut self, d: &mut Dispatcher<'_>) {
        let Some(&(_, highest)) = self.blocks.last() else { return };
        self.find_newly_acked(d.sender);
        for index in 0..self.difference.len() {
            let (start, end) = self.difference[index];
            for tsn in start..=end {
                self.ack_gap(tsn, d);
            }
        }
        // ns-2's walk includes the chunk after the last block.
        for id in d.paths.ids() {
            self.search_pseudo(id, highest + 1, d.paths, d.sender);
        }
    }

    /// Finds the intervals that the blocks cover and no earlier SACK covered.
    fn find_newly_acked(&mut self, sender: &Sender) {
        let LossRecovery { blocks, known, difference, names_unsent, .. } = self;
        if std::mem::take(names_unsent) {
            difference.clear();
            difference.extend_from_slice(blocks);
            return;
        }
        let known = intervals::above(known, sender.outstanding().cumulative());
        difference.clear();
        for change in blocks.changes() {
            intervals::subtract(&blocks[change.blocks.clone()], &known[change.known.clone()], difference);
        }
    }

    fn ack_gap(&mut self, tsn: u64, d: &mut Dispatcher<'_>) {
        let Some(chunk) = d.sender.outstanding().get(tsn).filter(|c| c.state.is_awaited()) else { return };
        if chunk.latest.is_none() {
            self.names_unsent = true;
            return;
        }
        let path = chunk.path;
        self.search_pseudo(path, tsn, d.paths, d.sender);
        let Some(credited) = self.credited_copy(tsn, d) else { return };
        if credited.path != path {
            self.search_pseudo(credited.path, tsn, d.paths, d.sender);
        }
        self.see_earliest(tsn, credited.path, d.sender);
        self.credit(tsn, &credited, false, d);
    }

    /// Continues the searches of CUC version 2 (Iyengar 2006, as in ns-2) on one path up to a TSN: for the first chunk sent once,
    /// and for the first one sent again.
    fn search_pseudo(&self, path: PathId, last: u64, paths: &mut Paths, sender: &Sender) {
        let from = self.pseudo_from[path.index()];
        let outstanding = sender.outstanding();
        paths.find_pseudo(path, |again| {
            outstanding.earliest_sent(path, again, from).filter(|&tsn| tsn <= last)
        });
    }

    /// Implements RFC 9260 section 6.3.2 R3 per path: an acknowledgement of the path's earliest outstanding chunk restarts its T3.
    /// If several copies are in flight, only the credited one's path restarts it; the other copies have not arrived.
    pub(super) fn see_earliest(&mut self, tsn: u64, credited: PathId, sender: &Sender) {
        let Some(chunk) = sender.outstanding().get(tsn) else { return };
        let seen = &mut self.earliest_seen;
        let earlier = seen[credited.index()] || sender.outstanding().earliest_on(credited, tsn).is_some();
        seen[credited.index()] = true;
        seen[chunk.path.index()] = true;
        if !earlier {
            self.restart_t3[credited.index()] = true;
        }
    }
}
