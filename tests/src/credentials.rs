//! Credentials for tests: Ed25519 keys that follow from a number, and the accepted peers.

use std::sync::Arc;

use anabranch_identity::{Admission, KeyPair};
use anabranch_keying::rustls::ServerConfig;
use anabranch_keying::rustls::crypto::CryptoProvider;
use anabranch_keying::rustls::crypto::aws_lc_rs::default_provider;
use anabranch_keying::rustls::pki_types::SubjectPublicKeyInfoDer;
use anabranch_keying::rustls::version::TLS13;
use anabranch_keying::{Credentials, IdentityForm, PeerIdentity};

use crate::seeded_tls;

/// Prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8: [u8; 16] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20];

fn key(number: u8) -> KeyPair {
    KeyPair::from_pkcs8(&[&PKCS8[..], &[number; 32]].concat()).expect("an Ed25519 key")
}

/// Returns the identity of the key with this number.
pub fn identity(number: u8) -> PeerIdentity {
    PeerIdentity::RawPublicKey(SubjectPublicKeyInfoDer::from(key(number).public().to_spki()))
}

/// Returns the key with number `own`, which accepts peers with the keys of the numbers `accepted`.
///
/// # Panics
/// Panics if rustls rejects raw public keys.
pub fn credentials(own: u8, accepted: &[u8]) -> Credentials {
    credentials_with(&Arc::new(default_provider()), own, accepted)
}

/// Returns the same with random numbers that follow from [`seeded_tls::seed`], and with its count of operations.
///
/// # Panics
/// Panics if rustls rejects raw public keys.
pub fn seeded_credentials(own: u8, accepted: &[u8]) -> Credentials {
    credentials_with(&Arc::new(seeded_tls::provider()), own, accepted)
}

fn credentials_with(provider: &Arc<CryptoProvider>, own: u8, accepted: &[u8]) -> Credentials {
    let accepted = accepted.iter().map(|&number| key(number).public()).collect();
    let credentials = key(own).credentials_with(Arc::clone(provider), Admission::Only(Arc::new(accepted)));
    credentials.expect("it has TLS 1.3")
}

/// Protection of the packets of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No protection.
    Plain,
    /// The client has key 1 and the server key 2, and each accepts only the other's.
    Protected,
}

impl Mode {
    /// Both modes, for tests that run in each.
    pub const ALL: [Mode; 2] = [Mode::Plain, Mode::Protected];

    /// Returns the credentials of the side that opens associations, or `None` without protection.
    pub fn of_client(self) -> Option<Credentials> {
        self.credentials(1, 2)
    }

    /// Returns the credentials of the side that accepts associations, or `None` without protection.
    pub fn of_server(self) -> Option<Credentials> {
        self.credentials(2, 1)
    }

    fn credentials(self, own: u8, peer: u8) -> Option<Credentials> {
        (self == Mode::Protected).then(|| credentials(own, &[peer]))
    }
}

/// Returns credentials of a side that does not authenticate its peer, which a server must not do.
///
/// # Panics
/// Panics if rustls rejects raw public keys.
pub fn asks_nobody(own: u8, accepted: &[u8]) -> Credentials {
    let with_both = credentials(own, accepted);
    let asking = with_both.server();
    let server = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let server = server.with_protocol_versions(&[&TLS13]).expect("it has TLS 1.3").with_no_client_auth();
    let server = server.with_cert_resolver(Arc::clone(&asking.cert_resolver));
    Credentials::new(Arc::clone(with_both.client()), Arc::new(server), IdentityForm::RawPublicKey)
}
