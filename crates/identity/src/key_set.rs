//! Which keys a side accepts while the handshake goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::public_key::PublicKey;

/// Whom a side accepts.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Whoever proves to hold the key that it shows. The caller looks at the key after the handshake, before it sends anything.
    Anyone,
    /// Holders of these keys. Others are refused within the handshake.
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

/// Keys that may be replaced while handshakes go on: in memory, because a handshake must not wait for a disk.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: RwLock<BTreeSet<PublicKey>>,
}

impl KeySet {
    /// Handshakes that begin from now on accept these keys only.
    pub fn replace(&self, keys: impl IntoIterator<Item = PublicKey>) {
        let keys = keys.into_iter().collect();
        // Nothing panics while it holds the lock.
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Whether a key is one of these.
    pub fn contains(&self, key: PublicKey) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// Whether nobody is accepted.
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
