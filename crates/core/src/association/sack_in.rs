//! Received SACKs, and their consequences for other parts of the association.

use anabranch_wire::Tsn;

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::{Acknowledgement, LossRecovery, SackOutcome, UnsentTsn};
use crate::association::{Association, AssociationEvent};
use crate::path_id::{PathId, PathState};
use crate::policy::{Event, Holes, LossCause, OpportunityCause};

impl Association {
    /// Borrows loss recovery, and the parts that it changes.
    fn recovery(&mut self) -> (&mut LossRecovery, Dispatcher<'_>) {
        let Association { recovery, paths, sender, policies, outputs, reachability, now, .. } = self;
        (recovery, Dispatcher { now: *now, paths, sender, policies, outputs, reachability })
    }

    /// Processes a SACK, and opens a send opportunity. Consequences for other parts of the association follow behind the last chunk
    /// of the packet ([`packet_done`](Self::packet_done)).
    ///
    /// # Errors
    /// Returns [`UnsentTsn`] if the SACK acknowledges a TSN that was not sent; the caller ends the association.
    pub(crate) fn handle_sack(
        &mut self,
        source: PathId,
        sack: &Acknowledgement<'_>,
    ) -> Result<SackOutcome, UnsentTsn> {
        let (recovery, mut dispatcher) = self.recovery();
        let outcome = recovery.on_sack(source, sack, &mut dispatcher)?;
        self.note_acknowledgement(outcome);
        self.transmission.on_sack(&outcome, self.profile.burst_arming);
        Ok(outcome)
    }

    fn note_acknowledgement(&mut self, outcome: SackOutcome) {
        if outcome.acknowledged {
            self.reachability.note_answer();
        }
        if outcome.recovered_loss {
            self.transmission.arm_burst_limit();
        }
    }

    /// Processes the cumulative TSN of a SHUTDOWN (RFC 9260 section 9.2), which reports neither gaps nor the window.
    //= docs/rfc9260.txt#section-3.3.8
    //# Since the SHUTDOWN chunk does not contain Gap Ack Blocks, the receiver of the SHUTDOWN chunk MUST NOT interpret
    //# the lack of a Gap Ack Block as a renege.
    pub(crate) fn handle_shutdown_cumulative(&mut self, cumulative: Tsn) {
        let cumulative = cumulative.unwrap_near(self.sender.outstanding().cumulative());
        if cumulative <= self.sender.outstanding().cumulative() || cumulative >= self.sender.lowest_unsent() {
            return;
        }
        self.acknowledge_up_to(cumulative);
    }

    /// Acknowledges all chunks sent so far: they are known to have arrived without a SACK.
    pub(crate) fn acknowledge_all_sent(&mut self) {
        let last = self.sender.lowest_unsent() - 1;
        if last > self.sender.outstanding().cumulative() {
            self.acknowledge_up_to(last);
        }
    }

    /// Processes a cumulative TSN without gap blocks and window.
    pub(crate) fn acknowledge_up_to(&mut self, cumulative: u64) {
        let (recovery, mut dispatcher) = self.recovery();
        let outcome = recovery.on_cumulative(cumulative, &mut dispatcher);
        self.follow_events();
        self.note_acknowledgement(outcome);
        self.consider_writable();
    }

    /// Handles the deadline after which missing gap acknowledgements count as reneged.
    pub(crate) fn handle_reneging_deadline(&mut self) {
        let (recovery, mut dispatcher) = self.recovery();
        let removed = recovery.on_deadline(&mut dispatcher);
        self.follow_events();
        if let Some(path) = removed {
            self.open_opportunity(OpportunityCause::PathRestored(path), true);
        }
    }

    /// Marks those of the chunks as lost that are lost by time alone.
    pub(crate) fn recheck_losses(&mut self, chunks: &Holes) {
        let (recovery, mut dispatcher) = self.recovery();
        let lost = recovery.recheck(chunks, &mut dispatcher);
        self.follow_events();
        if lost {
            self.transmission.note_loss_event();
        }
    }

    pub(crate) fn mark_path_lost(&mut self, id: PathId, cause: LossCause, all: bool) {
        self.dispatcher().mark_path_lost(id, cause, all);
        self.follow_events();
    }

    /// Reports room in the send buffer if it was missing, and lets the buffer grow.
    pub(crate) fn consider_writable(&mut self) {
        self.consider_send_growth();
        let is_proved = self.admits_user_messages();
        if self.sender.take_writable() | self.protection.boundary.take_proof(is_proved) {
            self.outputs.report(AssociationEvent::Writable);
        }
    }

    /// Handles the expiry of T3 on a path (RFC 9260 section 6.3.3).
    pub(crate) fn handle_t3(&mut self, id: PathId) {
        self.paths.end_round(id);
        self.outputs.statistics.timeouts += 1;
        self.dispatch_event(&Event::LossEvent { path: id, cause: LossCause::Timeout });
        self.paths.back_off(id);
        if !self.sender.probe_was_answered(id) {
            self.count_error(id, false);
        }
        if self.is_closed() {
            return;
        }
        if self.profile.timeout_ends_recovery {
            // This cut answers earlier losses, and the window may grow.
            self.dispatcher().begin_recovery(id);
            self.paths.end_recovery(id);
        }
        self.suspect_black_hole(id);
        self.mark_path_lost(id, LossCause::Timeout, false);
        self.paths.reset_bursts();
        // If only copies were in flight, there are no retransmissions, and no other event would let new data be sent.
        let new_data = self.profile.timeout_opens_new_data || self.sender.lost().is_empty();
        self.open_opportunity(OpportunityCause::Timeout(id), new_data);
        self.paths.grant_exemptions(self.profile.exemption_outlives_event);
        if matches!(self.paths.facts(id).state, PathState::PotentiallyFailed | PathState::Inactive) {
            self.send_heartbeat(id);
        }
    }
}
