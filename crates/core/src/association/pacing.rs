//! Pacing: what may not leave yet at a path's rate, and the one timer that lets it go.
//!
//! Each path has a [`Pacer`](crate::pacer::Pacer); policies see its answer as [`PathFacts::paced_until`](crate::policy::PathFacts), and
//! core refuses what they send too early. As a send opportunity ends, what pacing alone kept back is noted
//! ([`Paced`](super::send_opportunity::Paced)), and the timer set to the earliest time at which some of it may leave. Then the
//! opportunity goes on for the paths that are free, rather than a new one begin: a packet costs one question to the policy
//! that places it, however many packets wait.

use crate::association::Association;
use crate::path_id::{PathId, PathSet};
use crate::policy::{Event, OpportunityCause, Pacing, PathFacts, Reason, Refused, RetransmitChoice};
use crate::time::Time;
use crate::trace::Decided;
use crate::units::ChunkBytes;

/// Nothing but pacing keeps a retransmission from leaving on this path.
fn holds_resends(facts: &PathFacts) -> bool {
    facts.paced_until.is_some() && facts.has_room_for_retransmission()
}

impl Association {
    /// Time has passed: the paths whose time has come are free.
    pub(crate) fn release_paced_paths(&mut self) {
        let now = self.now;
        for facts in self.policy.facts_mut() {
            facts.paced_until.take_if(|at| *at <= now);
        }
    }

    /// DATA leaves on a path.
    pub(crate) fn occupy_pacer(&mut self, path: PathId, bytes: ChunkBytes) {
        if self.policy.path(path).pacing.rate.is_some() {
            self.paths[path.index()].pacer.occupy(bytes, self.now);
            self.publish_pacer(path);
        }
    }

    fn publish_pacer(&mut self, path: PathId) {
        self.policy.path_mut(path).paced_until = self.paths[path.index()].pacer.held_until(self.now);
    }

    /// Takes over how congestion control paces a path.
    pub(crate) fn adopt_pacing(&mut self, id: PathId) {
        let changed = self.policy.adopt_pacing(id);
        let facts = self.policy.path(id);
        let (rate, packet) = (facts.pacing.rate, facts.largest_chunk);
        if rate.is_some() || changed.is_some() {
            let timer = self.policy.profile.pacing_timer;
            self.paths[id.index()].pacer.set(rate, packet, timer, self.now);
            self.publish_pacer(id);
        }
        if let Some((pacing, reason)) = changed {
            self.record_pacing(id, pacing, reason);
            if self.opportunity.paced.at.is_some() {
                // The timer may be late now.
                self.resume_paced();
            }
        }
    }

    fn record_pacing(&mut self, path: PathId, pacing: Pacing, reason: Reason) {
        let reason = match (pacing.rate, pacing.in_flight_cap) {
            (Some(rate), _) => Reason::figure(reason.rule, "pacing_rate_kbps", rate.as_bps() as f64 / 1e3),
            (None, Some(cap)) => Reason::figure(reason.rule, "in_flight_cap_bytes", cap.get() as f64),
            (None, None) => Reason::rule(reason.rule),
        };
        self.record(Decided::Pacing { path, pacing }, 0, reason, &Refused::new());
    }

    /// The retransmission policy let a chunk wait, or named a path that is not free: the paths that pacing alone holds take it
    /// up again.
    pub(crate) fn hold_resend(&mut self, tsn: u64, choice: RetransmitChoice) {
        for index in 0..self.paths.len() {
            let id = PathId::new(index);
            let meant = choice.path().is_none_or(|path| path == id);
            if meant && !self.paths[index].removed && holds_resends(self.policy.path(id)) {
                self.opportunity.paced.hold_resend(id, tsn);
            }
        }
    }

    /// Whether an opportunity that goes on for some paths has come to the end of what they may send. What is left of the lost chunks
    /// waits for them.
    pub(crate) fn ends_resumed_walk(&mut self, next: u64) -> bool {
        let Some(released) = self.opportunity.released() else { return false };
        if released.iter().any(|id| self.policy.path(id).admits_retransmission()) {
            return false;
        }
        for id in released.iter().filter(|&id| holds_resends(self.policy.path(id))) {
            self.opportunity.paced.hold_resend(id, next);
        }
        true
    }

    /// Whether pacing alone keeps new data from leaving somewhere: then its timer ends any wait.
    pub(crate) fn pacing_ends_the_wait(&self) -> bool {
        self.live_paths().any(|id| {
            let facts = self.policy.path(id);
            facts.paced_until.is_some() && facts.within_share && self.takes_new_data(id)
        })
    }

    /// Whether new data may leave on a path, whatever pacing says.
    fn takes_new_data(&self, id: PathId) -> bool {
        self.may_bind(id) && self.view().admits_new_data(id)
    }

    /// An opportunity ends: what pacing held back waits for the timer.
    pub(crate) fn hold_paced(&mut self) {
        let offered = self.opportunity.new_data || self.opportunity.paced.new_data;
        self.opportunity.paced.new_data =
            offered && (!self.sender.queue().is_empty() || self.sender.has_bound());
        self.opportunity.paced.at = self.earliest_release(PathSet::EMPTY);
    }

    /// Whether new data waits for a path that pacing held.
    fn awaits_new_data(&self, id: PathId) -> bool {
        self.opportunity.paced.new_data && self.takes_new_data(id)
    }

    /// When the first path but these goes on.
    fn earliest_release(&self, released: PathSet) -> Option<Time> {
        let others = self.live_paths().filter(|&id| !released.contains(id));
        let release = |id| {
            let until = self.policy.path(id).paced_until;
            self.opportunity.paced.release(id, until, self.awaits_new_data(id), self.now)
        };
        others.filter_map(release).min()
    }

    /// An opportunity has ended. What it had held for a path that was free before anything looked at it again leaves now, rather than
    /// by a timer that is due at once. Each repair is taken up once: what is held again waits for a path that is paced.
    pub(crate) fn resume_at_once(&mut self) {
        if self.opportunity.paced.at.is_some_and(|at| at <= self.now) {
            self.resume_paced();
        }
    }

    /// The pacing timer, or a rate that has changed under it: the opportunity goes on for those paths that are free.
    pub(crate) fn resume_paced(&mut self) {
        let free = |&id: &PathId| {
            let awaited = self.opportunity.paced.holds_repair(id) || self.awaits_new_data(id);
            awaited && self.policy.path(id).paced_until.is_none()
        };
        let released: PathSet = self.live_paths().filter(free).collect();
        self.opportunity.paced.at = self.earliest_release(released);
        if released.is_empty() {
            return;
        }
        self.opportunity.resume(released);
        if self.opportunity.announced {
            self.policy.refresh(&self.sender);
            self.policy.tell_scheduler(&Event::SendOpportunity(OpportunityCause::Pacing), self.now);
        }
    }
}
