//! Which key a host showed before.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{ChangedKey, IdentityError};
use crate::host_name::HostName;
use crate::public_key::PublicKey;
use crate::trust_file;

/// A line of `known_hosts`: `HOST:PORT KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// The host, under the name that the user connects to.
    pub host: HostName,
    /// Its key.
    pub key: PublicKey,
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It had this key before.
    Known,
    /// Nothing: it is the user's decision to trust it.
    Unknown,
}

/// The hosts that were connected to, as they were when the file was read.
#[derive(Clone, Debug)]
pub struct KnownHosts {
    path: PathBuf,
    entries: Vec<(usize, KnownHost)>,
}

impl KnownHosts {
    /// Reads the file. One that is not there is empty.
    ///
    /// # Errors
    /// Names the file, and the line if one is wrong: whoever can cut a file must not thereby make known hosts unknown ones.
    pub fn load(path: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        let path = path.into();
        Ok(KnownHosts { entries: trust_file::load(&path, read)?, path })
    }

    /// The entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = &KnownHost> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// What is known of a host that shows this key.
    ///
    /// # Errors
    /// [`IdentityError::Changed`] if only other keys of it are known.
    pub fn check(&self, host: &HostName, key: PublicKey) -> Result<Standing, IdentityError> {
        check(&self.path, &self.entries, host, key)
    }

    /// Adds a host to the file, whatever other processes write to it meanwhile. Returns whether it was new.
    ///
    /// # Errors
    /// [`IdentityError::Changed`] if another process has added the host with another key meanwhile.
    pub fn add(path: &Path, host: &HostName, key: PublicKey) -> Result<bool, IdentityError> {
        let entry = KnownHost { host: host.clone(), key };
        let mut is_new = true;
        trust_file::append(path, &entry.to_string(), read, |entries| {
            is_new = check(path, entries, host, key)? == Standing::Unknown;
            Ok(!is_new)
        })?;
        Ok(is_new)
    }

    /// Trusts a host at first use: one that is not known is added to the file with this key. Returns what was known of it.
    ///
    /// # Errors
    /// [`IdentityError::Changed`] if only other keys of it are known, or if the file cannot be read or written.
    pub fn trust(path: &Path, host: &HostName, key: PublicKey) -> Result<Standing, IdentityError> {
        // A host that is known needs no file that can be written.
        if Self::load(path)?.check(host, key)? == Standing::Unknown && Self::add(path, host, key)? {
            return Ok(Standing::Unknown);
        }
        Ok(Standing::Known)
    }

    /// Removes all keys of a host from the file, and returns how many they were.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn forget(path: &Path, host: &HostName) -> Result<usize, IdentityError> {
        trust_file::remove(path, read, |entry: &KnownHost| entry.host == *host)
    }
}

/// A host may have several keys, one on each line: while it changes from one to the other, for instance.
fn check(
    path: &Path,
    entries: &[(usize, KnownHost)],
    host: &HostName,
    key: PublicKey,
) -> Result<Standing, IdentityError> {
    let mut other = None;
    for (line, entry) in entries.iter().filter(|(_, entry)| entry.host == *host) {
        if entry.key == key {
            return Ok(Standing::Known);
        }
        other.get_or_insert((*line, entry.key));
    }
    match other {
        None => Ok(Standing::Unknown),
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

/// As in the file.
impl fmt::Display for KnownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.key)
    }
}

/// The body of a fuzz target: any text is refused with its line, or its entries are read back as they are written.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(text: &str) {
    for (_, entry) in trust_file::parse(Path::new("known_hosts"), text, read).unwrap_or_default() {
        assert_eq!(read(&entry.to_string()), Ok(entry));
    }
}

#[cfg(test)]
mod tests;
