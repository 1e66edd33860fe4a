//! Losses: marking chunks, cutting windows, and T3.

use crate::association::{Association, WindowProbe, policies};
use crate::path_id::{PathId, PathState};
use crate::policy::{Event, LossCause, OpportunityCause, Reason, Refused};
use crate::send::{ChunkState, Loss};
use crate::trace::Decided;

impl Association {
    /// Declares a chunk lost.
    pub(crate) fn mark_lost(&mut self, tsn: u64, cause: LossCause) {
        let Some(loss) = self.update_sender(|sender| sender.declare_lost(tsn, cause)) else { return };
        if cause != LossCause::Timeout {
            self.outputs.statistics.fast_retransmitted_chunks += 1;
        }
        let Loss { path, bytes, stamps, again } = loss;
        if !again {
            self.paths.note_loss(path, stamps);
            self.record(Decided::Lost(path, cause), tsn, Reason::rule(cause_text(cause)), &Refused::new());
            let sent_at = stamps.sent_at;
            self.dispatch_event(&Event::Lost { path, tsn, bytes, sent_at, cause });
        }
    }

    /// A fast-retransmit event: each path that lost a chunk above its recovery point is cut once
    /// (RFC 9260 section 7.2.4 items 2 and 4, split per path by CMT).
    pub(crate) fn cut_windows(&mut self) {
        self.paths.begin_loss_event();
        let mut cut = [false; crate::path_id::MAX_PATHS];
        let mut index = 0;
        while let Some(tsn) = self.sender.lost().get(index) {
            index += 1;
            let Some(chunk) = self.sender.outstanding().get(tsn) else { continue };
            let ChunkState::Lost(cause) = chunk.state else { continue };
            let by_reports = cause != LossCause::Timeout;
            let counts = self.profile.pending_losses_are_cut || by_reports;
            let id = chunk.path;
            if by_reports {
                self.paths.note_loss_in_event(id);
            }
            //= docs/rfc9260.txt#section-7.2.4
            //# While in Fast Recovery, the ssthresh and cwnd SHOULD NOT change for any destinations due to a subsequent
            //# Fast Recovery event (i.e., one SHOULD NOT reduce the cwnd further due to a subsequent Fast Retransmit).
            if counts && !cut[id.index()] && tsn > self.paths[id].recovery.point {
                cut[id.index()] = true;
                let cause = if by_reports { cause } else { LossCause::FastRetransmit };
                self.cut_window(id, cause);
            }
        }
        self.cut_windows_of_abandoned(&cut);
    }

    /// A loss is a sign of congestion, whether the chunk is still wanted or not.
    fn cut_windows_of_abandoned(&mut self, cut: &[bool]) {
        for (index, &cut) in cut.iter().enumerate() {
            let highest = std::mem::take(&mut self.sack.lost_abandoned[index]);
            if highest > 0 && !cut && highest > self.paths[PathId::new(index)].recovery.point {
                self.cut_window(PathId::new(index), LossCause::FastRetransmit);
            }
        }
    }

    fn cut_window(&mut self, id: PathId, cause: LossCause) {
        // Samples of this round trip could mix a loss into the estimate.
        self.paths.cancel_measurement(id);
        self.set_recovery_point(id);
        self.dispatch_event(&Event::LossEvent { path: id, cause });
    }

    fn set_recovery_point(&mut self, id: PathId) {
        let highest = self.sender.outstanding().highest_on(id).unwrap_or(0);
        self.paths.begin_recovery(id, highest);
    }

    /// T3 expired on a path (RFC 9260 section 6.3.3).
    pub(crate) fn handle_t3(&mut self, id: PathId) {
        self.paths.end_round(id);
        self.outputs.statistics.timeouts += 1;
        self.dispatch_event(&Event::LossEvent { path: id, cause: LossCause::Timeout });
        self.paths.back_off(id);
        if !self.probe_was_answered(id) {
            self.count_error(id, false);
        }
        if self.is_closed() {
            return;
        }
        if self.profile.timeout_ends_recovery {
            // What was lost before counts as answered by this cut, and the window may grow.
            self.set_recovery_point(id);
            self.paths.end_recovery(id);
        }
        self.suspect_black_hole(id);
        self.mark_path_lost(id, LossCause::Timeout, false);
        self.paths.reset_bursts();
        // Where only copies were in flight there is nothing to send again, and nothing else would let new data go.
        let new_data = self.profile.timeout_opens_new_data || self.sender.lost().is_empty();
        self.open_opportunity(OpportunityCause::Timeout(id), new_data);
        self.paths.grant_exemptions(self.profile.exemption_outlives_event);
        if matches!(self.paths.facts(id).state, PathState::PotentiallyFailed | PathState::Inactive) {
            self.send_heartbeat(id);
        }
    }

    /// Whether the peer has answered a probe of its closed window since it left on this path: then its time-out is not an error
    /// (RFC 9260 section 6.1 A). One answer does for all paths that carry copies of it.
    //= docs/rfc9260.txt#section-6.1
    //# If the sender continues to receive SACK chunks from the peer while doing zero window probing, the unacknowledged
    //# window probes SHOULD NOT increment the error counter for the association or any destination transport address.
    fn probe_was_answered(&self, id: PathId) -> bool {
        let Some(WindowProbe { tsn, answered_at: Some(answered_at) }) = self.peer_window_block.probe else {
            return false;
        };
        let on_path = self.sender.outstanding().transmissions_of(tsn).filter(|copy| copy.path == id);
        on_path.map(|copy| copy.stamps.sent_at).max().is_some_and(|sent_at| answered_at >= sent_at)
    }

    /// Marks what is outstanding on a path. `all` skips the loss policy's say.
    //= docs/rfc9260.txt#section-6.3.3
    //# Any DATA chunks that were sent to the address for which the T3-rtx timer expired but did not fit in an SCTP packet
    //# of size smaller than or equal to the PMTU (rule E3 above) SHOULD be marked for retransmission and sent as soon as
    //# cwnd allows (normally, when a SACK chunk arrives).
    pub(crate) fn mark_path_lost(&mut self, id: PathId, cause: LossCause, all: bool) {
        self.update_sender(|sender| sender.end_orphans(id));
        self.unwatch_path(id);
        self.withdraw_forward_tsn(id);
        let mut next = self.sender.outstanding().first_unacked();
        while let Some(tsn) = next {
            next = self.sender.outstanding().next_unacked(tsn);
            let Some(missing) = self.missing(tsn) else { continue };
            if missing.path != id {
                // A later copy flies elsewhere; the one on this path is gone.
                self.update_sender(|sender| sender.end_copies_on(tsn, id));
                continue;
            }
            if all || self.policies.timed_out(&missing, &policies::view(self.now, &self.paths, &self.sender))
            {
                self.mark_lost(tsn, cause);
            }
        }
        self.stop_t3_if_nothing_flies();
        if !self.paths.facts(id).in_flight.is_zero() && !all {
            // What the policy spared is still in flight and needs its timer.
            self.paths.start_t3(id, self.now);
        }
    }

    pub(crate) fn stop_t3_if_nothing_flies(&mut self) {
        let forward = &self.control.forward;
        self.paths.stop_t3_of_empty_paths(|id| forward.waits_on(id));
    }
}

fn cause_text(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "enough missing reports",
        LossCause::Timeout => "T3 expired",
        LossCause::Rescheduled => "held the receive buffer up",
    }
}
