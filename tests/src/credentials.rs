//! Credentials for tests: Ed25519 keys that follow from a number, and whom to accept.

use std::sync::Arc;

use anabranch_keying::rustls::client::AlwaysResolvesClientRawPublicKeys;
use anabranch_keying::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use anabranch_keying::rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key};
use anabranch_keying::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use anabranch_keying::rustls::server::AlwaysResolvesServerRawPublicKeys;
use anabranch_keying::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use anabranch_keying::rustls::sign::CertifiedKey;
use anabranch_keying::rustls::version::TLS13;
use anabranch_keying::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use anabranch_keying::{Credentials, IdentityForm, PeerIdentity};

use crate::seeded_tls;

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8: [u8; 16] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn key(number: u8) -> Arc<CertifiedKey> {
    let private = [&PKCS8[..], &[number; 32]].concat();
    let key = provider().key_provider.load_private_key(PrivatePkcs8KeyDer::from(private).into());
    let key = key.expect("an Ed25519 key");
    let public = key.public_key().expect("it has a public key").into_owned();
    Arc::new(CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key))
}

/// Who has the key of this number.
pub fn identity(number: u8) -> PeerIdentity {
    PeerIdentity::RawPublicKey(SubjectPublicKeyInfoDer::from(key(number).cert[0].to_vec()))
}

/// The key of number `own`, and peers with one of the keys of the numbers `accepted`.
///
/// # Panics
/// If rustls takes no raw public keys.
pub fn credentials(own: u8, accepted: &[u8]) -> Credentials {
    credentials_with(&provider(), key(own), accepted)
}

/// The same with random numbers that follow from [`seeded_tls::seed`], and with its count of operations.
///
/// # Panics
/// If rustls takes no raw public keys.
pub fn seeded_credentials(own: u8, accepted: &[u8]) -> Credentials {
    let mut own = Arc::unwrap_or_clone(key(own));
    own.key = seeded_tls::counting(own.key);
    credentials_with(&Arc::new(seeded_tls::provider()), Arc::new(own), accepted)
}

fn credentials_with(provider: &Arc<CryptoProvider>, own: Arc<CertifiedKey>, accepted: &[u8]) -> Credentials {
    let accepted =
        Arc::new(Accepted { keys: accepted.iter().map(|&number| key(number).cert[0].to_vec()).collect() });
    let client = ClientConfig::builder_with_provider(Arc::clone(provider)).with_protocol_versions(&[&TLS13]);
    let client = client.expect("it has TLS 1.3").dangerous();
    let client = client.with_custom_certificate_verifier(accepted.clone());
    let client =
        client.with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&own))));
    let server = ServerConfig::builder_with_provider(Arc::clone(provider)).with_protocol_versions(&[&TLS13]);
    let server = server.expect("it has TLS 1.3").with_client_cert_verifier(accepted);
    let server = server.with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
    Credentials::new(Arc::new(client), Arc::new(server), IdentityForm::RawPublicKey)
}

/// A side that asks nobody who they are, as a server must not.
///
/// # Panics
/// If rustls takes no raw public keys.
pub fn asks_nobody(own: u8, accepted: &[u8]) -> Credentials {
    let server = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    let server = server.expect("it has TLS 1.3").with_no_client_auth();
    let server = server.with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key(own))));
    let with_both = credentials(own, accepted);
    Credentials::new(Arc::clone(with_both.client()), Arc::new(server), IdentityForm::RawPublicKey)
}

/// Accepts some keys.
#[derive(Debug)]
struct Accepted {
    keys: Vec<Vec<u8>>,
}

impl Accepted {
    fn check(&self, sent: &CertificateDer<'_>) -> Result<(), Error> {
        let known = self.keys.iter().any(|key| key == sent.as_ref());
        if known { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn signature(
        message: &[u8],
        sent: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        seeded_tls::count_operation();
        let key = SubjectPublicKeyInfoDer::from(sent.as_ref());
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, &algorithms)
    }
}

impl ServerCertVerifier for Accepted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Accepted {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
