//! Service of the endpoint's task for the key managements of its associations.

use std::net::{IpAddr, Ipv4Addr};

use crate::keying::KeyingError;
use anabranch_core::{AbortReason, Association, AssociationEvent, AssociationId, Source};

use crate::driver::Driver;
use crate::error::CloseReason;
use crate::key_store::Outcome;

/// Reason for ending associations without keys when the last handle of an endpoint is dropped.
const NOT_ACCEPTED: &str = "no application accepts it";

impl Driver {
    /// Registers an association that a peer has opened, which gets keys first if it is protected.
    pub(crate) fn await_keys(&mut self, id: AssociationId) {
        if let Some((evicted, why)) = self.keys.accepted(id, self.source_of(id)) {
            self.end_for_keys(evicted, why);
        }
    }

    /// Returns the source of an association that a peer has opened.
    pub(crate) fn source_of(&self, id: AssociationId) -> Source {
        self.endpoint.opened_by(id).unwrap_or(Source::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }

    /// Services a key management. Returns `true` if the application may use the association.
    pub(crate) fn serve_keys(&mut self, id: AssociationId) -> bool {
        if self.keys.awaits_keys(id) {
            let now = self.clock.now();
            let Some(association) = self.endpoint.association_mut(id) else { return false };
            if let Err(error) = self.keys.begin(now, id, association) {
                self.fail_for_keys(id, error);
                return false;
            }
        }
        self.advance_keys(id);
        // After a restart, the application can read as before. The messages that it sends wait for keys.
        let restarted = self.endpoint.association(id).is_some_and(Association::uses_restart_keys);
        restarted || !self.keys.awaits_keys(id)
    }

    /// Performs due actions of a key management, and handles their outcome.
    pub(crate) fn advance_keys(&mut self, id: AssociationId) {
        let now = self.clock.now();
        let Some(association) = self.endpoint.association_mut(id) else { return };
        let outcome = self.keys.advance(now, id, association);
        let mut changed = false;
        for change in self.keys.take_changes() {
            changed = true;
            self.watch.keys(now, id, &change);
        }
        match outcome {
            None => {}
            Some(Outcome::Established) => {
                self.admit(id);
                self.report_locals_to(id);
                self.due.insert(id);
            }
            Some(Outcome::Failed(error)) => self.fail_for_keys(id, error),
        }
        if changed {
            self.publish_keys(id);
        }
    }

    /// Publishes the results of an exchange: the peer's identity and the restart keys.
    fn publish_keys(&mut self, id: AssociationId) {
        let Some(shared) = self.entries.get(&id) else { return };
        let mut state = shared.lock();
        state.identity = self.keys.identity(id);
        if let Some(keys) = self.keys.take_restart_keys(id) {
            state.restart_keys = Some(keys);
        }
        drop(state);
        shared.changed.notify_waiters();
    }

    /// Ends an association because its key management has failed.
    fn fail_for_keys(&mut self, id: AssociationId, error: KeyingError) {
        self.note_failure(id, error);
        self.end_for_keys(id, error.text());
    }

    /// Stores the error for the caller that opened the association, and the identity of a peer that rejects this endpoint.
    fn note_failure(&self, id: AssociationId, error: KeyingError) {
        let Some(shared) = self.entries.get(&id) else { return };
        let mut state = shared.lock();
        state.keying_error = Some(error);
        if let Some(identity) = self.keys.refused_by(id) {
            state.identity = Some(identity);
        }
    }

    /// Ends an association. Packets that report the reason to the peer are sent before the ABORT.
    fn end_for_keys(&mut self, id: AssociationId, why: &'static str) {
        self.transmit_of(id);
        let now = self.clock.now();
        if let Some(association) = self.endpoint.association_mut(id) {
            association.abort_for_key_management(now, why);
        }
    }

    /// Handles an event of an association without a handle.
    pub(crate) fn on_pending_event(&mut self, id: AssociationId, event: AssociationEvent) {
        if !self.keys.holds(id) {
            return;
        }
        let outcome = match event {
            AssociationEvent::Readable | AssociationEvent::Writable => {
                self.due.insert(id);
                return;
            }
            AssociationEvent::Restarted => {
                self.keys.restarted(id);
                self.due.insert(id);
                return;
            }
            AssociationEvent::Closed => Ok(()),
            AssociationEvent::Aborted(reason) => Err(CloseReason::Aborted(reason)),
            _ => return,
        };
        self.watch.closed(self.clock.now(), id, &mut self.endpoint, &outcome);
        self.keys.forget(id);
        // An association that was refused after it got keys is listed already.
        if !self.spent.contains(&id) {
            self.spent.push(id);
        }
    }

    /// Returns the key management's reason for the end of an association. The peer may have rejected this endpoint before it
    /// aborted; the ABORT alone is not a verdict.
    pub(crate) fn reason_of_abort(&mut self, id: AssociationId, reason: AbortReason) -> AbortReason {
        if reason != AbortReason::ByPeer {
            return reason;
        }
        let refusal = self.refusal_before_abort(id);
        let Some(error) = refusal.or_else(|| self.keys.meaning_of_abort(id)) else { return reason };
        self.note_failure(id, error);
        AbortReason::KeyManagement(error.text())
    }

    fn refusal_before_abort(&mut self, id: AssociationId) -> Option<KeyingError> {
        if !self.keys.awaits_keys(id) {
            return None;
        }
        let now = self.clock.now();
        let association = self.endpoint.association_mut(id)?;
        self.keys.begin(now, id, association).ok()?;
        match self.keys.advance(now, id, association) {
            Some(Outcome::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// Ends associations that can no longer be accepted, because the last handle of the endpoint was dropped.
    pub(crate) fn refuse_pending(&mut self) {
        let pending: Vec<AssociationId> = self.keys.pending().collect();
        for id in pending {
            self.end_for_keys(id, NOT_ACCEPTED);
        }
    }
}
