//! Crediting what gap blocks acknowledge.
//!
//! Blocks repeat what earlier SACKs said, and name holes that wait for other paths. Only chunks that are newly covered are
//! visited; what a walk over all unacknowledged chunks below them would find of each path, its list says.

use crate::association::Association;
use crate::association::sack_in::SackProcessing;
use crate::intervals;
use crate::path_id::PathId;

impl Association {
    /// Credits what the blocks cover newly, in TSN order, and searches for pseudo-cumulative TSNs.
    pub(super) fn ack_gaps(&mut self) {
        let Some(&(_, highest)) = self.sack.blocks.last() else { return };
        self.find_news();
        for index in 0..self.sack.difference.len() {
            let (start, end) = self.sack.difference[index];
            for tsn in start..=end {
                self.ack_gap(tsn);
            }
        }
        // ns-2's walk looks at the chunk after the last block too.
        for id in self.paths.ids() {
            self.search_pseudo(id, highest + 1);
        }
    }

    /// What the blocks cover and no SACK covered before.
    fn find_news(&mut self) {
        let SackProcessing { blocks, difference, names_unsent, .. } = &mut self.sack;
        if std::mem::take(names_unsent) {
            difference.clear();
            difference.extend_from_slice(blocks);
            return;
        }
        let outstanding = self.sender.outstanding();
        let known = intervals::above(outstanding.gap_acked(), outstanding.cumulative());
        difference.clear();
        for change in blocks.changes() {
            intervals::subtract(&blocks[change.blocks.clone()], &known[change.known.clone()], difference);
        }
    }

    fn ack_gap(&mut self, tsn: u64) {
        let Some(chunk) = self.sender.outstanding().get(tsn).filter(|c| c.state.is_awaited()) else { return };
        if chunk.latest.is_none() {
            self.sack.names_unsent = true;
            return;
        }
        let path = chunk.path;
        self.search_pseudo(path, tsn);
        let credited = self.sender.credited_copy(tsn, self.sack.source).map_or(path, |copy| copy.path);
        if credited != path {
            self.search_pseudo(credited, tsn);
        }
        self.see_earliest(tsn);
        self.credit(tsn, false);
    }

    /// CUC version 2's searches (Iyengar 2006, as in ns-2), on one path up to a TSN: the first chunk sent once, and the first
    /// sent again.
    fn search_pseudo(&mut self, path: PathId, last: u64) {
        let from = self.sack.pseudo_from[path.index()];
        let outstanding = self.sender.outstanding();
        self.paths.find_pseudo(path, |again| {
            outstanding.earliest_sent(path, again, from).filter(|&tsn| tsn <= last)
        });
    }

    /// RFC 9260 section 6.3.2 R3, per path: an ack of the path's earliest outstanding chunk restarts its T3. Where several
    /// copies are in flight that is the credited one's path; the others' earliest chunks are still on their way.
    pub(super) fn see_earliest(&mut self, tsn: u64) {
        let Some(chunk) = self.sender.outstanding().get(tsn).filter(|c| c.latest.is_some()) else { return };
        let latest = chunk.path;
        let credited = if chunk.transmissions > 1 {
            self.sender.credited_copy(tsn, self.sack.source).map_or(latest, |copy| copy.path)
        } else {
            latest
        };
        let seen = &mut self.sack.earliest_seen;
        let earlier =
            seen[credited.index()] || self.sender.outstanding().earliest_on(credited, tsn).is_some();
        seen[credited.index()] = true;
        seen[latest.index()] = true;
        if !earlier {
            self.sack.restart_t3[credited.index()] = true;
        }
    }
}
