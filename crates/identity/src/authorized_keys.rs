//! Who may connect to this user's servers.

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
    /// Rights of its holder.
    pub rights: Rights,
    /// The key.
    pub key: PublicKey,
    /// Whose it is, in the words of whoever added it.
    pub label: Label,
}

/// The keys that may connect, as they were when the file was read.
#[derive(Clone, Debug)]
pub struct AuthorizedKeys {
    entries: Vec<(usize, AuthorizedKey)>,
}

impl AuthorizedKeys {
    /// Reads the file. One that is not there is empty.
    ///
    /// # Errors
    /// Names the file, and the line if one is wrong.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        Ok(AuthorizedKeys { entries: trust_file::load(&path.into(), read)? })
    }

    /// The entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &AuthorizedKey> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Adds a key to the file. One that is there keeps its label. Returns whether it was new.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn add(path: &Path, entry: &AuthorizedKey) -> Result<bool, IdentityError> {
        let mut is_new = true;
        trust_file::append(path, &entry.to_string(), read, |entries| {
            is_new = !entries.iter().any(|(_, other)| other.key == entry.key);
            Ok(!is_new)
        })?;
        Ok(is_new)
    }

    /// Removes the entries that `goes` picks from the file, and returns how many they were.
    ///
    /// # Errors
    /// If the file cannot be read or written.
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

/// As in the file.
impl fmt::Display for AuthorizedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AuthorizedKey { rights, key, label } = self;
        if !rights.is_empty() {
            write!(f, "{rights} ")?;
        }
        if label.is_empty() { write!(f, "{key}") } else { write!(f, "{key} {label}") }
    }
}

/// The body of a fuzz target, as for known hosts.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(text: &str) {
    for (_, entry) in trust_file::parse(Path::new("authorized_keys"), text, read).unwrap_or_default() {
        assert_eq!(read(&entry.to_string()), Ok(entry));
    }
}

#[cfg(test)]
mod tests;
