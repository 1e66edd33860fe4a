//! Losses: marking chunks, cutting windows, T3, and the books of what is in flight.

use crate::association::{Association, WindowProbe};
use crate::path::{PathId, PathState};
use crate::policy::{Event, LossCause, Reason, Refused, TurnCause};
use crate::profile::RecoveryPoint;
use crate::send::ChunkState;
use crate::trace::Decided;
use crate::units::{ChunkBytes, WindowBytes};

impl Association {
    pub(crate) fn window_cost(&self, bytes: ChunkBytes) -> WindowBytes {
        self.profile.window_cost(bytes.get().saturating_sub(16), 1)
    }

    /// A transmission counts against its path's window.
    pub(crate) fn flight_begins(&mut self, path: PathId, bytes: ChunkBytes) {
        self.facts[path.index()].in_flight += bytes;
    }

    pub(crate) fn flight_ends(&mut self, path: PathId, bytes: ChunkBytes) {
        self.facts[path.index()].in_flight -= bytes;
    }

    /// A chunk counts against the peer's window, once however many copies of it are in flight.
    pub(crate) fn window_taken(&mut self, bytes: ChunkBytes) {
        self.window_in_flight += self.window_cost(bytes);
    }

    pub(crate) fn window_freed(&mut self, bytes: ChunkBytes) {
        self.window_in_flight -= self.window_cost(bytes);
    }

    /// Takes some of the peer's window, if there is one that all paths share.
    pub(crate) fn charge_peer_window(&mut self, cost: WindowBytes) {
        if self.profile.shared_receive_window {
            self.shared.peer_window -= cost;
        }
    }

    fn refund_peer_window(&mut self, cost: WindowBytes) {
        if self.profile.shared_receive_window {
            self.shared.peer_window += cost;
        }
    }

    fn waits_lost(&mut self, path: PathId, bytes: ChunkBytes) {
        let cost = self.window_cost(bytes);
        self.facts[path.index()].lost_unsent += bytes;
        self.window_lost += cost;
        // RFC 9260 section 6.2.1 C: a chunk marked for retransmission gives its window back.
        self.refund_peer_window(cost);
    }

    pub(crate) fn no_longer_lost(&mut self, path: PathId, bytes: ChunkBytes) {
        self.facts[path.index()].lost_unsent -= bytes;
        self.window_lost -= self.window_cost(bytes);
    }

    /// A lost chunk turned out to have arrived: until the SACK is settled it counts as in flight.
    pub(crate) fn lost_unmarked(&mut self, path: PathId, bytes: ChunkBytes) {
        self.no_longer_lost(path, bytes);
        self.flight_begins(path, bytes);
        self.window_taken(bytes);
    }

    /// Declares a chunk lost.
    pub(crate) fn mark_lost(&mut self, tsn: u64, cause: LossCause) {
        let Some(chunk) = self.outstanding.get_mut(tsn) else { return };
        let (path, bytes) = (chunk.path, chunk.bytes());
        let was_lost = matches!(chunk.state, ChunkState::Lost(_));
        chunk.state = ChunkState::Lost(cause);
        match cause {
            LossCause::FastRetransmit | LossCause::Rescheduled => {
                chunk.recovered_before = true;
                self.statistics.fast_retransmitted_chunks += 1;
            }
            LossCause::Timeout => chunk.reports = 0,
        }
        if was_lost {
            return;
        }
        let facts = &mut self.facts;
        self.outstanding.end_flights(tsn, |copy| facts[copy.path.index()].in_flight -= copy.bytes);
        self.window_freed(bytes);
        self.lost.insert(tsn);
        self.waits_lost(path, bytes);
        self.facts[path.index()].lost += bytes;
        self.record(Decided::Lost(path, cause), tsn, Reason::rule(cause_text(cause)), &Refused::new());
        self.tell(&Event::Lost { path, tsn, bytes, cause });
    }

    /// A fast-retransmit event: each path that lost a chunk above its recovery point is cut once
    /// (RFC 9260 section 7.2.4 items 2 and 4, split per path by CMT).
    pub(crate) fn cut_windows(&mut self) {
        for path in &mut self.paths {
            path.lost_in_event = false;
        }
        let mut cut = [false; crate::path::MAX_PATHS];
        let mut index = 0;
        while let Some(tsn) = self.lost.get(index) {
            index += 1;
            let Some(chunk) = self.outstanding.get(tsn) else { continue };
            let ChunkState::Lost(cause) = chunk.state else { continue };
            let by_reports = cause != LossCause::Timeout;
            let counts = self.profile.pending_losses_are_cut || by_reports;
            let id = chunk.path;
            if by_reports {
                self.paths[id.index()].lost_in_event = true;
            }
            //= docs/rfc9260.txt#section-7.2.4
            //# While in Fast Recovery, the ssthresh and cwnd SHOULD NOT change for any destinations due to a subsequent
            //# Fast Recovery event (i.e., one SHOULD NOT reduce the cwnd further due to a subsequent Fast Retransmit).
            if counts && !cut[id.index()] && tsn > self.paths[id.index()].recovery_point {
                cut[id.index()] = true;
                let cause = if by_reports { cause } else { LossCause::FastRetransmit };
                self.cut_window(id, cause);
            }
        }
    }

    fn cut_window(&mut self, id: PathId, cause: LossCause) {
        // Samples of this round trip could mix a loss into the estimate.
        self.paths[id.index()].measuring = None;
        self.set_recovery_point(id);
        self.tell(&Event::LossEvent { path: id, cause });
    }

    fn set_recovery_point(&mut self, id: PathId) {
        let highest = self.outstanding.highest_on(id).unwrap_or(0);
        let path = &mut self.paths[id.index()];
        let forgotten = self.profile.recovery_point == RecoveryPoint::HighestOutstandingUnlessLower
            && highest < path.highest_recovery_point;
        if forgotten {
            path.recovery_point = 0;
        } else {
            path.highest_recovery_point = highest;
            path.recovery_point = highest;
        }
        self.facts[id.index()].recovery_point = Some(path.recovery_point);
    }

    /// After a fast-retransmit event each path that lost something may send one packet whatever its window says.
    //= docs/rfc9260.txt#section-7.2.4
    //# When a Fast Retransmit is being performed, the sender SHOULD ignore the value of cwnd and SHOULD NOT delay
    //# retransmission for this single packet.
    pub(crate) fn grant_exemptions(&mut self, event: bool) {
        for (path, facts) in self.paths.iter().zip(&mut self.facts) {
            facts.exempt_packets = u32::from(event && path.lost_in_event);
        }
    }

    /// T3 expired on a path (RFC 9260 section 6.3.3).
    pub(crate) fn handle_t3(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.timers.t3 = None;
        path.timers.idle = None;
        path.measuring = None;
        self.statistics.timeouts += 1;
        self.tell(&Event::LossEvent { path: id, cause: LossCause::Timeout });
        self.back_off(id);
        if !self.probe_was_answered(id) {
            self.count_error(id, false);
        }
        if self.is_closed() {
            return;
        }
        if self.profile.timeout_ends_recovery {
            // What was lost before counts as answered by this cut, and the window may grow.
            self.set_recovery_point(id);
            self.facts[id.index()].recovery_point = None;
        }
        self.suspect_black_hole(id);
        self.mark_path_lost(id, LossCause::Timeout, false);
        for path in &mut self.paths {
            path.burst_used = 0;
        }
        // Where only copies were in flight there is nothing to send again, and nothing else would let new data go.
        let new_data = self.profile.timeout_opens_new_data || self.lost.is_empty();
        self.open_turn(TurnCause::Timeout(id), new_data);
        self.grant_exemptions(self.profile.exemption_outlives_event);
        if matches!(self.facts[id.index()].state, PathState::PotentiallyFailed | PathState::Inactive) {
            self.send_heartbeat(id);
        }
    }

    /// Whether the peer has answered a probe of its closed window since it left on this path: then its time-out is not an error
    /// (RFC 9260 section 6.1 A). One answer does for all paths that carry copies of it.
    //= docs/rfc9260.txt#section-6.1
    //# If the sender continues to receive SACK chunks from the peer while doing zero window probing, the unacknowledged
    //# window probes SHOULD NOT increment the error counter for the association or any destination transport address.
    fn probe_was_answered(&self, id: PathId) -> bool {
        let Some(WindowProbe { tsn, answered_at: Some(answered_at) }) = self.probe else { return false };
        let on_path = self.outstanding.transmissions_of(tsn).filter(|copy| copy.path == id);
        on_path.map(|copy| copy.stamps.sent_at).max().is_some_and(|sent_at| answered_at >= sent_at)
    }

    /// Marks what is outstanding on a path. `all` skips the loss policy's say.
    //= docs/rfc9260.txt#section-6.3.3
    //# Any DATA chunks that were sent to the address for which the T3-rtx timer expired but did not fit in an SCTP packet
    //# of size smaller than or equal to the PMTU (rule E3 above) SHOULD be marked for retransmission and sent as soon as
    //# cwnd allows (normally, when a SACK chunk arrives).
    pub(crate) fn mark_path_lost(&mut self, id: PathId, cause: LossCause, all: bool) {
        self.end_orphans(id);
        let mut next = self.outstanding.first_unacked();
        while let Some(tsn) = next {
            next = self.outstanding.next_unacked(tsn);
            let Some(missing) = self.missing(tsn) else { continue };
            if missing.path != id {
                // A later copy flies elsewhere; the one on this path is gone.
                self.end_copies_on(tsn, id);
                continue;
            }
            let view = crate::policy::View {
                now: self.now,
                profile: &self.profile,
                paths: &self.facts,
                association: &self.shared,
            };
            if all || self.policies.loss.timed_out(&missing, &view) {
                self.mark_lost(tsn, cause);
            }
        }
        self.stop_t3_if_nothing_flies();
        if !self.facts[id.index()].in_flight.is_zero() && !all {
            // What the policy spared is still in flight and needs its timer.
            self.start_t3(id);
        }
    }
}

fn cause_text(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "enough missing reports",
        LossCause::Timeout => "T3 expired",
        LossCause::Rescheduled => "held the receive buffer up",
    }
}
