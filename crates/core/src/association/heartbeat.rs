//! HEARTBEATs: verification of addresses, probes of idle and failed paths, and handling of answers.

use crate::association::control::Control;
use crate::association::heartbeat_info::read_info;
use crate::association::{Association, policies};
use crate::path_id::{PathId, PathState};
use crate::policy::{LivenessProof, OpportunityCause, Probing};
use crate::profile::Start;
use crate::send::Sender;
use crate::stats::Discard;

impl Association {
    /// Starts to verify a path's address (RFC 9260 section 5.4): one small HEARTBEAT per RTO until it answers. A path that failed
    /// before it ever answered is probed at once too, because the peer may have just learned its address.
    pub(crate) fn verify_path(&mut self, id: PathId) {
        if !self.paths.was_confirmed(id) && !self.is_announcing(id) {
            self.send_heartbeat(id);
        }
    }

    pub(crate) fn send_heartbeat(&mut self, id: PathId) {
        //= docs/rfc9260.txt#section-3.3.5
        //# When a HEARTBEAT chunk is being used for path verification purposes, it MUST include a random nonce of length
        //# 64 bits or longer ([RFC4086] provides some information on randomness guidelines).
        let nonce = self.reachability.nonce();
        self.paths.begin_heartbeat(id, nonce, self.now);
        self.queue_heartbeat(id, nonce);
    }

    pub(crate) fn queue_heartbeat(&mut self, id: PathId, nonce: u64) {
        self.control.retain(|c| !matches!(c, Control::Heartbeat { path, .. } if *path == id));
        self.control.push(Control::Heartbeat { path: id, nonce });
    }

    /// Sends the HEARTBEATs that the estimator requests.
    pub(crate) fn probe_idle_paths(&mut self) {
        for id in self.policies.probes(&policies::view(self.now, &self.paths, &self.sender)).iter() {
            let Some(path) = self.paths.get_live(id) else { continue };
            match (self.paths.facts(id).state, path.pending_heartbeat) {
                (PathState::Unconfirmed, _) => {}
                (_, None) => self.send_heartbeat(id),
                (PathState::PotentiallyFailed, Some(_)) => self.repeat_heartbeat(id),
                (PathState::Active | PathState::Inactive, Some(_)) => {}
            }
        }
    }

    /// Replaces the HEARTBEAT that is not answered yet. Its RTO continues, so that each RTO counts one error at most.
    fn repeat_heartbeat(&mut self, id: PathId) {
        let nonce = self.reachability.nonce();
        self.paths.repeat_heartbeat(id, nonce, self.now);
        self.queue_heartbeat(id, nonce);
    }

    //= docs/rfc9260.txt#section-8.3
    //# By default, an SCTP endpoint SHOULD monitor the reachability of the idle destination transport address(es) of its
    //# peer by sending a HEARTBEAT chunk periodically to the destination transport address(es).
    pub(crate) fn heartbeat_due(&mut self, id: PathId) {
        if self.paths[id].pending_heartbeat.is_none() {
            self.send_heartbeat(id);
        }
    }

    /// Handles a HEARTBEAT without an answer for an RTO: counts an error, and may send another one at once.
    pub(crate) fn heartbeat_unanswered(&mut self, id: PathId) {
        self.paths.forget_heartbeat(id);
        self.outputs.statistics.heartbeat_timeouts += 1;
        self.paths.back_off(id);
        //= docs/rfc9260.txt#section-8.3
        //# The endpoint SHOULD increment the respective error counter of the destination transport address each time a
        //# HEARTBEAT chunk is sent to that address and not acknowledged within one RTO.
        self.count_error(id, true);
        if self.is_closed() || self.remove_learned(id) || self.remove_offered(id) {
            return;
        }
        self.succeed(id);
        if self.paths[id].removed {
            return;
        }
        match self.policies.probing(id, &policies::view(self.now, &self.paths, &self.sender)) {
            //= docs/rfc9260.txt#section-8.3
            //# After this, the endpoint SHOULD continue sending HEARTBEAT chunks on this destination address but SHOULD
            //# stop increasing the counter.
            Probing::EveryRto => self.send_heartbeat(id),
            Probing::WhenIdle if self.paths.owes_cost(id) => self.send_heartbeat(id),
            Probing::WhenIdle => self.dispatcher().schedule_heartbeat(id),
        }
        self.consider_announcing(id);
        self.check_start();
    }

    /// Handles a HEARTBEAT-ACK. It must carry the nonce of the pending HEARTBEAT.
    ///
    /// # Errors
    /// Returns [`Discard::Unexpected`] for a late answer or a guess.
    pub(crate) fn handle_heartbeat_ack(&mut self, info: &[u8]) -> Result<(), Discard> {
        let (nonce, index) = read_info(info).ok_or(Discard::Unexpected)?;
        if index >= self.paths.len() {
            return Err(Discard::Unexpected);
        }
        let id = PathId::new(index);
        if self.take_mtu_answer(id, nonce) {
            self.reachability.note_answer();
            self.dispatcher().path_answered(id);
            return Ok(());
        }
        let pending = self.paths.answer_heartbeat(id, nonce).ok_or(Discard::Unexpected)?;
        let before = self.paths.facts(id).state;
        self.reachability.note_answer();
        //= docs/rfc9260.txt#section-8.1
        //# When a HEARTBEAT ACK chunk is received from the peer endpoint, the counter SHOULD also be reset.
        //= docs/rfc9260.txt#section-8.3
        //# The receiver of the HEARTBEAT ACK chunk SHOULD also clear the association overall error count (as defined in
        //# Section 8.1).
        //= docs/rfc9260.txt#section-8.3
        //# The receiver of the HEARTBEAT ACK chunk SHOULD also perform an RTT measurement for that destination transport
        //# address using the time value carried in the HEARTBEAT ACK chunk.
        // The RTT sample sets the RTO, which also ends a back-off.
        let rtt = self.now.since(pending.sent_at);
        self.dispatcher().path_answered(id);
        //= docs/rfc9260.txt#section-8.3
        //# Whenever a HEARTBEAT ACK chunk arrives, the sender SHOULD clear the error counter of the destination that the
        //# HEARTBEAT chunk was sent to.
        //= docs/rfc9260.txt#section-8.3
        //# Upon the receipt of the HEARTBEAT ACK chunk, the sender of the HEARTBEAT chunk SHOULD clear the error counter
        //# of the destination transport address to which the HEARTBEAT chunk was sent and mark the destination transport
        //# address as active if it is not so marked.
        let mut dispatcher = self.dispatcher();
        dispatcher.path_proved(id, LivenessProof::Heartbeat);
        dispatcher.take_rtt(id, rtt, true);
        self.follow_events();
        self.dispatcher().schedule_heartbeat(id);
        if self.paths.owes_cost(id) {
            self.send_heartbeat(id);
        }
        self.path_answered(id, before);
        self.drop_gone_addresses();
        self.replace_rebound_paths(id);
        Ok(())
    }

    /// Opens send opportunities after an answer: data may start, or a path is back in service.
    fn path_answered(&mut self, id: PathId, before: PathState) {
        match before {
            PathState::Unconfirmed => {
                self.check_start();
                self.open_opportunity(OpportunityCause::PathRestored(id), true);
            }
            PathState::PotentiallyFailed | PathState::Inactive => {
                if !self.paths.facts(id).in_flight.is_zero() {
                    // A small packet was answered, and larger packets that were sent before it were not.
                    self.suspect_black_hole(id);
                }
                // Chunks outstanding on the path were lost when it failed.
                self.mark_path_lost(id, crate::policy::LossCause::Timeout, false);
                self.paths.reset_bursts();
                self.open_opportunity(OpportunityCause::PathRestored(id), true);
                self.paths.grant_exemptions(self.profile.exemption_outlives_event);
                self.update_sender(Sender::estimate_window);
            }
            PathState::Active => {}
        }
    }

    /// Starts data if the paths permit it (see [`Start`]).
    pub(crate) fn check_start(&mut self) {
        let up = self.state.takes_sacks();
        if self.transmission.is_started() || !up {
            return;
        }
        let waiting = self.paths.live().any(|id| self.paths.facts(id).state == PathState::Unconfirmed);
        let wait = self.identity.initiator && self.profile.start == Start::AfterAllConfirmed && waiting;
        if !wait {
            self.transmission.start();
        }
    }
}
