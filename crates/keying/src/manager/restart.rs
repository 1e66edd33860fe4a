//! Restarts with keys that were kept for them (draft-porfiri-tsvwg-sctp-dtls-handshake, section "SCTP Association Restart").
//!
//! An association that was restarted is protected from the beginning. Until the first exchange since is done the peer has proved no
//! more than that it has the keys, and user messages wait. That exchange has as long as one without keys, and ends the association
//! if it fails: whoever has stolen keys and cannot prove who he is has nothing of them.

use anabranch_core::Association;
use anabranch_core::protection::Agreement;
use anabranch_core::time::Time;
use anabranch_dtls::RestartKeys;

use super::{Attempt, KeyManager};
use crate::credentials::PeerIdentity;
use crate::error::KeyingError;
use crate::exchange::{KeyExchanges, ParameterBinding};
use crate::policy::KeyPolicy;

/// What is known of an association that was restarted.
#[derive(Debug)]
pub(super) struct Restarted {
    /// Who the peer had proved to be before, at the side that has not lost the association.
    known: Option<PeerIdentity>,
    /// Both sides have proved that they have the keys.
    up: bool,
}

impl Restarted {
    pub(super) fn known(&self) -> Option<&PeerIdentity> {
        self.known.as_ref()
    }

    /// The association is up; whether that is new.
    pub(super) fn comes_up(&mut self) -> bool {
        !std::mem::replace(&mut self.up, true)
    }
}

impl KeyManager {
    /// For an association that [uses restart keys](Association::uses_restart_keys): at the side that restarts it as soon as there is an
    /// agreement, and at the other in the place of the manager that it had, whose [`peer_identity`](Self::peer_identity) the peer
    /// has to prove again.
    ///
    /// # Errors
    /// [`KeyingError::Method`] if the agreement is not on TLS.
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

    /// The newest keys with which this side could restart the association; each once. There are some if both sides have offered to
    /// keep them, and new ones whenever primary keys change. The peer keeps the ones before for as long as it takes what is on
    /// its way, at least two minutes by default: until then they are to be stored in the place of the old ones.
    pub fn take_restart_keys(&mut self) -> Option<RestartKeys> {
        self.restart_keys.take()
    }
}

impl Attempt {
    /// Section "DKC Installation": with each epoch come keys for a restart, if both sides have offered to keep them. A peer that
    /// restarts right after it has stored its own finds ours here, since they are there before it hears that the exchange is done.
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
