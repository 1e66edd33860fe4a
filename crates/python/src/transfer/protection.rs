//! Protection of associations, where Python names a folder with keys.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_identity::{
    Admission, AuthorizedKeys, Home, HostName, IdentityError, KeyPair, KeySet, KnownHosts, PublicKey,
    Standing,
};
use anabranch_net::route_selection::Target;
use anabranch_net::{Association, PeerIdentity, Protection};

use super::failure::Failure;

/// A user's key, and whom the user trusts.
pub(super) struct Keys {
    home: Home,
    pair: KeyPair,
}

impl Keys {
    /// Those in a folder, where a key is made if there is none.
    pub(super) fn in_folder(folder: PathBuf) -> Result<Self, IdentityError> {
        let home = Home::at(folder);
        let pair = KeyPair::load_or_create(&home.key())?;
        Ok(Keys { home, pair })
    }

    /// For a side that connects. Who has answered is still to be [confirmed](Self::confirm).
    pub(super) fn to_connect(&self) -> Result<Protection, IdentityError> {
        Ok(Protection::dtls(self.pair.credentials(Admission::Anyone)?))
    }

    /// Looks whether the host has the key that it had before; one that is not known is trusted, and its key is kept.
    pub(super) fn confirm(&self, association: &Association, host: &HostName) -> Result<(), Failure> {
        let refused = |error: &dyn std::fmt::Display| Failure::Connect(error.to_string());
        let Some(PeerIdentity::RawPublicKey(spki)) = association.peer_identity() else {
            return Err(Failure::Connect(format!("{host}: the peer has shown no key")));
        };
        let key = PublicKey::from_spki(&spki).map_err(|error| refused(&error))?;
        let file = self.home.known_hosts();
        let known = KnownHosts::load(&file).and_then(|hosts| hosts.check(host, key));
        match known.map_err(|error| refused(&error))? {
            Standing::Known => Ok(()),
            Standing::Unknown => KnownHosts::add(&file, host, key).map(drop).map_err(|error| refused(&error)),
        }
    }

    /// For a side that listens: it accepts the keys that are authorised now.
    pub(super) fn to_listen(&self) -> Result<Protection, Failure> {
        let refused = |error: IdentityError| Failure::Listen(error.to_string());
        let file = self.home.authorized_keys();
        let authorized = AuthorizedKeys::load(&file).map_err(refused)?;
        let keys: KeySet = authorized.entries().map(|entry| entry.key).collect();
        if keys.is_empty() {
            return Err(Failure::Listen(format!(
                "{} has no key, so nobody may connect; run `anabranch keys --keys {} add KEY NAME`",
                file.display(),
                self.home.folder().display()
            )));
        }
        let credentials = self.pair.credentials(Admission::Only(Arc::new(keys))).map_err(refused)?;
        Ok(Protection::dtls(credentials))
    }
}

/// The host under whose name a key is kept.
pub(super) fn host_name(remote: &str) -> Result<HostName, Failure> {
    let target = Target::read(remote).map_err(|error| Failure::Argument(format!("remote {error}")))?;
    HostName::new(target.host(), target.port())
        .map_err(|error| Failure::Argument(format!("remote {remote}: {error}")))
}
