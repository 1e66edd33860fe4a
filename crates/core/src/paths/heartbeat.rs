//! HEARTBEATs of a path, and the times at which they are due.

use crate::path_id::{PathId, PathSet};
use crate::paths::Paths;
use crate::paths::path::{AddressValidation, PendingHeartbeat};
use crate::time::Time;

impl Paths {
    /// Records that a HEARTBEAT is sent: it counts as an error if it is not answered within an RTO.
    pub(crate) fn begin_heartbeat(&mut self, id: PathId, nonce: u64, now: Time) {
        let rto = self.facts[id.index()].rto;
        let cost = self.cost_to_report(id);
        if let Some(cost) = cost {
            self.note_cost_report(id, cost);
        }
        let path = &mut self.paths[id.index()];
        path.pending_heartbeat = Some(PendingHeartbeat { nonce, sent_at: now, cost });
        path.timers.heartbeat_timeout = Some(now + rto);
        path.timers.heartbeat = None;
    }

    /// Replaces the HEARTBEAT that waits for its answer. Its RTO continues, so that each RTO counts one error at most.
    pub(crate) fn repeat_heartbeat(&mut self, id: PathId, nonce: u64, now: Time) {
        let error_at = self[id].timers.heartbeat_timeout;
        self.begin_heartbeat(id, nonce, now);
        self.paths[id.index()].timers.heartbeat_timeout = error_at;
    }

    /// Records that the HEARTBEAT that was started on a path is not queued yet.
    pub(crate) fn note_unsent_heartbeat(&mut self, id: PathId) {
        self.unsent_heartbeats.insert(id);
    }

    /// Takes the paths whose HEARTBEAT was started and is not queued yet.
    #[inline]
    pub(crate) fn take_unsent_heartbeats(&mut self) -> PathSet {
        std::mem::replace(&mut self.unsent_heartbeats, PathSet::EMPTY)
    }

    pub(crate) fn schedule_heartbeat(&mut self, id: PathId, at: Time) {
        self.paths[id.index()].timers.heartbeat = Some(at);
    }

    /// Makes the next HEARTBEAT due at this time if it would be later.
    pub(crate) fn advance_heartbeat(&mut self, id: PathId, at: Time) {
        let timer = &mut self.paths[id.index()].timers.heartbeat;
        *timer = (*timer).min(Some(at));
    }

    /// Records that a HEARTBEAT of the peer delays the next one. Returns `true` if none has before, and one is due.
    pub(crate) fn take_yield(&mut self, id: PathId) -> bool {
        let path = &mut self.paths[id.index()];
        path.timers.heartbeat.is_some() && !std::mem::replace(&mut path.yielded, true)
    }

    /// Forgets the HEARTBEAT that waits for its answer.
    pub(crate) fn forget_heartbeat(&mut self, id: PathId) {
        self.paths[id.index()].pending_heartbeat = None;
    }

    /// Clears the unanswered HEARTBEAT and stops its time-out, because the path is put into service without an answer.
    pub(crate) fn stop_heartbeat(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.timers.heartbeat_timeout = None;
        path.pending_heartbeat = None;
    }

    /// Takes the HEARTBEAT of a live path that this nonce answers. A peer that knows the nonce receives packets at the address (RFC
    /// 9260 section 5.4).
    pub(crate) fn answer_heartbeat(&mut self, id: PathId, nonce: u64) -> Option<PendingHeartbeat> {
        let path = self.paths.get_mut(id.index()).filter(|path| !path.removed)?;
        let pending = path.pending_heartbeat.take_if(|pending| pending.nonce == nonce)?;
        path.timers.heartbeat_timeout = None;
        path.yielded = false;
        path.validation = AddressValidation::Trusted;
        path.successor = None;
        if let Some(cost) = pending.cost {
            self.acknowledge_cost(id, cost);
        }
        Some(pending)
    }
}
