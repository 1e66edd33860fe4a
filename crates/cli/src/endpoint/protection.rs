//! Protection of associations, and the identities of both sides.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use anabranch_identity::{
    Admission, Certificates, Fingerprint, FollowedKeys, Home, HostName, HostStatus, IdentityError, KeyPair,
    KnownHosts, PublicKey,
};
use anabranch_keylog::KeyLogFile;
use anabranch_net::{Association, ConnectError, Credentials, PeerIdentity, Protection};
use clap::Args;

use crate::exit::CommandError;
use crate::keys::read_host;
use crate::output;

/// Heading of these options in the help.
const HEADING: &str = "Protection";

/// Time between two checks of `authorized_keys` while a command listens.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Options for the protection of packets, and the keys with which both sides authenticate.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProtectionOptions {
    /// Disable encryption and authentication; the peer must disable them too
    #[arg(long, help_heading = HEADING)]
    pub(crate) insecure: bool,

    /// Folder with this user's key, known_hosts and authorized_keys [default: $ANABRANCH_HOME, or else $XDG_CONFIG_HOME/anabranch, or else ~/.config/anabranch]
    #[arg(long, help_heading = HEADING, value_name = "DIR", conflicts_with = "insecure")]
    keys: Option<PathBuf>,

    /// Trust certificates of these authorities (PEM) instead of known keys
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires_all = ["cert", "key"], conflicts_with_all = ["insecure", "keys"])]
    ca: Option<PathBuf>,

    /// With --ca: certificate of this side, with its chain up to an authority (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "ca")]
    cert: Option<PathBuf>,

    /// With --ca: private key of that certificate (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "ca")]
    key: Option<PathBuf>,

    /// Append the packet keys to this file, for `anabranch decrypt`; a reader of the file can decrypt all transferred data
    #[arg(long, help_heading = HEADING, value_name = "FILE", conflicts_with = "insecure")]
    keylog: Option<PathBuf>,
}

/// Error if no peer may connect.
#[derive(Debug)]
pub(super) struct NoAuthorizedPeers {
    /// File that lists the peers.
    pub(super) file: PathBuf,
}

impl ProtectionOptions {
    /// Returns the first option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--insecure", self.insecure),
            ("--keys", self.keys.is_some()),
            ("--ca", self.ca.is_some()),
            ("--keylog", self.keylog.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns `true` if certificates are trusted in place of known keys.
    pub(crate) fn has_authorities(&self) -> bool {
        self.ca.is_some()
    }

    /// Prints a notice on standard error, once, if nothing is protected.
    pub(crate) fn notice(&self, quiet: bool) {
        static SAID: Once = Once::new();
        if self.insecure && !quiet {
            SAID.call_once(|| {
                output::notice(
                    "warning: --insecure: content is not encrypted and neither side proves its identity; \
                     each network on the way can read and change it",
                );
            });
        }
    }

    pub(crate) fn home(&self) -> Result<Home, IdentityError> {
        self.keys.as_ref().map_or_else(Home::of_user, |folder| Ok(Home::at(folder)))
    }

    fn certificates(&self) -> Result<Option<Certificates>, IdentityError> {
        match (&self.ca, &self.cert, &self.key) {
            (Some(ca), Some(chain), Some(key)) => Certificates::load(ca, chain, key).map(Some),
            _ => Ok(None),
        }
    }

    fn dtls(&self, credentials: Credentials) -> Result<Protection, CommandError> {
        let Some(path) = &self.keylog else { return Ok(Protection::dtls(credentials)) };
        let shown = path.display().to_string();
        let failed = move |error: &std::io::Error| {
            output::notice(format_args!("{shown}: {error}: keys are missing in this file"));
        };
        let log = KeyLogFile::open(path, failed).map_err(CommandError::failure)?;
        Ok(Protection::dtls(credentials.with_key_log(Arc::new(log))))
    }

    /// Returns the protection of a side that connects to this host.
    pub(super) fn to_connect(&self, target: &str, expected: Expected) -> Result<Connecting, CommandError> {
        if let Expected::Key(_) | Expected::Proof = expected {
            return Ok(Connecting { protection: self.open_protection()?, trust: Trust::Later(expected) });
        }
        if self.insecure {
            return Ok(Connecting { protection: Protection::Insecure, trust: Trust::Everyone });
        }
        let host = read_host(target).map_err(CommandError::usage)?;
        if let Some(certificates) = self.certificates()? {
            let protection = self.dtls(certificates.to_connect(&host)?)?;
            return Ok(Connecting { protection, trust: Trust::Authorities });
        }
        let known_hosts = self.home()?.known_hosts();
        Ok(Connecting { protection: self.open_protection()?, trust: Trust::Known { known_hosts, host } })
    }

    /// Returns the protection with this user's key that accepts any key of the peer. The caller has to verify the peer before it
    /// sends or uses anything.
    pub(crate) fn open_protection(&self) -> Result<Protection, CommandError> {
        let key = KeyPair::load_or_create(&self.home()?.key())?;
        self.dtls(key.credentials(Admission::Anyone)?)
    }

    /// Returns the remedy if the sides disagree on protection.
    pub(super) fn remedy(&self, error: &ConnectError) -> String {
        match error {
            ConnectError::NotProtected(_) | ConnectError::RefusedByPeer if self.insecure => {
                "\nif the other side protects what it sends, omit --insecure".to_owned()
            }
            ConnectError::Denied { .. } if self.ca.is_none() => {
                let key = self.own_key().map_or_else(|| "KEY".to_owned(), |key| key.to_string());
                format!("\nto be accepted, have the other side run `anabranch keys add {key}`")
            }
            ConnectError::NotProtected(_) | ConnectError::NotAccepted(_) if self.ca.is_none() => {
                let key = self.own_key().map_or_else(|| "KEY".to_owned(), |key| key.to_string());
                format!(
                    "\nif the other side does not know this user's key, have it run `anabranch keys add {key}`; \
                     if it was started with --insecure, say so here as well"
                )
            }
            _ => String::new(),
        }
    }

    /// Returns this user's key, with which other sides can authorize it.
    pub(super) fn own_key(&self) -> Option<PublicKey> {
        KeyPair::load(&self.home().ok()?.key()).ok()?.map(|pair| pair.public())
    }

    /// Returns the protection of a side that listens.
    pub(super) fn to_listen(&self) -> Result<Result<Listening, NoAuthorizedPeers>, CommandError> {
        if self.insecure {
            return Ok(Ok(Listening { protection: Protection::Insecure, authorized: None }));
        }
        if let Some(certificates) = self.certificates()? {
            let protection = self.dtls(certificates.to_listen()?)?;
            return Ok(Ok(Listening { protection, authorized: None }));
        }
        let home = self.home()?;
        let file = home.authorized_keys();
        let authorized = FollowedKeys::load(&file)?;
        if authorized.keys().is_empty() {
            return Ok(Err(NoAuthorizedPeers { file }));
        }
        let key = KeyPair::load_or_create(&home.key())?;
        let protection = self.dtls(key.credentials(Admission::Only(authorized.keys()))?)?;
        Ok(Ok(Listening { protection, authorized: Some(authorized) }))
    }
}

/// Peer that a side which connects expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The host with its known key, if one is known.
    Known,
    /// A peer that proves its identity in another way. The caller checks the proof.
    Proof,
    /// The holder of this key, which was proved before.
    Key(PublicKey),
}

/// Rule by which a side that connects trusts its peer.
#[derive(Debug)]
enum Trust {
    /// A peer that the caller verifies. No file is consulted.
    Later(Expected),
    /// Any peer, without authentication.
    Everyone,
    /// A peer that TLS has accepted by a certificate.
    Authorities,
    /// The holder of the host's known key.
    Known { known_hosts: PathBuf, host: HostName },
}

/// Protection of a side that connects.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(super) protection: Protection,
    trust: Trust,
}

impl Connecting {
    /// Verifies the peer. Before that, nothing may be sent, and no received data may be used. A new host is trusted, and its key is
    /// stored, so that a later change is detected.
    pub(crate) fn confirm(&self, association: &Association, quiet: bool) -> Result<(), CommandError> {
        match &self.trust {
            Trust::Everyone | Trust::Authorities | Trust::Later(Expected::Known | Expected::Proof) => Ok(()),
            Trust::Later(Expected::Key(expected)) => match peer_key(association)? {
                key if key == *expected => Ok(()),
                key => Err(identity_mismatch(key)),
            },
            Trust::Known { known_hosts, host } => trust_known(association, known_hosts, host, quiet),
        }
    }
}

impl Connecting {
    /// Returns the error that a failure to connect means for the user, if it differs from the failure: a refusal counts only if it
    /// comes from the requested host.
    pub(super) fn judge(&self, error: &ConnectError) -> Option<CommandError> {
        let ConnectError::Denied { by: Some(identity), .. } = error else { return None };
        let PeerIdentity::RawPublicKey(spki) = &**identity else { return None };
        let key = match PublicKey::from_spki(spki) {
            Ok(key) => key,
            Err(wrong) => return Some(CommandError::untrusted(wrong)),
        };
        match &self.trust {
            Trust::Known { known_hosts, host } => {
                let known = KnownHosts::load(known_hosts).and_then(|known| known.check(host, key));
                known.err().map(refused)
            }
            Trust::Later(Expected::Key(expected)) if key != *expected => Some(identity_mismatch(key)),
            Trust::Later(_) | Trust::Everyone | Trust::Authorities => None,
        }
    }
}

fn identity_mismatch(key: PublicKey) -> CommandError {
    CommandError::untrusted(format!("another host answers than before, with the key {}", key.fingerprint()))
}

fn trust_known(
    association: &Association,
    known_hosts: &Path,
    host: &HostName,
    quiet: bool,
) -> Result<(), CommandError> {
    let key = peer_key(association)?;
    let status = KnownHosts::trust(known_hosts, host, key).map_err(refused)?;
    if status == HostStatus::Unknown && !quiet {
        output::notice(first_use(host, key.fingerprint(), known_hosts));
    }
    Ok(())
}

fn first_use(host: &HostName, fingerprint: Fingerprint, known_hosts: &Path) -> String {
    anabranch_transfer::escape(&format!(
        "new host {host}: its key {fingerprint} was added to {}; compare it with `anabranch keys show` on that host",
        known_hosts.display()
    ))
}

fn refused(error: IdentityError) -> CommandError {
    match error {
        IdentityError::Changed(changed) => CommandError::untrusted(changed),
        error => CommandError::failure(error),
    }
}

/// Returns the key that a peer has proved to own.
pub(crate) fn peer_key(association: &Association) -> Result<PublicKey, CommandError> {
    match association.peer_identity() {
        Some(PeerIdentity::RawPublicKey(spki)) => {
            PublicKey::from_spki(&spki).map_err(CommandError::untrusted)
        }
        _ => {
            Err(CommandError::untrusted("the peer has shown no key; use the same version of anabranch there"))
        }
    }
}

/// Protection of a side that listens.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    protection: Protection,
    authorized: Option<FollowedKeys>,
}

impl Listening {
    /// Returns a protection that admits peers without `authorized_keys`.
    pub(crate) fn with(protection: Protection) -> Self {
        Listening { protection, authorized: None }
    }

    pub(super) fn protection(&self) -> Protection {
        self.protection.clone()
    }

    /// Returns the accepted keys, if `authorized_keys` lists them.
    pub(super) fn authorized(&self) -> Option<&FollowedKeys> {
        self.authorized.as_ref()
    }

    /// Returns `true` if packets are protected.
    pub(crate) fn is_protected(&self) -> bool {
        matches!(self.protection, Protection::Dtls(_))
    }

    /// Applies changes of the file to admission from now on, for the lifetime of the host. Call it in a runtime.
    pub(super) fn follow_changes(&self) {
        if let Some(authorized) = &self.authorized {
            tokio::spawn(follow(authorized.clone()));
        }
    }
}

async fn follow(mut authorized: FollowedKeys) {
    while authorized.is_used() {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(error) = authorized.reload_if_changed() {
            output::notice(anabranch_transfer::escape(&error));
        }
    }
}
