//! Changes of a path of which policies are notified: state, answers and RTT samples.

use crate::association::AssociationEvent;
use crate::association::dispatch::Dispatcher;
use crate::path_id::{PathId, PathState};
use crate::paths::LEAST_WAIT;
use crate::policy::{Event, LivenessEffect, LivenessProof, Reason, Refused, StateCause};
use crate::send::Admitted;
use crate::time::Span;
use crate::trace::DecisionRecord;

impl Dispatcher<'_> {
    /// Sets the state of a path. A path that leaves service returns the chunks that were bound to it.
    pub(crate) fn set_state(&mut self, id: PathId, to: PathState, cause: StateCause) {
        let Some(from) = self.paths.set_state(id, to, self.now) else { return };
        let reason = match cause {
            StateCause::Errors(reason) | StateCause::Promoted(reason) => reason,
            StateCause::Proof(_) => Reason::rule("the path answered"),
        };
        self.record(DecisionRecord::State(id, to), 0, reason, &Refused::new());
        if to == PathState::Active {
            // A path that was promoted because no better path exists has one time-out to answer before it is probed.
            let promoted = matches!(cause, StateCause::Promoted(_));
            let wait = if promoted { self.paths.facts(id).rto.max(LEAST_WAIT) } else { Span::ZERO };
            self.paths.begin_mtu_search(id, wait, self.now);
        } else {
            self.unbind_path(id);
            self.withdraw_forward_tsn(id);
        }
        self.dispatch(&Event::PathState { path: id, from, to, cause });
        //= docs/rfc9260.txt#section-8.3
        //# The endpoint SHOULD report to the upper layer when an inactive destination address is marked as active due to
        //# the reception of the latest HEARTBEAT ACK chunk.
        self.outputs.report(AssociationEvent::PathState { path: id, state: to });
    }

    /// Unbinds the chunks that were bound to a path and not sent, so that they are placed again.
    pub(crate) fn unbind_path(&mut self, path: PathId) {
        while let Some(Admitted { tsn, bytes }) = self.update_sender(|sender| sender.unbind(path)) {
            self.dispatch(&Event::Unbound { path, tsn, bytes });
        }
    }

    /// Handles a proof that a path works, which may clear its errors and bring it back (RFC 9260 section 8.2, CMT-PF).
    pub(crate) fn path_proved(&mut self, id: PathId, proof: LivenessProof) {
        let facts = self.paths.facts(id);
        let healthy = facts.error_count == 0 && facts.state == PathState::Active;
        // A removed path stays out of service even if its data in flight arrives.
        if healthy || self.paths[id].removed {
            return;
        }
        let LivenessEffect { state, clears_errors } =
            self.ask(|policies, view| policies.state_after_proof(id, proof, view));
        //= docs/rfc9260.txt#section-8.2
        //# When an outstanding TSN is acknowledged or a HEARTBEAT chunk sent to that address is acknowledged with a
        //# HEARTBEAT ACK chunk, the endpoint SHOULD clear the error counter of the destination transport address to which
        //# the DATA chunk was last sent (or HEARTBEAT chunk was sent) and SHOULD also report to the upper layer when an
        //# inactive destination address is marked as active.
        // Policies see the errors that the proof ends.
        self.set_state(id, state, StateCause::Proof(proof));
        if clears_errors {
            self.paths.clear_errors(id);
        }
    }

    /// Starts the wait for an answer to data that is sent on a path, unless it runs.
    pub(crate) fn await_answer(&mut self, id: PathId) {
        if let Some(limit) = self.paths.options().silence_limit {
            self.paths.begin_silence(id, limit, self.now);
        }
        if self.paths[id].timers.silence_limit.is_none() {
            self.begin_silence_limit(id);
        }
    }

    /// Restarts the running timers that measure the silence of the path, because the path got an answer.
    pub(crate) fn path_answered(&mut self, id: PathId) {
        if let Some(limit) = self.paths.options().silence_limit {
            self.paths.extend_silence(id, limit, self.now);
        }
        if self.paths[id].timers.silence_limit.is_some() {
            self.begin_silence_limit(id);
        }
    }

    fn begin_silence_limit(&mut self, id: PathId) {
        let limit = self.ask(|policies, view| policies.silence_limit(id, view));
        self.paths.set_silence_limit(id, limit.map(|span| self.now + span));
    }

    /// Adds an RTT sample.
    pub(crate) fn take_rtt(&mut self, id: PathId, rtt: Span, heartbeat: bool) {
        self.paths.take_rtt_sample(id, rtt);
        self.dispatch(&Event::RttSample { path: id, rtt, heartbeat });
    }

    /// Decides whether a FORWARD-TSN is due.
    pub(crate) fn consider_forward_tsn(&mut self) {
        let paths = &*self.paths;
        self.sender.consider_forward_tsn(self.now, |path| {
            let facts = paths.facts(path);
            facts.rtt.smoothed.unwrap_or(facts.rto)
        });
    }

    /// Handles a cumulative TSN that may acknowledge a FORWARD-TSN. The abandoned data may have arrived after all, on any path.
    pub(crate) fn forward_tsn_acked(&mut self, cumulative: u64) {
        if let Some(path) = self.sender.take_acked_forward_tsn(cumulative) {
            self.stop_t3_of_empty_paths();
            self.path_proved(path, LivenessProof::Ambiguous);
        }
    }

    /// Makes the FORWARD-TSN on a path due again, because T3 has expired there or the path is out of service.
    pub(crate) fn withdraw_forward_tsn(&mut self, path: PathId) {
        if self.sender.withdraw_forward_tsn(path) {
            self.stop_t3_of_empty_paths();
        }
    }

    /// Stops T3 of each path without bytes in flight.
    pub(crate) fn stop_t3_of_empty_paths(&mut self) {
        let sender = &*self.sender;
        self.paths.stop_t3_of_empty_paths(|id| sender.awaits_forward_tsn(id));
    }
}
