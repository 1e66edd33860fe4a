//! What keeps each path from sending more, as a send opportunity ends: without it a delivery rate cannot be told from a rate of
//! sending (draft-cheng-iccrg-delivery-rate-estimation-02 section 3.4, with more cases).

use crate::association::{Association, MAX_OUTSTANDING_CHUNKS};
use crate::path_id::PathId;
use crate::policy::Limiter;

impl Association {
    /// Notes it for every path in service; the others send nothing whose rate could be measured.
    pub(crate) fn note_limiters(&mut self) {
        let peer_window_closed = self.is_closed_by_peer();
        for id in self.paths.ids() {
            if !self.paths.is_in_service(id) {
                continue;
            }
            let limiter = self.limiter_of(id, peer_window_closed);
            self.paths.set_limiter(id, limiter);
            self.sender.limit(id, limiter);
        }
    }

    /// Whether the next chunk of new data finds no room at the peer, or among the TSNs that may be outstanding.
    fn is_closed_by_peer(&self) -> bool {
        let next = self.sender.queue().next_payload(self.payload_bytes_per_chunk());
        next.is_some_and(|payload| self.sender.exceeds_window(payload))
            || self.sender.outstanding().len() >= MAX_OUTSTANDING_CHUNKS
    }

    fn limiter_of(&self, id: PathId, peer_window_closed: bool) -> Limiter {
        let facts = self.paths.facts(id);
        let waits_here =
            self.opportunity.paced.resends[id.index()].is_some() || self.sender.bound().next_of(id).is_some();
        let queued = !self.sender.queue().is_empty();
        if !self.view().admits_new_data(id) || facts.burst_left == 0 {
            Limiter::Window
        } else if waits_here && facts.paced_until.is_some() {
            Limiter::Pacing
        } else if queued && peer_window_closed {
            Limiter::PeerWindow
        } else if queued && facts.paced_until.is_some() {
            Limiter::Pacing
        } else if queued || self.sender.has_bound() || !self.sender.lost().is_empty() {
            Limiter::Scheduler
        } else {
            Limiter::Application
        }
    }
}
