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

/// Time between two checks of `authorized_keys` while there is a listener.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Keys that protect associations.
#[derive(Debug)]
pub(super) enum KeyChoice {
    /// No protection.
    Insecure,
    /// Keys in the folder of the commands.
    OfUser,
    /// Keys in another folder.
    Folder(PathBuf),
}

impl KeyChoice {
    /// Loads the keys, if associations are protected. Creates the user's key if it does not exist yet.
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

/// Key of a user, and the keys that the user trusts.
pub(super) struct Keys {
    home: Home,
    pair: KeyPair,
}

impl Keys {
    /// Returns the protection of a side that connects. The peer has to be [confirmed](Self::confirm) afterwards.
    pub(super) fn to_connect(&self) -> Result<Protection, IdentityError> {
        Ok(Protection::dtls(self.pair.credentials(Admission::Anyone)?))
    }

    /// Checks that the host has its known key. A new host is trusted, and its key is stored.
    pub(super) fn confirm(&self, association: &Association, host: &HostName) -> Result<(), Failure> {
        let Some(key) = peer_key(association) else {
            return Err(Failure::Connect(format!("{host}: the peer has shown no Ed25519 key")));
        };
        let trusted = KnownHosts::trust(&self.home.known_hosts(), host, key);
        trusted.map(drop).map_err(|error| Failure::Connect(error.to_string()))
    }

    /// Returns the protection of a side that listens. It accepts the authorized keys.
    pub(super) fn to_listen(&self) -> Result<(Protection, FollowedKeys), Failure> {
        let refused = |error: IdentityError| Failure::Listen(error.to_string());
        let file = self.home.authorized_keys();
        let authorized = FollowedKeys::load(&file).map_err(refused)?;
        if authorized.keys().is_empty() {
            return Err(Failure::Argument(format!(
                "{} has no key, so no peer may connect; run `anabranch keys --keys {} add KEY NAME`, or disable protection (insecure)",
                file.display(),
                self.home.folder().display()
            )));
        }
        let credentials = self.pair.credentials(Admission::Only(authorized.keys())).map_err(refused)?;
        Ok((Protection::dtls(credentials), authorized))
    }
}

/// Applies changes of the file to admission while handshakes use the keys. If the file cannot be read, the keys stay the same, and
/// Python gets a warning.
pub(super) async fn follow(mut authorized: FollowedKeys) {
    while authorized.is_used() {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(error) = authorized.reload_if_changed() {
            warn(&error);
        }
    }
}

/// Issues a `RuntimeWarning`, unless the interpreter is ending.
fn warn(text: &str) {
    // The text has no zero byte, since content of files is never shown.
    let text = CString::new(text).unwrap_or_default();
    Python::try_attach(|py| {
        if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
            // A warning that is an error cannot be raised here, since no Python code called this function.
            error.write_unraisable(py, None);
        }
    });
}

/// Returns the key that a peer has proved to own.
pub(super) fn peer_key(association: &Association) -> Option<PublicKey> {
    match association.peer_identity() {
        Some(PeerIdentity::RawPublicKey(spki)) => PublicKey::from_spki(&spki).ok(),
        _ => None,
    }
}

/// Returns the host under whose name a key is stored.
pub(super) fn host_name(remote: &str) -> Result<HostName, Failure> {
    let target = Target::read(remote).map_err(|error| Failure::Argument(format!("remote {error}")))?;
    HostName::new(target.host(), target.port())
        .map_err(|error| Failure::Argument(format!("remote {remote}: {error}")))
}
