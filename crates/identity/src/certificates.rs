//! X.509 certificates, as the alternative to raw public keys for users with a certification authority.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anabranch_keying::{Credentials, IdentityForm, provider};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};

use crate::error::IdentityError;
use crate::host_name::HostName;
use crate::private_file::{self, Others};

/// Maximum size of a file with certificates or a key, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// Certificate with its key, and the accepted certification authorities.
#[derive(Clone)]
pub struct Certificates {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    certified: Arc<CertifiedKey>,
}

impl Certificates {
    /// Reads PEM files: the authorities, the local certificate chain with the end entity first, and its private key.
    ///
    /// # Errors
    /// Names the file. A private key that other users can read is rejected.
    pub fn load(authorities: &Path, chain: &Path, key: &Path) -> Result<Self, IdentityError> {
        let provider = Arc::new(provider::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in read_chain(authorities)? {
            let wrong = |error| {
                IdentityError::content(authorities, format!("no certificate of an authority: {error}"))
            };
            roots.add(certificate).map_err(wrong)?;
        }
        let wrong = |error| {
            IdentityError::content(
                key,
                format!("does not match the certificate {}: {error}", chain.display()),
            )
        };
        let certified =
            CertifiedKey::from_der(read_chain(chain)?, read_key(key)?, &provider).map_err(wrong)?;
        Ok(Certificates { provider, roots: Arc::new(roots), certified: Arc::new(certified) })
    }

    /// Returns the credentials of a connecting endpoint. The configuration accepts a peer with a certificate for the requested
    /// host.
    ///
    /// # Errors
    /// Fails if rustls rejects the configuration.
    pub fn to_connect(&self, host: &HostName) -> Result<Credentials, IdentityError> {
        let name = ServerName::try_from(host.host())
            .map_err(|_| Error::General(format!("{host} is not a name for a certificate")))?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(&self.provider));
        let verifier = verifier.build().map_err(refused)?;
        Ok(self.credentials(verifier)?.with_peer_name(name))
    }

    /// Returns the credentials of a listening endpoint. The configuration accepts a peer with a certificate of one of the
    /// authorities.
    ///
    /// # Errors
    /// Fails if rustls rejects the configuration.
    pub fn to_listen(&self) -> Result<Credentials, IdentityError> {
        self.credentials(Arc::new(ServerRoleVerifier(self.client_verifier()?)))
    }

    fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, IdentityError> {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(&self.provider));
        verifier.build().map_err(refused)
    }

    /// Creates both configurations, because either endpoint may request new keys and then acts as the client.
    fn credentials(&self, of_server: Arc<dyn ServerCertVerifier>) -> Result<Credentials, IdentityError> {
        let resolver = Arc::new(SingleCertAndKey::from(Arc::clone(&self.certified)));
        let client = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(of_server)
            .with_client_cert_resolver(Arc::clone(&resolver) as _);
        let server = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(self.client_verifier()?)
            .with_cert_resolver(resolver);
        Ok(Credentials::new(Arc::new(client), Arc::new(server), IdentityForm::Certificates))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("roots", &self.roots.len()).finish_non_exhaustive()
    }
}

fn refused(error: rustls::server::VerifierBuilderError) -> IdentityError {
    Error::General(error.to_string()).into()
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = private_file::read_any(path, Others::MayRead, LONGEST_FILE)?;
    let text = text.ok_or_else(|| IdentityError::content(path, "no such file"))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(IdentityError::content(path, "no certificate in PEM")),
        Err(error) => Err(IdentityError::content(path, format!("no certificates in PEM: {error}"))),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let text = private_file::read_any(path, Others::Nothing, LONGEST_FILE)?;
    let text = text.ok_or_else(|| IdentityError::content(path, "no such file"))?;
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| IdentityError::content(path, "no private key in PEM"))
}

/// Verifier of a listening endpoint for handshakes in which the peer is the server, because the peer requested new keys. It
/// requires a certificate of one of the authorities and no name, as in the first handshake.
#[derive(Debug)]
struct ServerRoleVerifier(Arc<dyn ClientCertVerifier>);

impl ServerCertVerifier for ServerRoleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.verify_client_cert(end_entity, intermediates, now).map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
