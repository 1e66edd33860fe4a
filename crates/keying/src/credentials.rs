//! Who this side is, whom it takes for its peer, and who the peer turned out to be.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};

use crate::key_log::KeyLog;

/// How both sides say who they are. The verifiers of [`Credentials`] decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityForm {
    /// By a raw public key (RFC 7250).
    RawPublicKey,
    /// By a chain of X.509 certificates.
    Certificates,
}

/// Who the peer has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerIdentity {
    /// The holder of this public key.
    RawPublicKey(SubjectPublicKeyInfoDer<'static>),
    /// The subject of the first of these certificates.
    Certificates(Vec<CertificateDer<'static>>),
}

impl PeerIdentity {
    /// What rustls calls certificates is a single public key where raw ones were agreed on. `None` if the peer sent none.
    pub(crate) fn of(form: IdentityForm, sent: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let sent = sent?;
        let first = sent.first()?;
        Some(match form {
            IdentityForm::RawPublicKey => {
                Self::RawPublicKey(SubjectPublicKeyInfoDer::from(first.as_ref()).into_owned())
            }
            IdentityForm::Certificates => {
                Self::Certificates(sent.iter().map(|certificate| certificate.clone().into_owned()).collect())
            }
        })
    }

    /// Whether this is who it was before, by key or by its own certificate; a chain may lead to that in another way.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RawPublicKey(one), Self::RawPublicKey(other)) => one == other,
            (Self::Certificates(one), Self::Certificates(other)) => one.first() == other.first(),
            (Self::RawPublicKey(_), Self::Certificates(_))
            | (Self::Certificates(_), Self::RawPublicKey(_)) => false,
        }
    }
}

/// What a side proves itself with, and what it accepts from its peer.
///
/// A side needs both configurations: whoever asks for new keys is the client of that handshake, whatever it was in the first
/// one. Both must authenticate themselves and the peer; a handshake in which one side did not is refused. The configurations
/// decide whom to accept, in their verifiers.
#[derive(Clone)]
pub struct Credentials {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    form: IdentityForm,
    peer_name: ServerName<'static>,
    key_log: Option<Arc<dyn KeyLog>>,
}

impl Credentials {
    /// Credentials from configurations for TLS 1.3. What key management must not do is switched off in them: tickets and
    /// resumption, early data, and half-RTT data.
    pub fn new(client: Arc<ClientConfig>, server: Arc<ServerConfig>, form: IdentityForm) -> Self {
        let mut client = Arc::unwrap_or_clone(client);
        client.resumption = Resumption::disabled();
        client.enable_early_data = false;
        let mut server = Arc::unwrap_or_clone(server);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.max_early_data_size = 0;
        server.send_half_rtt_data = false;
        let peer_name = ServerName::try_from("peer.invalid").expect("a name of RFC 2606");
        Credentials { client: Arc::new(client), server: Arc::new(server), form, peer_name, key_log: None }
    }

    /// The name that the client's verifier is asked about: for certificates that are issued for names. Without it that is
    /// `peer.invalid`, which no certificate has.
    pub fn with_peer_name(self, peer_name: ServerName<'static>) -> Self {
        Credentials { peer_name, ..self }
    }

    /// The same, and `key_log` is told all keys.
    pub fn with_key_log(self, key_log: Arc<dyn KeyLog>) -> Self {
        Credentials { key_log: Some(key_log), ..self }
    }

    /// For handshakes that this side begins.
    pub fn client(&self) -> &Arc<ClientConfig> {
        &self.client
    }

    /// For handshakes that the peer begins.
    pub fn server(&self) -> &Arc<ServerConfig> {
        &self.server
    }

    /// How both sides say who they are.
    pub fn form(&self) -> IdentityForm {
        self.form
    }

    pub(crate) fn key_log(&self) -> Option<&Arc<dyn KeyLog>> {
        self.key_log.as_ref()
    }

    pub(crate) fn peer_name(&self) -> &ServerName<'static> {
        &self.peer_name
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("form", &self.form).finish_non_exhaustive()
    }
}
