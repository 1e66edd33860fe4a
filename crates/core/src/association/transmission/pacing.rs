//! Pacing: data that waits for a path's rate, and the one timer that releases it.
//!
//! Each path has a [`Pacer`](crate::paths::Paths); policies see its result as [`PathFacts::paced_until`](crate::policy::PathFacts),
//! and core rejects decisions to send before that time. At the end of a send opportunity, the data that pacing alone delays is
//! recorded ([`Paced`](super::Paced)), and the timer is set to the earliest time at which some of it may be sent. Then the
//! opportunity continues for the paths that are free, instead of a new one: the policy that places a packet is asked once for it,
//! independent of the number of waiting packets.

use crate::association::dispatch::Dispatcher;
use crate::association::policies;
use crate::association::transmission::Transmission;
use crate::path_id::{PathId, PathSet};
use crate::policy::{Event, OpportunityCause, PathFacts, RetransmitChoice};
use crate::time::Time;

/// Returns `true` if only pacing delays a retransmission on this path.
fn holds_resends(facts: &PathFacts) -> bool {
    facts.paced_until.is_some() && facts.has_room_for_retransmission()
}

impl Transmission {
    /// Records a chunk that the retransmission policy delayed, or placed on a path that is not free, for the paths that only pacing
    /// delays.
    pub(super) fn hold_resend(&mut self, d: &Dispatcher<'_>, tsn: u64, choice: RetransmitChoice) {
        for id in d.paths.ids() {
            let meant = choice.path().is_none_or(|path| path == id);
            if meant && !d.paths[id].removed && holds_resends(d.paths.facts(id)) {
                self.paced.hold_resend(id, tsn);
            }
        }
    }

    /// Returns `true` if an opportunity that continues for some paths has sent all that they may send. The other lost chunks wait
    /// for them.
    pub(super) fn ends_resumed_walk(&mut self, d: &Dispatcher<'_>, next: u64) -> bool {
        let Some(released) = self.released() else { return false };
        if released.iter().any(|id| d.paths.facts(id).admits_retransmission()) {
            return false;
        }
        for id in released.iter().filter(|&id| holds_resends(d.paths.facts(id))) {
            self.paced.hold_resend(id, next);
        }
        true
    }

    /// Returns `true` if only pacing delays new data on a path: its timer then ends any wait.
    pub(super) fn pacing_ends_the_wait(&self, d: &Dispatcher<'_>) -> bool {
        d.paths.live().any(|id| {
            let facts = d.paths.facts(id);
            facts.paced_until.is_some() && facts.within_share && takes_new_data(d, id)
        })
    }

    /// Sets the timer for data that pacing delays, at the end of an opportunity.
    pub(super) fn hold_paced(&mut self, d: &Dispatcher<'_>) {
        let offered = self.new_data || self.paced.new_data;
        self.paced.new_data = offered && (!d.sender.queue().is_empty() || d.sender.has_bound());
        self.paced.at = self.earliest_release(d, PathSet::EMPTY);
    }

    /// Returns `true` if new data waits for a paced path.
    fn awaits_new_data(&self, d: &Dispatcher<'_>, id: PathId) -> bool {
        self.paced.new_data && takes_new_data(d, id)
    }

    /// Returns the earliest time at which a path other than these continues.
    fn earliest_release(&self, d: &Dispatcher<'_>, released: PathSet) -> Option<Time> {
        let others = d.paths.live().filter(|&id| !released.contains(id));
        let release = |id| {
            let until = d.paths.facts(id).paced_until;
            self.paced.release(id, until, self.awaits_new_data(d, id), d.now)
        };
        others.filter_map(release).min()
    }

    /// Resumes an opportunity that has ended, if its timer is due already: a path was free before its repairs were offered to it
    /// again. Each repair is offered once; one that is delayed again waits for a path that is paced.
    pub(super) fn resume_at_once(&mut self, d: &mut Dispatcher<'_>) {
        if self.paced.at.is_some_and(|at| at <= d.now) {
            self.resume_paced(d);
        }
    }

    /// Resumes the opportunity for the free paths, because the pacing timer has expired or a rate has changed meanwhile.
    pub(super) fn resume_paced(&mut self, d: &mut Dispatcher<'_>) {
        let free = |&id: &PathId| {
            let awaited = self.paced.holds_repair(id) || self.awaits_new_data(d, id);
            awaited && d.paths.facts(id).paced_until.is_none()
        };
        let released: PathSet = d.paths.live().filter(free).collect();
        self.paced.at = self.earliest_release(d, released);
        if released.is_empty() {
            return;
        }
        self.resume(released);
        if self.announced {
            d.sender.refresh_facts();
            let view = policies::view(d.now, d.paths, d.sender);
            d.policies.deliver_to_scheduler(&Event::SendOpportunity(OpportunityCause::Pacing), &view);
        }
    }

    /// Adapts the timer to a changed rate.
    pub(crate) fn adapt_timer(&mut self, d: &mut Dispatcher<'_>) {
        if self.paced.at.is_some() {
            self.resume_paced(d);
        }
    }
}

/// Returns `true` if new data may be sent on a path, apart from pacing.
fn takes_new_data(d: &Dispatcher<'_>, id: PathId) -> bool {
    d.paths.is_in_service(id) && d.view().admits_new_data(id)
}
