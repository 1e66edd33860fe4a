//! Protection of associations.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_identity::{
    Admission, FollowedKeys, Home, HostName, IdentityError, KeyPair, KnownHosts, PublicKey,
};
use anabranch_net::route_selection::Target;
use anabranch_net::{Association, PeerIdentity, Protection};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use super::failure::Failure;

/// How often `authorized_keys` is looked at while there is a listener.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Which keys protect associations.
#[derive(Debug)]
pub(super) enum KeyChoice {
    /// None do.
    Insecure,
    /// Those in the folder that the commands use.
    OfUser,
    /// Those in another folder.
    Folder(PathBuf),
}

impl KeyChoice {
    /// The keys, if there are to be any. Where there is no key of this user yet, it is made.
    pub(super) fn open(&self) -> Result<Option<Keys>, IdentityError> {
        let home = match self {
            KeyChoice::Insecure => return Ok(None),
            KeyChoice::OfUser => Home::of_user()?,
            KeyChoice::Folder(folder) => Home::at(folder),
        };
        let pair = KeyPair::load_or_create(&home.key())?;
        Ok(Some(Keys { home, pair }))
    }
}

/// A user's key, and whom the user trusts.
pub(super) struct Keys {
    home: Home,
    pair: KeyPair,
}

impl Keys {
    /// For a side that connects. Who has answered is still to be [confirmed](Self::confirm).
    pub(super) fn to_connect(&self) -> Result<Protection, IdentityError> {
        Ok(Protection::dtls(self.pair.credentials(Admission::Anyone)?))
    }

    /// Looks whether the host has the key that it had before; one that is not known is trusted, and its key is kept.
    pub(super) fn confirm(&self, association: &Association, host: &HostName) -> Result<(), Failure> {
        let Some(key) = peer_key(association) else {
            return Err(Failure::Connect(format!("{host}: the peer has shown no Ed25519 key")));
        };
        let trusted = KnownHosts::trust(&self.home.known_hosts(), host, key);
        trusted.map(drop).map_err(|error| Failure::Connect(error.to_string()))
    }

    /// For a side that listens: it accepts the keys that are authorised.
    pub(super) fn to_listen(&self) -> Result<(Protection, FollowedKeys), Failure> {
        let refused = |error: IdentityError| Failure::Listen(error.to_string());
        let file = self.home.authorized_keys();
        let authorized = FollowedKeys::load(&file).map_err(refused)?;
        if authorized.keys().is_empty() {
            return Err(Failure::Argument(format!(
                "{} has no key, so no peer may connect; run `anabranch keys --keys {} add KEY NAME`, or go without protection (insecure)",
                file.display(),
                self.home.folder().display()
            )));
        }
        let credentials = self.pair.credentials(Admission::Only(authorized.keys())).map_err(refused)?;
        Ok((Protection::dtls(credentials), authorized))
    }
}

/// Admits whom the file names for as long as handshakes use the keys. A file that cannot be read leaves them as they are, and
/// Python is warned.
pub(super) async fn follow(mut authorized: FollowedKeys) {
    while authorized.is_used() {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(error) = authorized.look() {
            warn(&error);
        }
    }
}

/// Gives a `RuntimeWarning`, unless the interpreter is ending.
fn warn(text: &str) {
    // No text has a zero byte: those of files are never shown.
    let text = CString::new(text).unwrap_or_default();
    Python::try_attach(|py| {
        if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
            // Where warnings are errors there is nobody to raise it for.
            error.write_unraisable(py, None);
        }
    });
}

/// The key that a peer has proved to hold.
pub(super) fn peer_key(association: &Association) -> Option<PublicKey> {
    match association.peer_identity() {
        Some(PeerIdentity::RawPublicKey(spki)) => PublicKey::from_spki(&spki).ok(),
        _ => None,
    }
}

/// The host under whose name a key is kept.
pub(super) fn host_name(remote: &str) -> Result<HostName, Failure> {
    let target = Target::read(remote).map_err(|error| Failure::Argument(format!("remote {error}")))?;
    HostName::new(target.host(), target.port())
        .map_err(|error| Failure::Argument(format!("remote {remote}: {error}")))
}
