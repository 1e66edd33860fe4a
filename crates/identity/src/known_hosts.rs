//! Known keys of hosts.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{ChangedKey, IdentityError};
use crate::host_name::HostName;
use crate::public_key::PublicKey;
use crate::trust_file;

/// A line of `known_hosts`: `HOST:PORT KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// Host name that the user connects to.
    pub host: HostName,
    /// Public key of the host.
    pub key: PublicKey,
}

/// Result of checking a host's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStatus {
    /// The host presented this key before.
    Known,
    /// No key of the host is known, and the user decides about trusting it.
    Unknown,
}

/// Hosts of earlier connections, as read from the file.
#[derive(Clone, Debug)]
pub struct KnownHosts {
    path: PathBuf,
    entries: Vec<(usize, KnownHost)>,
}

impl KnownHosts {
    /// Reads the file. A missing file contains no hosts.
    ///
    /// # Errors
    /// Names the file, and the malformed line if there is one. A truncated file must not turn known hosts into unknown ones.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        let path = path.into();
        Ok(KnownHosts { entries: trust_file::load(&path, read)?, path })
    }

    /// Iterates over the entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = &KnownHost> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Checks the key that a host presents.
    ///
    /// # Errors
    /// Returns [`IdentityError::Changed`] if only other keys of the host are known.
    pub fn check(&self, host: &HostName, key: PublicKey) -> Result<HostStatus, IdentityError> {
        check(&self.path, &self.entries, host, key)
    }

    /// Adds a host to the file, safely with concurrent changes by other processes. Returns `true` if the entry was new.
    ///
    /// # Errors
    /// Returns [`IdentityError::Changed`] if another process has added the host with another key.
    pub fn add(path: &Path, host: &HostName, key: PublicKey) -> Result<bool, IdentityError> {
        let entry = KnownHost { host: host.clone(), key };
        let mut is_new = true;
        trust_file::append(path, &entry.to_string(), read, |entries| {
            is_new = check(path, entries, host, key)? == HostStatus::Unknown;
            Ok(!is_new)
        })?;
        Ok(is_new)
    }

    /// Trusts a host at first use: adds an unknown host to the file with this key. Returns the previous result for the host.
    ///
    /// # Errors
    /// Returns [`IdentityError::Changed`] if only other keys of the host are known. Fails if the file cannot be read or written.
    pub fn trust(path: &Path, host: &HostName, key: PublicKey) -> Result<HostStatus, IdentityError> {
        // A known host does not require write access to the file.
        if Self::load(path)?.check(host, key)? == HostStatus::Unknown && Self::add(path, host, key)? {
            return Ok(HostStatus::Unknown);
        }
        Ok(HostStatus::Known)
    }

    /// Removes all keys of a host from the file, and returns their number.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn forget(path: &Path, host: &HostName) -> Result<usize, IdentityError> {
        trust_file::remove(path, read, |entry: &KnownHost| entry.host == *host)
    }
}

/// Checks a key against all entries of the host, which may have several keys, for example during a key change.
fn check(
    path: &Path,
    entries: &[(usize, KnownHost)],
    host: &HostName,
    key: PublicKey,
) -> Result<HostStatus, IdentityError> {
    let mut other = None;
    for (line, entry) in entries.iter().filter(|(_, entry)| entry.host == *host) {
        if entry.key == key {
            return Ok(HostStatus::Known);
        }
        other.get_or_insert((*line, entry.key));
    }
    match other {
        None => Ok(HostStatus::Unknown),
        Some((line, expected)) => Err(IdentityError::Changed(Box::new(ChangedKey {
            host: host.clone(),
            shown: key.fingerprint(),
            expected: expected.fingerprint(),
            path: path.to_owned(),
            line,
        }))),
    }
}

fn read(line: &str) -> Result<KnownHost, String> {
    let mut words = line.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(host), Some(key), None) => Ok(KnownHost {
            host: host.parse().map_err(|wrong: crate::WrongHostName| wrong.to_string())?,
            key: key.parse().map_err(|wrong: crate::WrongPublicKey| wrong.to_string())?,
        }),
        _ => Err("expected `HOST:PORT KEY`".to_owned()),
    }
}

/// Format of the file.
impl fmt::Display for KnownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.key)
    }
}

/// Fuzz target: a text is rejected with its line, or its entries survive a round trip.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(text: &str) {
    for (_, entry) in trust_file::parse(Path::new("known_hosts"), text, read).unwrap_or_default() {
        assert_eq!(read(&entry.to_string()), Ok(entry));
    }
}

#[cfg(test)]
mod tests;
