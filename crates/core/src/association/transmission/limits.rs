//! Limits of the paths at the end of a send opportunity. They distinguish a delivery rate from a mere sending rate
//! (draft-cheng-iccrg-delivery-rate-estimation-02 section 3.4, with more cases).

use crate::association::MAX_OUTSTANDING_CHUNKS;
use crate::association::packets::PacketContext;
use crate::association::transmission::{Outlet, Transmission};
use crate::path_id::PathId;
use crate::policy::{Event, Limiter, Reason, Refused};
use crate::trace::DecisionRecord;

const BLOCKED: Reason = Reason::rule("the peer's window is closed");

impl Transmission {
    /// Records the limiter of every path in service; the others send no data whose rate could be measured.
    pub(super) fn note_limiters(&mut self, out: &mut Outlet<'_>) {
        let peer_window_closed = out.is_closed_by_peer();
        for id in out.d.paths.ids() {
            if !out.d.paths.is_in_service(id) {
                continue;
            }
            let limiter = self.limiter_of(out, id, peer_window_closed);
            out.d.paths.set_limiter(id, limiter);
            out.d.sender.limit(id, limiter);
        }
    }

    fn limiter_of(&self, out: &Outlet<'_>, id: PathId, peer_window_closed: bool) -> Limiter {
        let facts = out.d.paths.facts(id);
        let waits_here =
            self.paced.resends[id.index()].is_some() || out.d.sender.bound().next_of(id).is_some();
        let queued = !out.d.sender.queue().is_empty();
        if !out.d.view().admits_new_data(id) || facts.burst_left == 0 {
            Limiter::Window
        } else if waits_here && facts.paced_until.is_some() {
            Limiter::Pacing
        } else if queued && peer_window_closed {
            Limiter::PeerWindow
        } else if queued && facts.paced_until.is_some() {
            Limiter::Pacing
        } else if queued || out.d.sender.has_bound() || !out.d.sender.lost().is_empty() {
            Limiter::Scheduler
        } else {
            Limiter::Application
        }
    }

    /// Returns `true` if only the burst limit delays new data.
    pub(super) fn burst_held_data_back(&self, out: &Outlet<'_>) -> bool {
        self.new_data
            && out.next_ask().is_some()
            && out.d.paths.live().any(|id| {
                let facts = out.d.paths.facts(id);
                facts.is_active() && facts.burst_left == 0 && out.d.view().admits_new_data(id)
            })
    }

    /// Counts the time in which only the peer's window delays data.
    pub(super) fn note_blocking(&mut self, out: &mut Outlet<'_>) {
        let blocked = out.is_blocked_by_peer_window();
        match (self.block.since, blocked) {
            (None, true) => {
                self.block.since = Some(out.d.now);
                let hole = out.d.sender.facts().head_of_line.map(|h| h.path);
                self.block.by = hole;
                out.d.record(DecisionRecord::Blocked(hole), 0, BLOCKED, &Refused::new());
                out.d.dispatch(&Event::Blocked { hole });
            }
            (Some(_), true) => {
                let hole = out.d.sender.facts().head_of_line.map(|h| h.path);
                if std::mem::replace(&mut self.block.by, hole) != hole {
                    out.d.record(DecisionRecord::Blocked(hole), 0, BLOCKED, &Refused::new());
                }
            }
            (Some(since), false) => {
                out.d.outputs.statistics.blocked_by_peer_window_ns += out.d.now.since(since).as_nanos();
                self.block.since = None;
                let reason = Reason::rule("the peer's window is open again");
                out.d.record(DecisionRecord::Unblocked, 0, reason, &Refused::new());
            }
            (None, false) => {}
        }
    }
}

impl Outlet<'_> {
    /// Returns `true` if the next chunk of new data exceeds the peer's window, or the limit of outstanding chunks.
    fn is_closed_by_peer(&self) -> bool {
        let next = self.d.sender.queue().next_payload(self.payload_bytes_per_chunk());
        next.is_some_and(|payload| self.d.sender.exceeds_window(payload))
            || self.d.sender.outstanding().len() >= MAX_OUTSTANDING_CHUNKS
    }

    fn is_blocked_by_peer_window(&self) -> bool {
        let Some(payload) = self.d.sender.queue().next_payload(self.payload_bytes_per_chunk()) else {
            return false;
        };
        self.d.sender.exceeds_window(payload)
            && self
                .d
                .paths
                .live()
                .any(|id| self.d.paths.is_in_service(id) && self.d.view().admits_new_data(id))
    }
}
