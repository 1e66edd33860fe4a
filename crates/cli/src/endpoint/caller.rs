//! Identity and rights of a peer that a side has accepted.

use anabranch_identity::{AuthorizedKey, FollowedKeys, Operations};
use anabranch_net::Association;
use anabranch_transfer::{Name, Rights};

use super::protection::peer_key;
use crate::exit::CommandError;

/// Identity and rights of an accepted peer. Both are empty without protection, and with certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcceptedPeer {
    /// Label of the peer's key in `authorized_keys`, if any.
    pub(crate) label: Option<String>,
    /// Fingerprint of the peer's key.
    pub(crate) fingerprint: Option<String>,
    /// Rights of the peer's key.
    pub(crate) rights: Rights,
    /// Set if the options of the peer's key give rights to files only.
    pub(crate) has_files_only: bool,
}

impl AcceptedPeer {
    /// Returns identity and rights of the peer of an association.
    ///
    /// # Errors
    /// Returns an error if the key has been removed since the handshake, or the name of its folder is invalid.
    pub(super) fn of(authorized: &FollowedKeys, association: &Association) -> Result<Self, CommandError> {
        let key = peer_key(association)?;
        let fingerprint = key.fingerprint().to_string();
        let Some(entry) = authorized.entry(key) else {
            return Err(CommandError::untrusted(format!(
                "{fingerprint}: this key was removed from authorized_keys during the handshake"
            )));
        };
        let label = Some(entry.label.to_string()).filter(|label| !label.is_empty());
        let has_files_only = !entry.rights.permit_forwarding();
        Ok(AcceptedPeer { label, rights: rights_of(&entry)?, fingerprint: Some(fingerprint), has_files_only })
    }

    /// Returns the label, or else the fingerprint, with the peer's address. Returns the address alone if the peer has no key.
    pub(crate) fn at(&self, address: &str) -> String {
        match self.label.as_deref().or(self.fingerprint.as_deref()) {
            Some(name) => format!("{} ({address})", anabranch_transfer::escape(name)),
            None => address.to_owned(),
        }
    }
}

/// Returns the rights of a line in the form that a server of files uses.
fn rights_of(entry: &AuthorizedKey) -> Result<Rights, CommandError> {
    let every = Operations { read: true, write: true, overwrite: true, delete: true, forward: true };
    let Operations { read, write, overwrite, delete, forward: _ } = entry.rights.operations.unwrap_or(every);
    let folder = entry.rights.folder.as_deref().map(Name::new).transpose().map_err(|bad| {
        CommandError::failure(format!(
            "authorized_keys: the folder of {} cannot be used: {bad}; correct the line of this key",
            entry.key.fingerprint()
        ))
    })?;
    Ok(Rights { read, write, overwrite, delete, folder, quota_bytes: entry.rights.quota_bytes })
}
