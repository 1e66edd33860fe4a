//! Key managements of an endpoint's associations.

use std::collections::{BTreeMap, BTreeSet};

use crate::keying::{self, ExportError, KeyManager, KeyingError, KeyingEvent, PeerIdentity, RestartKeys};
use crate::observer::KeyChange;
use crate::protection::DtlsProtection;
use crate::snapshot::KeyingCounters;
use anabranch_core::protection::{FIRST_EPOCH, KEY_MANAGEMENT_PPID};
use anabranch_core::time::Time;
use anabranch_core::{Association, AssociationId, FairPool, ReceivedMessage, Source};

/// Reason for evicting an association without keys.
const TOO_MANY: &str = "the endpoint's limit of concurrent handshakes is reached, and most of them come from this address; try again";

#[derive(Debug)]
struct Kept {
    dtls: DtlsProtection,
    /// Manager, once the association has negotiated protection.
    manager: Option<KeyManager>,
    /// Proved identity of the peer before it restarted the association.
    known: Option<PeerIdentity>,
    /// Entry among `deadlines`.
    deadline: Option<Time>,
}

/// Outcome of servicing a key management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The association may be used.
    Established,
    /// The association must be aborted for this reason, after waiting packets are sent.
    Failed(KeyingError),
}

/// Key managements of protected associations.
#[derive(Debug)]
pub(crate) struct KeyStore {
    /// Protection of associations that peers open.
    accept: Option<DtlsProtection>,
    kept: BTreeMap<AssociationId, Kept>,
    deadlines: BTreeSet<(Time, AssociationId)>,
    /// Associations opened by peers that have no keys yet. They advance once the peer begins the key exchange.
    pending: FairPool<AssociationId>,
    /// Changes to report to observers.
    changes: Vec<KeyChange>,
    counters: KeyingCounters,
}

impl KeyStore {
    pub(crate) fn new(accept: Option<DtlsProtection>, most_pending: usize) -> Self {
        KeyStore {
            accept,
            kept: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            pending: FairPool::new(most_pending),
            changes: Vec::new(),
            counters: KeyingCounters::default(),
        }
    }

    /// Registers an association that this endpoint has opened.
    pub(crate) fn opened(&mut self, id: AssociationId, dtls: DtlsProtection) {
        self.keep(id, dtls);
    }

    fn keep(&mut self, id: AssociationId, dtls: DtlsProtection) {
        self.kept.insert(id, Kept { dtls, manager: None, known: None, deadline: None });
    }

    /// Registers an association that a peer has opened from `source`. If too many associations have no keys, returns the
    /// association to end and the reason. It belongs to the source with the most such associations, so that no source excludes
    /// another.
    pub(crate) fn accepted(
        &mut self,
        id: AssociationId,
        source: Source,
    ) -> Option<(AssociationId, &'static str)> {
        let dtls = self.accept.clone()?;
        self.keep(id, dtls);
        self.pending.insert(id, source).map(|evicted| (evicted, TOO_MANY))
    }

    /// Returns `true` if packets of this association are protected or will be.
    pub(crate) fn holds(&self, id: AssociationId) -> bool {
        self.kept.contains_key(&id)
    }

    /// Returns `true` if the key management has not begun.
    pub(crate) fn is_key_management_pending(&self, id: AssociationId) -> bool {
        self.kept.get(&id).is_some_and(|kept| kept.manager.is_none())
    }

    /// Returns `true` if the association must not be used yet.
    pub(crate) fn awaits_keys(&self, id: AssociationId) -> bool {
        self.kept.get(&id).is_some_and(|kept| !kept.manager.as_ref().is_some_and(KeyManager::is_established))
    }

    /// Returns the associations opened by peers that have no keys yet.
    pub(crate) fn pending(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.pending.keys()
    }

    /// Handles a restart: the peer has forgotten the association and its keys, except restart keys if it is protected.
    pub(crate) fn restarted(&mut self, id: AssociationId) {
        if let Some(kept) = self.kept.get_mut(&id) {
            kept.known = kept.manager.take().and_then(|manager| manager.peer_identity().cloned());
        }
    }

    pub(crate) fn forget(&mut self, id: AssociationId) {
        let Some(kept) = self.kept.remove(&id) else { return };
        self.pending.remove(&id);
        if let Some(at) = kept.deadline {
            self.deadlines.remove(&(at, id));
        }
        let established = kept.manager.as_ref().is_some_and(KeyManager::is_established);
        self.counters.failed += u64::from(!established);
    }

    /// Returns the earliest deadline.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the associations whose deadlines have passed.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = AssociationId> + '_ {
        self.deadlines.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| *id)
    }

    pub(crate) fn counters(&self) -> KeyingCounters {
        KeyingCounters { pending: self.pending.len() as u64, ..self.counters }
    }

    pub(crate) fn identity(&self, id: AssociationId) -> Option<PeerIdentity> {
        self.manager(id)?.peer_identity().cloned()
    }

    /// Returns the identity of a peer that has rejected this endpoint.
    pub(crate) fn refused_by(&self, id: AssociationId) -> Option<PeerIdentity> {
        self.manager(id)?.unconfirmed_identity().cloned()
    }

    /// Returns keys for the application to store, once.
    pub(crate) fn take_restart_keys(&mut self, id: AssociationId) -> Option<RestartKeys> {
        self.kept.get_mut(&id)?.manager.as_mut()?.take_restart_keys()
    }

    pub(crate) fn export(
        &self,
        id: AssociationId,
        label: &[u8],
        context: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        self.manager(id).ok_or(ExportError::NotEstablished)?.export(label, context, out)
    }

    /// Returns the key management error that an ABORT reports, if any.
    pub(crate) fn meaning_of_abort(&self, id: AssociationId) -> Option<KeyingError> {
        self.manager(id).and_then(KeyManager::meaning_of_abort)
    }

    fn manager(&self, id: AssociationId) -> Option<&KeyManager> {
        self.kept.get(&id)?.manager.as_ref()
    }

    /// Processes a received message. Returns `false` if the message is for the application.
    pub(crate) fn take(
        &mut self,
        now: Time,
        id: AssociationId,
        (piece, payload): (&ReceivedMessage, &[u8]),
        association: &mut Association,
    ) -> bool {
        if piece.ppid != KEY_MANAGEMENT_PPID {
            return false;
        }
        let Some(kept) = self.kept.get_mut(&id) else { return false };
        if let Some(manager) = &mut kept.manager {
            manager.receive(now, piece, payload, association);
            if manager.statistics().handshakes > 0 {
                self.pending.advance(&id);
            }
        }
        true
    }

    /// Processes messages of the key management before there are keys, when no other messages may arrive.
    ///
    /// # Errors
    /// Returns the reason for which there can be no keys.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        id: AssociationId,
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        let Some(kept) = self.kept.get_mut(&id) else { return Ok(()) };
        if kept.manager.is_none()
            && let Some(agreement) = association.protection()
        {
            let DtlsProtection { credentials, policy, .. } = &kept.dtls;
            let known = kept.known.as_ref();
            let mut manager = keying::manager(now, association, agreement, credentials, policy, known)?;
            manager.start(association);
            kept.manager = Some(manager);
        }
        let mut payload = Vec::new();
        // An association that requires protection may also deliver messages of the application, which are read elsewhere.
        while self.awaits_keys(id)
            && !association.requires_protection()
            && let Some(piece) = association.recv(&mut payload)
        {
            self.take(now, id, (&piece, &payload), association);
            payload.clear();
        }
        Ok(())
    }

    /// Returns the changes of keys in the latest turn.
    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = KeyChange> + '_ {
        self.changes.drain(..)
    }

    /// Performs due actions. Returns the outcome if it changes the state of the association.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        id: AssociationId,
        association: &mut Association,
    ) -> Option<Outcome> {
        let Kept { manager, deadline, .. } = self.kept.get_mut(&id)?;
        let manager = manager.as_mut()?;
        manager.poll(now, association);
        let mut outcome = None;
        while let Some(event) = manager.poll_event() {
            match event {
                KeyingEvent::Established => {
                    self.counters.established += 1;
                    self.changes.push(KeyChange::Updated { epoch: FIRST_EPOCH });
                    self.pending.remove(&id);
                    outcome = Some(Outcome::Established);
                }
                KeyingEvent::Restarted => self.counters.restarts += 1,
                KeyingEvent::Rekeyed { epoch } => {
                    if epoch == FIRST_EPOCH {
                        // This key update follows a restart.
                        outcome = Some(Outcome::Established);
                    }
                    self.counters.rekeys += 1;
                    self.changes.push(KeyChange::Updated { epoch });
                }
                KeyingEvent::RekeyFailed(error) => {
                    self.counters.failed_rekeys += 1;
                    self.changes.push(KeyChange::Failed(error.text()));
                }
                KeyingEvent::Failed(error) => outcome = Some(Outcome::Failed(error)),
            }
        }
        let next = manager.deadline();
        if next != *deadline {
            deadline.take().map(|at| self.deadlines.remove(&(at, id)));
            *deadline = next;
            self.deadlines.extend(next.map(|at| (at, id)));
        }
        outcome
    }
}
