//! Authorized keys of a running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use super::{AuthorizedKey, AuthorizedKeys};
use crate::error::IdentityError;
use crate::key_set::KeySet;
use crate::public_key::PublicKey;

/// Keys of an `authorized_keys` file for handshakes ([`Admission::Only`](crate::Admission::Only)). The set follows changes of the
/// file.
#[derive(Clone, Debug)]
pub struct FollowedKeys {
    file: PathBuf,
    keys: Arc<KeySet>,
    /// Entries of the keys, for the servers whose handshakes use them. Clones share them.
    entries: Arc<RwLock<Vec<AuthorizedKey>>>,
    /// State of the last version read. After an error the field is unchanged, so that the file is read again: corrected
    /// permissions do not change its state.
    read_state: Option<State>,
    /// Error of the last attempt to read the file, if it failed.
    last_error: Option<String>,
}

/// Modification time and length of a file: enough to notice a replaced file.
type State = (SystemTime, u64);

impl FollowedKeys {
    /// Reads the keys of the file. A missing file contains no keys.
    ///
    /// # Errors
    /// Fails like [`AuthorizedKeys::load`].
    pub fn load(file: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        let file = file.into();
        let read_state = state_of(&file);
        let entries = read(&file)?;
        let keys = Arc::new(entries.iter().map(|entry| entry.key).collect());
        Ok(FollowedKeys { file, keys, entries: Arc::new(RwLock::new(entries)), read_state, last_error: None })
    }

    /// Returns the keys. Handshakes that begin after [`reload_if_changed`](Self::reload_if_changed) has read other keys use those.
    pub fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.keys)
    }

    /// Returns the entry of a key; the first one if there are several.
    pub fn entry(&self, key: PublicKey) -> Option<AuthorizedKey> {
        // A poisoned lock is still consistent, because no code panics while it holds the lock.
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|entry| entry.key == key).cloned()
    }

    /// Returns `true` if the [keys](Self::keys) are shared with a handshake configuration.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.keys) > 1
    }

    /// Reads the file if it changed. If it cannot be read, the previous keys stay admitted and the next call tries again. Returns
    /// an error unless the previous call returned the same one.
    pub fn reload_if_changed(&mut self) -> Option<String> {
        let now = state_of(&self.file);
        if now == self.read_state {
            self.last_error = None;
            return None;
        }
        match read(&self.file) {
            Ok(read) => {
                self.keys.replace(read.iter().map(|entry| entry.key));
                *self.entries.write().unwrap_or_else(PoisonError::into_inner) = read;
                self.read_state = now;
                self.last_error = None;
                None
            }
            Err(error) => {
                let error = error.to_string();
                let is_new = self.last_error.as_ref() != Some(&error);
                self.last_error = Some(error.clone());
                is_new.then_some(error)
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<AuthorizedKey>, IdentityError> {
    Ok(AuthorizedKeys::load(file)?.entries().cloned().collect())
}

fn state_of(file: &Path) -> Option<State> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::testing::{key, set_mode};

    #[test]
    fn refused_file_is_reread_when_possible_and_errs_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("authorized_keys");
        let [kept, removed] = [1, 2].map(key);
        fs::write(&file, format!("{kept}\n{removed}\n")).expect("written");
        set_mode(&file, 0o600);
        let mut followed = FollowedKeys::load(&file).expect("read");
        let keys = followed.keys();

        fs::write(&file, format!("{kept}\n")).expect("written");
        set_mode(&file, 0o622);
        let error = followed.reload_if_changed().expect("refused");
        assert!(error.contains("chmod go-w"), "{error}");
        assert_eq!(followed.reload_if_changed(), None);
        assert!(keys.contains(removed));

        set_mode(&file, 0o600);
        let shared = followed.clone();
        assert_eq!(followed.reload_if_changed(), None);
        assert!(keys.contains(kept) && !keys.contains(removed));
        assert!(shared.entry(removed).is_none() && shared.entry(kept).is_some());

        fs::write(&file, "no key\n").expect("written");
        assert!(followed.reload_if_changed().is_some_and(|error| error.contains("authorized_keys:1")));
        assert_eq!(followed.reload_if_changed(), None);
        assert!(keys.contains(kept));
    }

    #[test]
    fn file_is_used_while_its_keys_are_shared() {
        let folder = tempfile::tempdir().expect("a folder");
        let followed = FollowedKeys::load(folder.path().join("authorized_keys")).expect("none is empty");
        assert!(!followed.is_used());
        let keys = followed.keys();
        assert!(followed.is_used() && keys.is_empty());
        drop(keys);
        assert!(!followed.is_used());
    }
}
