//! Missing reports: which chunks a SACK shows to be missing, and which of them are lost.

use crate::association::{Association, policies};
use crate::path_id::MAX_PATHS;
use crate::policy::{Holes, LossCause, Missing, SackView};
use crate::send::ChunkState;
use crate::units::WindowBytes;

impl Association {
    /// Asks the loss policy about the holes below the highest TSN that this SACK, or an earlier one, newly acked.
    //= docs/rfc9260.txt#section-6.7
    //# All DATA chunks with TSNs not included in the Gap Ack Blocks that are smaller than the highest-acknowledged TSN
    //# reported in the SACK chunk MUST be treated as "missing" by the sending endpoint.
    pub(super) fn count_missing(
        &mut self,
        cumulative: u64,
        new_cumulative: bool,
        flags: u8,
        a_rwnd: WindowBytes,
    ) {
        let sacks = std::mem::take(&mut self.sack.sacks);
        let view = SackView {
            paths: &sacks,
            cumulative,
            highest_newly_acked: self.sack.highest_newly_acked,
            new_cumulative,
            flags,
            a_rwnd,
            peer_window: a_rwnd - self.sender.window_outstanding(),
        };
        let highest_named = self.sack.blocks.last().map_or(cumulative, |&(_, end)| end);
        let limit = self.sack.highest_newly_acked.max(highest_named);
        let mut any_hole = self.leaves_hole(limit);
        if any_hole {
            let holes = self.policies.holes(&view, &policies::view(self.now, &self.paths, &self.sender));
            self.judge(&holes, limit, &view);
        }
        self.judge_watched(limit, |this, tsn| {
            let Some(missing) = this.missing(tsn) else { return false };
            if !std::mem::replace(&mut any_hole, true) {
                this.policies.holes(&view, &policies::view(this.now, &this.paths, &this.sender));
            }
            let verdict =
                this.policies.missing(&missing, &view, &policies::view(this.now, &this.paths, &this.sender));
            this.sender.add_reports(tsn, verdict.reports);
            verdict.lost
        });
        self.sack.sacks = sacks;
        for index in 0..self.sack.newly_lost.len() {
            self.mark_lost(self.sack.newly_lost[index], LossCause::FastRetransmit);
        }
    }

    /// Whether a SACK can report a chunk. One that waits to be sent again is missed by nobody, unless the profile says so.
    fn is_hole(&self, tsn: u64) -> bool {
        let pending = self.profile.pending_losses_are_cut;
        self.sender.outstanding().get(tsn).is_some_and(|chunk| {
            chunk.latest.is_some() && (pending || !matches!(chunk.state, ChunkState::Lost(_)))
        })
    }

    fn leaves_hole(&self, limit: u64) -> bool {
        self.sender.outstanding().unacked().take_while(|&tsn| tsn < limit).any(|tsn| self.is_hole(tsn))
    }

    fn judge(&mut self, holes: &Holes, limit: u64, view: &SackView<'_>) {
        self.collect_holes(holes, limit);
        for index in 0..self.sack.holes.len() {
            let tsn = self.sack.holes[index];
            let Some(missing) = self.missing(tsn) else { continue };
            let verdict =
                self.policies.missing(&missing, view, &policies::view(self.now, &self.paths, &self.sender));
            //= docs/rfc9260.txt#section-6.7
            //# The number of "missing" reports for each outstanding DATA chunk MUST be recorded by the data sender to
            //# make retransmission decisions.
            self.sender.add_reports(tsn, verdict.reports);
            if verdict.lost {
                self.sack.newly_lost.push(tsn);
            }
        }
    }

    /// The TSNs below `limit` that the policy wants to judge, in order.
    fn collect_holes(&mut self, holes: &Holes, limit: u64) {
        let mut list = std::mem::take(&mut self.sack.holes);
        list.clear();
        let outstanding = self.sender.outstanding();
        let paths = self.paths.ids();
        match holes {
            Holes::All => list.extend(outstanding.unacked().take_while(|&tsn| tsn < limit)),
            Holes::NeverRecovered { below } => {
                let below = limit.min(*below);
                paths.for_each(|path| list.extend(outstanding.judged_by_reports(path, below)));
            }
            Holes::SentBefore(bounds) => {
                for (path, bound) in paths.zip(bounds).filter_map(|(path, bound)| Some((path, (*bound)?))) {
                    outstanding.sent_before(path, bound, limit, &mut list);
                }
            }
        }
        list.retain(|&tsn| self.is_hole(tsn));
        if !list.is_sorted() {
            list.sort_unstable();
        }
        self.sack.holes = list;
    }

    pub(crate) fn missing(&self, tsn: u64) -> Option<Missing> {
        let chunk = self.sender.outstanding().get(tsn)?;
        let sent_at = self.sender.outstanding().latest_of(tsn)?.stamps.sent_at;
        let (mut first_sent_at, mut in_flight_since) = (sent_at, [None; MAX_PATHS]);
        for transmission in self.sender.outstanding().transmissions_of(tsn) {
            first_sent_at = transmission.stamps.sent_at;
            if transmission.in_flight {
                in_flight_since[transmission.path.index()].get_or_insert(transmission.stamps.sent_at);
            }
        }
        Some(Missing {
            tsn,
            path: chunk.path,
            sent_at,
            first_sent_at,
            in_flight_since,
            transmissions: chunk.transmissions,
            reports: chunk.reports,
            recovered_before: chunk.recovered_before,
            waits: matches!(chunk.state, ChunkState::Lost(_)),
        })
    }
}
