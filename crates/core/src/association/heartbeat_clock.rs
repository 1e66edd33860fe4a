//! Times of HEARTBEATs, which are rarer on paths of an idle association ([`IdleHeartbeats`]).

use crate::association::dispatch::Dispatcher;
use crate::path_id::{PathId, PathState};
use crate::policy::StateCause;
use crate::profile::IdleHeartbeats;
use crate::time::{Span, Time};

impl Dispatcher<'_> {
    /// Returns the rules of an idle association, and the time without DATA; `None` if the association is not idle.
    fn idleness(&self) -> Option<(IdleHeartbeats, Span)> {
        let rules = self.paths.profile().idle_heartbeats?;
        let idle_for = self.reachability.idle_for(self.now);
        (self.is_long(idle_for) && self.sender.buffered_bytes() == 0).then_some((rules, idle_for))
    }

    /// Returns `true` if no DATA is expected after this time: a peer that backs off retransmits at least every RTO.Max.
    fn is_long(&self, idle_for: Span) -> bool {
        let profile = self.paths.profile();
        idle_for > profile.heartbeat_interval.max(profile.rto_max)
    }

    /// Returns `true` if a path is active without errors. Other paths are probed as often as in an association that carries DATA.
    fn is_healthy(&self, id: PathId) -> bool {
        let facts = self.paths.facts(id);
        facts.state == PathState::Active && facts.error_count == 0
    }

    /// Returns the time of the next HEARTBEAT of a path: now, plus the interval in force, plus `more`.
    fn next_heartbeat_at(&self, id: PathId, more: Span) -> Time {
        let interval = self.paths.profile().heartbeat_interval;
        match self.idleness().filter(|_| self.is_healthy(id)) {
            Some((rules, idle_for)) => {
                let wait = idle_for.min(rules.longest_interval).max(interval);
                rules.next_tick(self.now + wait + more)
            }
            None => self.now + interval + more,
        }
    }

    /// Schedules the next HEARTBEAT of an idle path: HB.interval plus RTO, plus or minus half an RTO (section 8.3).
    //= docs/rfc9260.txt#section-3.3.5
    //# An endpoint SHOULD send a HEARTBEAT (HB) chunk to its peer endpoint to probe the reachability of a particular
    //# destination transport address defined in the present association.
    //= docs/rfc9260.txt#section-8.3
    //# Only one heartbeat SHOULD be sent each time the heartbeat timer expires (if multiple destinations are idle).
    pub(crate) fn schedule_heartbeat(&mut self, id: PathId) {
        let rto = self.paths.facts(id).rto;
        let jitter = self.reachability.jitter(rto);
        //= docs/rfc9260.txt#section-8.3
        //# On an idle destination address that is allowed to heartbeat, it is RECOMMENDED that a HEARTBEAT chunk is sent
        //# once per RTO of that destination address plus the protocol parameter 'HB.interval', with jittering of +/- 50%
        //# of the RTO value and exponential backoff of the RTO if the previous HEARTBEAT chunk is unanswered.
        let at = self.next_heartbeat_at(id, rto.over(2) + jitter);
        self.paths.schedule_heartbeat(id, at);
    }

    /// Delays the next HEARTBEAT of a path that the peer has probed: the peer learns from the answer that the path works. In an
    /// idle association, the own HEARTBEAT waits for one more interval. It is sent before the peer's next one, which waits for at
    /// least half an RTO more (section 8.3), so that both sides alternate. A peer that probes sooner, or does not get the answers,
    /// delays it once.
    pub(crate) fn yield_to_heartbeat(&mut self, id: PathId) {
        let yields = self.idleness().is_some() && self.is_healthy(id);
        if !yields || !self.paths.take_yield(id) {
            return;
        }
        let half_rto = self.paths.facts(id).rto.over(2);
        let jitter = self.reachability.jitter(half_rto);
        let at = self.next_heartbeat_at(id, jitter);
        self.paths.schedule_heartbeat(id, at);
    }

    /// Records that DATA was sent or received. After an idle time each path is probed within HB.interval again.
    pub(crate) fn data_passed(&mut self) {
        let was_idle = self.paths.profile().idle_heartbeats.is_some()
            && self.is_long(self.reachability.idle_for(self.now));
        self.reachability.note_data(self.now);
        if !was_idle {
            return;
        }
        for id in self.paths.ids() {
            if let Some(before) = self.paths[id].timers.heartbeat {
                self.schedule_heartbeat(id);
                self.paths.advance_heartbeat(id, before);
            }
        }
    }

    /// Restarts the HEARTBEAT timer of a path that carried a chunk whose answer gives an RTT sample, which replaces a HEARTBEAT. A
    /// retransmission gives none (RFC 9260 section 8.3): a path that carries only retransmissions would keep a backed-off RTO
    /// forever.
    pub(crate) fn restart_heartbeat_clock(&mut self, id: PathId) {
        if self.paths[id].timers.heartbeat.is_some() {
            self.schedule_heartbeat(id);
        }
    }

    /// Puts a path into service if none is active and the failover policy names one, so that data can be sent.
    pub(crate) fn promote_if_none_active(&mut self) {
        if self.paths.any_active() {
            return;
        }
        let Some(decision) = self.ask(|policies, view| policies.promote(view)) else { return };
        let id = decision.choice;
        self.outputs.statistics.promotions += 1;
        // T3 keeps running: a path that failed by a HEARTBEAT may have data in flight, and no other path has a T3 running.
        self.paths.stop_heartbeat(id);
        self.set_state(id, PathState::Active, StateCause::Promoted(decision.reason));
        self.schedule_heartbeat(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::testing::{Rig, at};
    use crate::profile::Profile;

    #[test]
    fn data_after_idle_time_brings_next_heartbeat_forward() {
        let mut rig = Rig::new(1, Profile::net());
        let id = PathId::new(0);
        rig.now = at(3_600_000);
        rig.dispatcher().schedule_heartbeat(id);
        let idle = rig.paths[id].timers.heartbeat.expect("one is scheduled");
        rig.dispatcher().data_passed();
        let busy = rig.paths[id].timers.heartbeat.expect("one is scheduled");
        let most = Profile::net().heartbeat_interval + rig.paths.facts(id).rto.times(2);
        assert!(busy < idle && busy <= rig.now + most, "{busy:?} after {idle:?}");
    }
}
