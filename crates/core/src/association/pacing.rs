//! Pacing: what may not leave yet at a path's rate, and the one timer that lets it go.
//!
//! Each path has a `Pacer`; policies see its answer as [`PathFacts::paced_until`](crate::policy::PathFacts), and
//! core refuses what they send too early. As a send opportunity ends, what pacing alone kept back is noted
//! ([`Paced`](super::send_opportunity::Paced)), and the timer set to the earliest time at which some of it may leave. Then the
//! opportunity goes on for the paths that are free, rather than a new one begin: a packet costs one question to the policy
//! that places it, however many packets wait.

use crate::association::{Association, policies};
use crate::path_id::{PathId, PathSet};
use crate::policy::{Event, OpportunityCause, PathFacts, RetransmitChoice};
use crate::time::Time;

/// Nothing but pacing keeps a retransmission from leaving on this path.
fn holds_resends(facts: &PathFacts) -> bool {
    facts.paced_until.is_some() && facts.has_room_for_retransmission()
}

impl Association {
    /// The retransmission policy let a chunk wait, or named a path that is not free: the paths that pacing alone holds take it
    /// up again.
    pub(crate) fn hold_resend(&mut self, tsn: u64, choice: RetransmitChoice) {
        for id in self.paths.ids() {
            let meant = choice.path().is_none_or(|path| path == id);
            if meant && !self.paths[id].removed && holds_resends(self.paths.facts(id)) {
                self.opportunity.paced.hold_resend(id, tsn);
            }
        }
    }

    /// Whether an opportunity that goes on for some paths has come to the end of what they may send. What is left of the lost chunks
    /// waits for them.
    pub(crate) fn ends_resumed_walk(&mut self, next: u64) -> bool {
        let Some(released) = self.opportunity.released() else { return false };
        if released.iter().any(|id| self.paths.facts(id).admits_retransmission()) {
            return false;
        }
        for id in released.iter().filter(|&id| holds_resends(self.paths.facts(id))) {
            self.opportunity.paced.hold_resend(id, next);
        }
        true
    }

    /// Whether pacing alone keeps new data from leaving somewhere: then its timer ends any wait.
    pub(crate) fn pacing_ends_the_wait(&self) -> bool {
        self.paths.live().any(|id| {
            let facts = self.paths.facts(id);
            facts.paced_until.is_some() && facts.within_share && self.takes_new_data(id)
        })
    }

    /// Whether new data may leave on a path, whatever pacing says.
    fn takes_new_data(&self, id: PathId) -> bool {
        self.paths.is_in_service(id) && self.view().admits_new_data(id)
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
        let others = self.paths.live().filter(|&id| !released.contains(id));
        let release = |id| {
            let until = self.paths.facts(id).paced_until;
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
            awaited && self.paths.facts(id).paced_until.is_none()
        };
        let released: PathSet = self.paths.live().filter(free).collect();
        self.opportunity.paced.at = self.earliest_release(released);
        if released.is_empty() {
            return;
        }
        self.opportunity.resume(released);
        if self.opportunity.announced {
            self.sender.refresh_facts();
            let view = policies::view(self.now, &self.paths, &self.sender);
            self.policies.deliver_to_scheduler(&Event::SendOpportunity(OpportunityCause::Pacing), &view);
        }
    }
}
