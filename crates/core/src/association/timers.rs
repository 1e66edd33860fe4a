//! Deadlines of an association, and the actions when they pass.

use crate::association::Association;
use crate::association::policies;
use crate::path_id::{PathId, PathState};
use crate::paths::PathTimer;
use crate::policy::{Event, LossCause, OpportunityCause, Reason, StateCause};
use crate::time::Time;

fn due(timer: &mut Option<Time>, now: Time) -> bool {
    timer.take_if(|at| *at <= now).is_some()
}

impl Association {
    /// Runs all actions that are due.
    pub(crate) fn handle_timeout(&mut self) {
        let now = self.now;
        if self.state.opening_mut().is_some_and(|opening| due(&mut opening.give_up, now)) {
            self.control.clear();
            self.abort_with(crate::error::AbortReason::NoAnswer);
        }
        if self.state.opening_mut().is_some_and(|opening| due(&mut opening.t1, now)) {
            self.handle_t1();
        }
        if self.state.stagger_mut().is_some_and(|stagger| due(&mut stagger.next_at, now)) {
            self.send_staggered_init();
        }
        if self.state.closing_mut().is_some_and(|closing| due(&mut closing.t2, now)) {
            self.handle_t2();
        }
        if self.addresses.asconf_mut().is_some_and(|asconf| asconf.take_expired_t4(now)) {
            self.handle_t4();
        }
        self.handle_stream_change_timer();
        if self.state.closing_mut().is_some_and(|closing| due(&mut closing.t5, now)) {
            //= docs/rfc9260.txt#section-9.2
            //# At the expiration of this timer, the sender SHOULD abort the association by sending an ABORT chunk.
            self.send_abort("shutdown took too long");
            self.abort_with(crate::error::AbortReason::PeerUnreachable);
        }
        self.ack.on_deadline(now);
        if self.recovery.deadline().is_some_and(|at| at <= now) {
            self.handle_reneging_deadline();
        }
        for id in self.paths.ids() {
            self.handle_path_timers(id);
        }
        if self.policies.deadline().is_some_and(|at| at <= now) {
            self.dispatch_event(&Event::Deadline);
            self.run_loss_tasks();
            self.probe_idle_paths();
            self.open_opportunity(OpportunityCause::Policy, true);
        }
        self.abandon_due();
        let (transmission, mut outlet) = self.transmission();
        transmission.on_deadline(&mut outlet.d);
    }

    fn handle_path_timers(&mut self, id: PathId) {
        let now = self.now;
        if self.is_closed() || self.paths[id].removed {
            return;
        }
        // Before T3, which leaves no chunk in flight.
        if self.paths.take_due(id, PathTimer::Silence, now) {
            self.path_silent(id);
        }
        if self.paths.take_due(id, PathTimer::SilenceLimit, now) {
            self.silence_limit_is_over(id);
        }
        if self.paths.take_due(id, PathTimer::T3, now) {
            self.handle_t3(id);
        }
        if self.paths.take_due(id, PathTimer::Mtu, now) {
            self.mtu_timer_expired(id);
        }
        if self.paths.take_due(id, PathTimer::HeartbeatTimeout, now) {
            self.heartbeat_unanswered(id);
        }
        if self.paths.take_due(id, PathTimer::Heartbeat, now) {
            self.heartbeat_due(id);
        }
        if self.paths.take_due(id, PathTimer::Idle, now) {
            self.path_idle(id);
        }
    }

    /// Reports an idle RTO of a path, whose window may decay, until nothing is left to decay. Otherwise every association that once
    /// carried DATA would wake up at each RTO.
    fn path_idle(&mut self, id: PathId) {
        self.paths.count_idle_rto(id, self.now);
        self.dispatch_event(&Event::Idle(id));
    }

    /// Handles an error on a path: T3 expired or a HEARTBEAT was not answered (RFC 9260 sections 8.1 and 8.2).
    pub(crate) fn count_error(&mut self, id: PathId, by_heartbeat: bool) {
        //= docs/rfc9260.txt#section-8.2
        //# When its peer endpoint is multi-homed, an endpoint SHOULD keep an error counter for each of the destination
        //# transport addresses of the peer endpoint.
        self.paths.count_error(id);
        if self.profile.idle_heartbeats.is_some() {
            self.reachability.forgive_idle_silence(self.profile.heartbeat_interval, self.now);
        }
        let before = self.paths.facts(id).state;
        // RFC 9260 section 8.1: an address that never answered is no evidence about the peer, nor is a HEARTBEAT on a path out of
        // service while data has another one.
        //= docs/rfc9260.txt#section-8.1
        //# Unacknowledged HEARTBEAT chunks observed on paths different from the path currently used for data transfer
        //# SHOULD NOT increment the association error counter, as this could lead to association closure even if the path
        //# that is currently used for data transfer is available (but idle).
        let spare = by_heartbeat && before != PathState::Active && self.paths.any_active();
        if before != PathState::Unconfirmed && !spare && !self.is_silent_by_itself(id) {
            //= docs/rfc9260.txt#section-8.1
            //# An endpoint SHOULD keep a counter on the total number of consecutive retransmissions to its peer (this
            //# includes data retransmissions to all the destination transport addresses of the peer if it is multi-
            //# homed), including the number of unacknowledged HEARTBEAT chunks observed on the path that is currently
            //# used for data transfer.
            self.reachability.count_error();
        }
        self.sender.refresh_facts();
        let decision = self.policies.state_after_error(
            id,
            by_heartbeat,
            &policies::view(self.now, &self.paths, &self.sender),
        );
        self.set_state(id, decision.choice, StateCause::Errors(decision.reason));
        //= docs/rfc9260.txt#section-8.1
        //# In addition, the endpoint SHOULD report the failure to the upper layer and optionally report back all
        //# outstanding user data remaining in its outbound queue.
        if self.is_peer_given_up() {
            self.give_peer_up();
        }
    }

    fn is_peer_given_up(&self) -> bool {
        let limit = self.config.peer_silence_limit;
        self.reachability.is_peer_unreachable(limit, self.profile.association_max_retrans, self.now)
    }

    /// Handles the end of the silence that the failover policy permits: the path gets no new data and is probed. Its outstanding
    /// chunks may still arrive, so its window stays. They are retransmitted on other paths if the profile says so.
    fn silence_limit_is_over(&mut self, id: PathId) {
        let facts = self.paths.facts(id);
        let others = self.paths.live().any(|other| other != id && self.paths.facts(other).is_active());
        if !facts.is_active() || facts.in_flight.is_zero() || !others {
            return;
        }
        let waited = self
            .policies
            .silence_limit(id, &policies::view(self.now, &self.paths, &self.sender))
            .unwrap_or_default();
        let reason = Reason::figure("answers nothing", "silence_ms", waited.as_millis_f64());
        self.outputs.statistics.silences += 1;
        self.set_state(id, PathState::PotentiallyFailed, StateCause::Errors(reason));
        self.send_heartbeat(id);
        if self.profile.silence_retransmits {
            self.mark_path_lost(id, LossCause::Timeout, false);
            if self.paths.facts(id).in_flight.is_zero() {
                // No T3 follows that would count the loss of large packets.
                self.suspect_black_hole(id);
            }
        }
        self.open_opportunity(OpportunityCause::Policy, true);
    }

    /// Handles the end of the configured silence after data: the path has failed, for any error count.
    fn path_silent(&mut self, id: PathId) {
        let serves = matches!(self.paths.facts(id).state, PathState::Active | PathState::PotentiallyFailed);
        if !serves || self.paths.facts(id).in_flight.is_zero() {
            return;
        }
        let limit = self.paths.options().silence_limit.unwrap_or_default();
        let reason = Reason::figure("silent for too long", "silence_ms", limit.as_millis_f64());
        self.set_state(id, PathState::Inactive, StateCause::Errors(reason));
        // The rest equals a failure found by T3.
        self.dispatch_event(&Event::LossEvent { path: id, cause: LossCause::Timeout });
        self.paths.cancel_measurement(id);
        self.mark_path_lost(id, LossCause::Timeout, false);
        // As after T3: if only copies were in flight, no other event would let new data be sent.
        let new_data = self.profile.timeout_opens_new_data || self.sender.lost().is_empty();
        self.open_opportunity(OpportunityCause::Timeout(id), new_data);
        self.send_heartbeat(id);
    }
}
