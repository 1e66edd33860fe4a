//! How often the paths of an association are probed that carries no DATA ([`IdleHeartbeats`]).

use crate::association::Association;
use crate::path_id::{PathId, PathState};
use crate::profile::IdleHeartbeats;
use crate::time::{Span, Time};

impl Association {
    /// How this association is probed and for how long no DATA has passed, if it is idle.
    fn idleness(&self) -> Option<(IdleHeartbeats, Span)> {
        let rules = self.profile.idle_heartbeats?;
        let idle_for = self.now.since(self.liveness.data_at);
        (self.is_long(idle_for) && self.sender.buffered_bytes() == 0).then_some((rules, idle_for))
    }

    /// Whether DATA that does not pass for so long need not be expected: a peer that backs off sends some every RTO.Max.
    fn is_long(&self, idle_for: Span) -> bool {
        idle_for > self.profile.heartbeat_interval.max(self.profile.rto_max)
    }

    /// A path that has errors or is out of service is probed as often as in an association that carries DATA.
    fn is_healthy(&self, id: PathId) -> bool {
        let facts = self.paths.facts(id);
        facts.state == PathState::Active && facts.error_count == 0
    }

    /// When a path is probed next: after the interval that is in force, and `more`.
    pub(crate) fn next_heartbeat_at(&self, id: PathId, more: Span) -> Time {
        let interval = self.profile.heartbeat_interval;
        match self.idleness().filter(|_| self.is_healthy(id)) {
            Some((rules, idle_for)) => {
                let wait = idle_for.min(rules.longest_interval).max(interval);
                rules.next_tick(self.now + wait + more)
            }
            None => self.now + interval + more,
        }
    }

    /// The peer has probed a path, and our answer lets it know what our own probe would tell it. While the association is idle
    /// ours waits for one more interval, and leaves then: before the peer's next one, which waits for half an RTO more at least
    /// (section 8.3), so that both sides take turns. A peer that probes sooner, or does not get our answers, delays ours once.
    pub(crate) fn yield_to_heartbeat(&mut self, id: PathId) {
        let yields = self.idleness().is_some() && self.is_healthy(id);
        if !yields || !self.paths.take_yield(id) {
            return;
        }
        let half_rto = self.paths.facts(id).rto.over(2);
        let jitter = Span::from_nanos(self.entropy.below(half_rto.as_nanos().max(1)));
        let at = self.next_heartbeat_at(id, jitter);
        self.paths.schedule_heartbeat(id, at);
    }

    /// DATA left or came. After an idle time each path is probed within HB.interval again.
    pub(crate) fn data_passed(&mut self) {
        let was_idle =
            self.profile.idle_heartbeats.is_some() && self.is_long(self.now.since(self.liveness.data_at));
        self.liveness.data_at = self.now;
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

    /// Before the first error the peer was asked nothing for as long as HEARTBEATs were apart: a silence of its begins no more
    /// than HB.interval ago, however long the association was idle.
    pub(crate) fn forgive_idle_silence(&mut self) {
        let interval = self.profile.heartbeat_interval;
        if self.profile.idle_heartbeats.is_some() && self.liveness.errors == 0 {
            let heard_for = self.now.since(self.liveness.silent_since);
            self.liveness.silent_since += heard_for - heard_for.min(interval);
        }
    }
}
