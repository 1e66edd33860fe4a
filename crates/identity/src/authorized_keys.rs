//! Keys that may connect to this user's servers.

mod followed;
mod rights;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::IdentityError;
use crate::label::Label;
use crate::public_key::{PREFIX as KEY_PREFIX, PublicKey, WrongPublicKey};
use crate::trust_file;

pub use followed::FollowedKeys;
pub use rights::{Operations, Rights};

/// A line of `authorized_keys`: `[OPTIONS] KEY [LABEL]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedKey {
    /// Rights of the key's holder.
    pub rights: Rights,
    /// Public key.
    pub key: PublicKey,
    /// Name of the holder, chosen by the user who added the key.
    pub label: Label,
}

/// Authorized keys, as read from the file.
#[derive(Clone, Debug)]
pub struct AuthorizedKeys {
    entries: Vec<(usize, AuthorizedKey)>,
}

impl AuthorizedKeys {
    /// Reads the file. A missing file contains no keys.
    ///
    /// # Errors
    /// Names the file, and the malformed line if there is one.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        Ok(AuthorizedKeys { entries: trust_file::load(&path.into(), read)? })
    }

    /// Iterates over the entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = &AuthorizedKey> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Adds a key to the file. An existing key keeps its label. Returns `true` if the key was new.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn add(path: &Path, entry: &AuthorizedKey) -> Result<bool, IdentityError> {
        let mut is_new = true;
        trust_file::append(path, &entry.to_string(), read, |entries| {
            is_new = !entries.iter().any(|(_, other)| other.key == entry.key);
            Ok(!is_new)
        })?;
        Ok(is_new)
    }

    /// Removes the entries that `goes` selects, and returns their number.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn remove(path: &Path, goes: impl Fn(&AuthorizedKey) -> bool) -> Result<usize, IdentityError> {
        trust_file::remove(path, read, goes)
    }
}

fn read(line: &str) -> Result<AuthorizedKey, String> {
    let (rights, line) = match line.starts_with(KEY_PREFIX) {
        true => (Rights::default(), line),
        false => Rights::parse_line(line).map_err(|why| format!("{why}; {}", WrongPublicKey::Text))?,
    };
    let (key, label) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    Ok(AuthorizedKey {
        rights,
        key: key.parse().map_err(|wrong: WrongPublicKey| wrong.to_string())?,
        label: label.parse().map_err(|wrong: crate::WrongLabel| wrong.to_string())?,
    })
}

/// Format of the file.
impl fmt::Display for AuthorizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AuthorizedKey { rights, key, label } = self;
        if !rights.is_empty() {
            write!(f, "{rights} ")?;
        }
        if label.is_empty() { write!(f, "{key}") } else { write!(f, "{key} {label}") }
    }
}

/// Fuzz target, like the one of known hosts.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(text: &str) {
    for (_, entry) in trust_file::parse(Path::new("authorized_keys"), text, read).unwrap_or_default() {
        assert_eq!(read(&entry.to_string()), Ok(entry));
    }
}

#[cfg(test)]
mod tests;
