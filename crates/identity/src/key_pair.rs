//! Private key of a user.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anabranch_keying::crypto::rand::{SecureRandom as _, SystemRandom};
use anabranch_keying::crypto::signature::{Ed25519KeyPair, KeyPair as _};
use anabranch_keying::provider::sign::any_eddsa_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::SignatureScheme;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::IdentityError;
use crate::private_file::{self, Others};
use crate::public_key::PublicKey;

/// Maximum size of a key file, in bytes.
const LONGEST_FILE: u64 = 16 * 1024;

/// Line length of PEM, in characters (RFC 7468 section 2).
const PEM_COLUMNS: usize = 64;

/// Ed25519 key pair. `Debug` does not print the private key. aws-lc-rs wipes it when the last copy is dropped; ring does not.
#[derive(Clone)]
pub struct KeyPair {
    public: PublicKey,
    signing: Arc<dyn SigningKey>,
}

impl KeyPair {
    /// Generates a key pair without storing it.
    ///
    /// # Errors
    /// Returns [`IdentityError::NoRandomness`] if the system provides no random bytes.
    pub fn generate() -> Result<Self, IdentityError> {
        let document = generate()?;
        Self::from_pkcs8(&*document).ok_or(IdentityError::NoRandomness)
    }

    /// Returns the key pair of a seed (RFC 8032), which has to be as hard to guess as a private key.
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Self {
        let document = Zeroizing::new([&PKCS8_V1_PREFIX[..], seed].concat());
        Self::from_pkcs8(&document).expect("each seed is that of a key")
    }

    /// Reads the key from a PEM file with PKCS #8, the format of `openssl genpkey -algorithm ed25519`. If the file is missing,
    /// generates a key and stores it. If several processes do so at once, all get the same key.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written or is malformed. Returns [`IdentityError::Readable`] if other users can read it.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        if let Some(found) = Self::load(path)? {
            return Ok(found);
        }
        private_file::create(path, &pem(&*generate()?))?;
        Self::load(path)?.ok_or_else(|| IdentityError::content(path, "another process removes it; try again"))
    }

    /// Reads the key from a file. Returns `None` if the file is missing.
    ///
    /// # Errors
    /// Fails like [`load_or_create`](Self::load_or_create).
    pub fn load(path: &Path) -> Result<Option<Self>, IdentityError> {
        let Some(text) = private_file::read(path, Others::Nothing, LONGEST_FILE)? else { return Ok(None) };
        let mut der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).ok();
        let key = der.as_ref().and_then(|der| Self::from_pkcs8(der.secret_pkcs8_der()));
        der.zeroize();
        match key {
            Some(key) => Ok(Some(key)),
            None => Err(IdentityError::content(
                path,
                "no Ed25519 private key in PKCS #8 and PEM; restore it, or move it away to get a new one",
            )),
        }
    }

    /// Reads a key in PKCS #8 (DER). Returns `None` if it is not an Ed25519 key.
    pub fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes).ok()?;
        let public = PublicKey::from_bytes(pair.public_key().as_ref().try_into().ok()?);
        let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(bytes)).ok()?;
        Some(KeyPair { public, signing })
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a message (Ed25519, RFC 8032). The message has to begin with a text that separates it from those of TLS, for which the
    /// same key signs.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let signer = self.signing.choose_scheme(&[SignatureScheme::ED25519]).expect("an Ed25519 key");
        let signature = signer.sign(message).expect("Ed25519 signs every message");
        signature.try_into().expect("an Ed25519 signature has 64 bytes")
    }

    pub(crate) fn signing(&self) -> Arc<dyn SigningKey> {
        Arc::clone(&self.signing)
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Beginning of a private key of Ed25519 in version 1 of PKCS #8 (RFC 8410 section 7): the version, the algorithm 1.3.101.112, and
/// the headers of the two nested octet strings around the 32 bytes of the key.
const PKCS8_V1_PREFIX: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// Generates a key: 32 random bytes (RFC 8032 section 5.1.5). Its format is version 1 of PKCS #8, without a public key, because
/// OpenSSL reads no other version. ring writes only version 2.
fn generate() -> Result<Zeroizing<[u8; 48]>, IdentityError> {
    let mut document = Zeroizing::new([0; 48]);
    document[..16].copy_from_slice(&PKCS8_V1_PREFIX);
    SystemRandom::new().fill(&mut document[16..]).map_err(|_| IdentityError::NoRandomness)?;
    Ok(document)
}

/// Encodes a key as PEM. The buffers are allocated in full, because growing ones would leave copies behind.
fn pem(der: &[u8]) -> Zeroizing<String> {
    let mut digits = Zeroizing::new(vec![0; der.len().div_ceil(3) * 4]);
    let written = STANDARD.encode_slice(der, &mut digits).expect("four characters for three bytes");
    let mut text = Zeroizing::new(String::with_capacity(2 * written + 128));
    text.push_str("-----BEGIN PRIVATE KEY-----\n");
    for line in digits[..written].chunks(PEM_COLUMNS) {
        text.extend(line.iter().map(|digit| char::from(*digit)));
        text.push('\n');
    }
    text.push_str("-----END PRIVATE KEY-----\n");
    text
}

#[cfg(test)]
mod tests;
