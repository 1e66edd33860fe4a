//! Identities of the endpoints: local credentials, accepted peers, and the proved identity of the peer.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};

use crate::key_log::KeyLog;

/// Form of the identities of both endpoints. The verifiers of [`Credentials`] determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityForm {
    /// Raw public key (RFC 7250).
    RawPublicKey,
    /// Chain of X.509 certificates.
    Certificates,
}

/// Identity that the peer has proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerIdentity {
    /// Holder of this public key.
    RawPublicKey(SubjectPublicKeyInfoDer<'static>),
    /// Subject of the first of these certificates.
    Certificates(Vec<CertificateDer<'static>>),
}

impl PeerIdentity {
    /// Converts rustls's list of certificates, which is one public key in the raw form. Returns `None` if the peer sent none.
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

    /// Returns `true` if both identities have the same key or the same end-entity certificate; the rest of the chain may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RawPublicKey(one), Self::RawPublicKey(other)) => one == other,
            (Self::Certificates(one), Self::Certificates(other)) => one.first() == other.first(),
            (Self::RawPublicKey(_), Self::Certificates(_))
            | (Self::Certificates(_), Self::RawPublicKey(_)) => false,
        }
    }
}

/// Credentials of an endpoint, and the rules by which it accepts its peer.
///
/// An endpoint needs both configurations: the endpoint that requests new keys is the client of that handshake, regardless of its
/// role in the first one. Both configurations must authenticate the endpoint and the peer, and a handshake without mutual
/// authentication is rejected. Their verifiers decide which peers are accepted.
#[derive(Clone)]
pub struct Credentials {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    form: IdentityForm,
    peer_name: ServerName<'static>,
    key_log: Option<Arc<dyn KeyLog>>,
}

impl Credentials {
    /// Creates credentials from configurations for TLS 1.3. Disables the features that key management must not use: tickets and
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

    /// Sets the name that the client's verifier checks, for certificates that are issued for names. The default is `peer.invalid`,
    /// which no certificate contains.
    pub fn with_peer_name(self, peer_name: ServerName<'static>) -> Self {
        Credentials { peer_name, ..self }
    }

    /// Returns the same credentials with a log that receives all keys.
    pub fn with_key_log(self, key_log: Arc<dyn KeyLog>) -> Self {
        Credentials { key_log: Some(key_log), ..self }
    }

    /// Returns the configuration for handshakes that this endpoint begins.
    pub fn client(&self) -> &Arc<ClientConfig> {
        &self.client
    }

    /// Returns the configuration for handshakes that the peer begins.
    pub fn server(&self) -> &Arc<ServerConfig> {
        &self.server
    }

    /// Returns the form of the identities of both endpoints.
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
