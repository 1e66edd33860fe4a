//! Key management by TLS 1.3.

use anabranch_core::Association;
use anabranch_core::protection::Agreement;
use anabranch_core::time::Time;
use anabranch_keying::TlsExchanges;
pub use anabranch_keying::{
    Credentials, ExportError, IdentityForm, KeyPolicy, PeerIdentity, RestartKeys, RestartKeysError,
};
pub(crate) use anabranch_keying::{KeyManager, KeyingError, KeyingEvent};

/// Creates the key management of an association, whose peer had proved the identity `known` before it restarted the association.
pub(crate) fn manager(
    now: Time,
    association: &Association,
    agreement: &Agreement,
    credentials: &Credentials,
    policy: &KeyPolicy,
    known: Option<&PeerIdentity>,
) -> Result<KeyManager, KeyingError> {
    let exchanges = Box::new(TlsExchanges::new(credentials.clone()));
    let policy = policy.clone();
    if association.uses_restart_keys() {
        KeyManager::restarted(now, agreement, exchanges, policy, known.cloned())
    } else {
        KeyManager::new(now, agreement, exchanges, policy)
    }
}
