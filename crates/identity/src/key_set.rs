//! Set of keys that an endpoint accepts during handshakes.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::public_key::PublicKey;

/// Keys that an endpoint accepts.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Any key whose possession the peer proves. The caller checks the key after the handshake, before it sends any data.
    Anyone,
    /// Keys of this set. Other keys are rejected during the handshake.
    Only(Arc<KeySet>),
}

impl Admission {
    pub(crate) fn admits(&self, key: PublicKey) -> bool {
        match self {
            Admission::Anyone => true,
            Admission::Only(keys) => keys.contains(key),
        }
    }
}

/// Keys that may be replaced while handshakes run. They are kept in memory, because a handshake must not wait for a disk.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: RwLock<BTreeSet<PublicKey>>,
}

impl KeySet {
    /// Replaces the keys. Handshakes that begin afterwards accept only the new keys.
    pub fn replace(&self, keys: impl IntoIterator<Item = PublicKey>) {
        let keys = keys.into_iter().collect();
        // A poisoned lock is still consistent, because no code panics while it holds the lock.
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Returns `true` if the set contains the key.
    pub fn contains(&self, key: PublicKey) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// Returns `true` if no key is accepted.
    pub fn is_empty(&self) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl FromIterator<PublicKey> for KeySet {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        let set = KeySet::default();
        set.replace(keys);
        set
    }
}
