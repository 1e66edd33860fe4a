//! Fingerprints of public keys, for comparison by users.

use std::fmt;

use anabranch_keying::crypto::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// SHA-256 of a SubjectPublicKeyInfo, the same for raw public keys and keys of certificates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of a DER-encoded SubjectPublicKeyInfo (RFC 5280 section 4.1).
    pub fn of_spki(spki: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, spki).as_ref());
        Fingerprint(bytes)
    }
}

/// Format of `ssh-keygen -l`: the hash algorithm, and base64 without padding.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
