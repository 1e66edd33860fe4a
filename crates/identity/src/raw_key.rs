//! TLS with raw public keys (RFC 7250) at both endpoints.

use std::fmt;
use std::sync::Arc;

use anabranch_keying::{Credentials, IdentityForm, provider};
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use crate::error::IdentityError;
use crate::key_pair::KeyPair;
use crate::key_set::Admission;
use crate::public_key::PublicKey;

impl KeyPair {
    /// Returns the credentials of an endpoint that has this key pair and accepts the admitted keys.
    ///
    /// # Errors
    /// Fails if rustls rejects the configuration.
    pub fn credentials(&self, admission: Admission) -> Result<Credentials, IdentityError> {
        self.credentials_with(Arc::new(provider::default_provider()), admission)
    }

    /// Returns credentials as [`credentials`](Self::credentials) does, with the key agreements, cipher suites and random numbers of
    /// another provider.
    ///
    /// # Errors
    /// Fails if rustls rejects the configuration: TLS 1.3 requires a cipher suite and a group.
    pub fn credentials_with(
        &self,
        provider: Arc<CryptoProvider>,
        admission: Admission,
    ) -> Result<Credentials, IdentityError> {
        let spki = CertificateDer::from(self.public().to_spki());
        let certified = Arc::new(CertifiedKey::new(vec![spki], self.signing()));
        let verifier = Arc::new(RawKeyVerifier { provider: Arc::clone(&provider), admission });
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(
                &certified,
            ))));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
        Ok(Credentials::new(Arc::new(client), Arc::new(server), IdentityForm::RawPublicKey))
    }
}

/// Accepts admitted Ed25519 keys in either role. rustls verifies that the peer holds the private key.
struct RawKeyVerifier {
    provider: Arc<CryptoProvider>,
    admission: Admission,
}

impl RawKeyVerifier {
    fn verify(&self, spki: &CertificateDer<'_>, others: usize) -> Result<(), Error> {
        // A raw public key is the only entry of its list (RFC 8446 section 4.4.2).
        if others > 0 {
            return Err(CertificateError::BadEncoding.into());
        }
        let key = PublicKey::from_spki(spki).map_err(|_| CertificateError::BadEncoding)?;
        if self.admission.admits(key) {
            return Ok(());
        }
        // rustls reports this error as the alert `access_denied`.
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl fmt::Debug for RawKeyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawKeyVerifier").field("admission", &self.admission).finish_non_exhaustive()
    }
}

/// Shared methods of the verifiers of both roles, for which rustls has no trait.
macro_rules! signatures_of_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("only TLS 1.3 is configured".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            spki: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature_with_raw_key(message, &spki, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for RawKeyVerifier {
    fn verify_server_cert(
        &self,
        spki: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(spki, others.len()).map(|()| ServerCertVerified::assertion())
    }

    signatures_of_raw_keys!();
}

impl ClientCertVerifier for RawKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        spki: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(spki, others.len()).map(|()| ClientCertVerified::assertion())
    }

    signatures_of_raw_keys!();
}

#[cfg(test)]
pub(crate) mod tests;
