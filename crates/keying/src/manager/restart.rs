//! Restarts with restart keys (draft-porfiri-tsvwg-sctp-dtls-handshake, section "SCTP Association Restart").
//!
//! A restarted association is protected from the beginning. Until the next exchange is done, the peer has proved only that it has
//! the restart keys, and user messages wait. That exchange has the timeout of the first one, and its failure ends the association.
//! Therefore stolen keys are useless to an attacker who cannot prove the peer's identity.

use anabranch_core::Association;
use anabranch_core::protection::Agreement;
use anabranch_core::time::Time;
use anabranch_dtls::RestartKeys;

use super::{Attempt, KeyManager};
use crate::credentials::PeerIdentity;
use crate::error::KeyingError;
use crate::exchange::{KeyExchanges, ParameterBinding};
use crate::policy::KeyPolicy;

/// State of a restarted association until its next exchange.
#[derive(Debug)]
pub(super) struct Restarted {
    /// Proved identity of the peer before the restart, at the endpoint that kept the association.
    known: Option<PeerIdentity>,
    /// Set once both endpoints have proved that they have the keys.
    up: bool,
}

impl Restarted {
    pub(super) fn known(&self) -> Option<&PeerIdentity> {
        self.known.as_ref()
    }

    /// Records that the association is established. Returns `true` the first time.
    pub(super) fn mark_established(&mut self) -> bool {
        !std::mem::replace(&mut self.up, true)
    }
}

impl KeyManager {
    /// Creates the manager of an association that [uses restart keys](Association::uses_restart_keys). The restarting endpoint
    /// creates it as soon as there is an agreement. The other endpoint replaces its previous manager, whose
    /// [`peer_identity`](Self::peer_identity) the peer has to prove again.
    ///
    /// # Errors
    /// Returns [`KeyingError::Method`] if the negotiated method is not TLS.
    pub fn restarted(
        now: Time,
        agreement: &Agreement,
        exchanges: Box<dyn KeyExchanges>,
        policy: KeyPolicy,
        known: Option<PeerIdentity>,
    ) -> Result<Self, KeyingError> {
        let manager = KeyManager::new(now, agreement, exchanges, policy)?;
        Ok(KeyManager { restarted: Some(Restarted { known, up: false }), ..manager })
    }

    /// Returns the newest restart keys of this endpoint, each once. They exist if both endpoints offered to keep them, and change
    /// with the primary keys. The peer keeps the previous ones while it drains packets in flight, by default at least two minutes.
    /// Store the new keys in place of the old ones within that time.
    pub fn take_restart_keys(&mut self) -> Option<RestartKeys> {
        self.restart_keys.take()
    }
}

impl Attempt {
    /// Section "DKC Installation": each epoch has restart keys, if both endpoints offered to keep them. They are installed before
    /// the peer learns that the exchange is done. Thus a peer that restarts right after storing its keys finds them here.
    pub(super) fn keep_restart_keys(
        &mut self,
        binding: &ParameterBinding,
        association: &mut Association,
    ) -> Result<(), KeyingError> {
        if association.protection().is_some_and(Agreement::restart) {
            let keys = self.exchange.restart_keys(self.part, self.epoch, binding)?;
            association.install_restart_keys(keys.context())?;
            self.restart_keys = Some(keys);
        }
        Ok(())
    }
}
