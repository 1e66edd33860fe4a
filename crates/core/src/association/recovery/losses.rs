//! Losses: marks of chunks, and cuts of windows.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::missing::collect_holes;
use crate::association::recovery::{LossRecovery, Losses};
use crate::path_id::{MAX_PATHS, PathId};
use crate::policy::{Event, Holes, LossCause, Reason, Refused};
use crate::send::{ChunkState, DuplicateCopy, Loss};
use crate::trace::DecisionRecord;

impl LossRecovery {
    /// Cuts windows for the losses of a SACK.
    pub(super) fn answer_losses(&mut self, d: &mut Dispatcher<'_>) -> Losses {
        if !self.newly_lost.is_empty() {
            self.after_losses(d);
            return Losses::Chunks;
        }
        if self.lost_abandoned.iter().any(|&tsn| tsn > 0) {
            self.cut_windows(d);
            return Losses::Abandoned;
        }
        d.paths.grant_exemptions(false);
        Losses::None
    }

    /// Cuts windows after chunks were found lost, and permits each path with a loss one packet beyond its window.
    fn after_losses(&mut self, d: &mut Dispatcher<'_>) {
        d.outputs.statistics.fast_retransmit_events += 1;
        self.cut_windows(d);
        d.paths.grant_exemptions(true);
    }

    /// Finds those of the chunks that are lost by time alone, and cuts windows for them. Returns `true` if there are any.
    pub(crate) fn recheck(&mut self, chunks: &Holes, d: &mut Dispatcher<'_>) -> bool {
        let LossRecovery { holes, newly_lost, .. } = self;
        newly_lost.clear();
        collect_holes(chunks, u64::MAX, d, holes);
        for &tsn in &*holes {
            let in_flight =
                d.sender.outstanding().get(tsn).is_some_and(|chunk| chunk.state == ChunkState::InFlight);
            let Some(missing) = in_flight.then(|| d.sender.missing(tsn)).flatten() else { continue };
            if d.ask(|policies, view| policies.overdue(&missing, view)) {
                newly_lost.push(tsn);
            }
        }
        for &tsn in &*newly_lost {
            d.mark_lost(tsn, LossCause::FastRetransmit);
        }
        if self.newly_lost.is_empty() {
            return false;
        }
        d.stop_t3_of_empty_paths();
        self.after_losses(d);
        true
    }

    /// Handles a fast-retransmit event: each path that lost a chunk above its recovery point is cut once (RFC 9260 section 7.2.4
    /// items 2 and 4, split per path by CMT).
    pub(crate) fn cut_windows(&mut self, d: &mut Dispatcher<'_>) {
        d.paths.begin_loss_event();
        let mut cut = [false; MAX_PATHS];
        let mut index = 0;
        while let Some(tsn) = d.sender.lost().get(index) {
            index += 1;
            let Some(chunk) = d.sender.outstanding().get(tsn) else { continue };
            let ChunkState::Lost(cause) = chunk.state else { continue };
            let by_reports = cause != LossCause::Timeout;
            let counts = d.paths.profile().pending_losses_are_cut || by_reports;
            let id = chunk.path;
            if by_reports {
                d.paths.note_loss_in_event(id);
            }
            //= docs/rfc9260.txt#section-7.2.4
            //# While in Fast Recovery, the ssthresh and cwnd SHOULD NOT change for any destinations due to a subsequent
            //# Fast Recovery event (i.e., one SHOULD NOT reduce the cwnd further due to a subsequent Fast Retransmit).
            if counts && !cut[id.index()] && tsn > d.paths[id].recovery.point {
                cut[id.index()] = true;
                d.cut_window(id, if by_reports { cause } else { LossCause::FastRetransmit });
            }
        }
        self.cut_windows_of_abandoned(&cut, d);
    }

    /// Cuts windows for the loss of abandoned chunks, which is a sign of congestion too.
    fn cut_windows_of_abandoned(&mut self, cut: &[bool], d: &mut Dispatcher<'_>) {
        for id in d.paths.ids() {
            let highest = std::mem::take(&mut self.lost_abandoned[id.index()]);
            if highest > 0 && !cut[id.index()] && highest > d.paths[id].recovery.point {
                d.cut_window(id, LossCause::FastRetransmit);
            }
        }
    }
}

impl Dispatcher<'_> {
    /// Declares a chunk lost.
    pub(crate) fn mark_lost(&mut self, tsn: u64, cause: LossCause) {
        let Some(loss) = self.update_sender(|sender| sender.declare_lost(tsn, cause)) else { return };
        if cause != LossCause::Timeout {
            self.outputs.statistics.fast_retransmitted_chunks += 1;
        }
        let Loss { path, bytes, stamps, again } = loss;
        if !again {
            self.paths.note_loss(path, stamps);
            self.record(
                DecisionRecord::Lost(path, cause),
                tsn,
                Reason::rule(cause_text(cause)),
                &Refused::new(),
            );
            let sent_at = stamps.sent_at;
            self.dispatch(&Event::Lost { path, tsn, bytes, sent_at, cause });
        }
    }

    /// Reports the loss of a copy whose chunk has arrived in another copy, and cuts the window once per round trip.
    pub(super) fn report_lost_copy(&mut self, path: PathId, copy: &DuplicateCopy) {
        let DuplicateCopy { tsn, bytes, stamps, .. } = *copy;
        let (cause, sent_at) = (LossCause::FastRetransmit, stamps.sent_at);
        self.paths.note_loss(path, stamps);
        let reason = Reason::rule("later packets of the path overtook the copy");
        self.record(DecisionRecord::Lost(path, cause), tsn, reason, &Refused::new());
        self.dispatch(&Event::Lost { path, tsn, bytes, sent_at, cause });
        if self.paths.is_uncut_since(path, sent_at) {
            self.cut_window(path, cause);
        }
    }

    fn cut_window(&mut self, id: PathId, cause: LossCause) {
        self.paths.cancel_measurement(id);
        self.begin_recovery(id);
        self.dispatch(&Event::LossEvent { path: id, cause });
    }

    /// Sets the recovery point of a path to the highest TSN that is outstanding there.
    pub(crate) fn begin_recovery(&mut self, id: PathId) {
        let highest = self.sender.outstanding().highest_on(id).unwrap_or(0);
        self.paths.begin_recovery(id, highest, self.now);
    }

    /// Marks the outstanding chunks of a path as lost. The loss policy may exclude chunks, unless `all` is set.
    //= docs/rfc9260.txt#section-6.3.3
    //# Any DATA chunks that were sent to the address for which the T3-rtx timer expired but did not fit in an SCTP packet
    //# of size smaller than or equal to the PMTU (rule E3 above) SHOULD be marked for retransmission and sent as soon as
    //# cwnd allows (normally, when a SACK chunk arrives).
    pub(crate) fn mark_path_lost(&mut self, id: PathId, cause: LossCause, all: bool) {
        self.update_sender(|sender| sender.end_duplicates(id));
        self.sender.unwatch_path(id);
        self.withdraw_forward_tsn(id);
        let mut next = self.sender.outstanding().first_unacked();
        while let Some(tsn) = next {
            next = self.sender.outstanding().next_unacked(tsn);
            let Some(missing) = self.sender.missing(tsn) else { continue };
            if missing.path != id {
                // A later copy is in flight on another path; the one on this path is lost.
                self.update_sender(|sender| sender.end_copies_on(tsn, id));
                continue;
            }
            if all || self.ask(|policies, view| policies.timed_out(&missing, view)) {
                self.mark_lost(tsn, cause);
            }
        }
        self.stop_t3_of_empty_paths();
        if !self.paths.facts(id).in_flight.is_zero() && !all {
            // Chunks that the policy has excluded are still in flight and need their timer.
            self.paths.start_t3(id, self.now);
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
