//! Keys of one epoch in one direction, as derived by a key management.

use std::fmt;

use crate::crypto::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroize as _;

use crate::suite::CipherSuite;

/// Maximum key length of all suites, in bytes.
const LONGEST_KEY: usize = 32;

/// Length of the initialization vector of every suite, in bytes (RFC 5116 section 5, RFC 8439 section 2.8).
pub(crate) const IV_LEN: usize = 12;

/// Error: the length of a key, sequence number key or initialization vector does not fit the cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} of {found} bytes, where {suite:?} has {expected}")]
pub struct WrongKeyLength {
    what: &'static str,
    suite: CipherSuite,
    expected: usize,
    found: usize,
}

/// Key, sequence number key and initialization vector. They are wiped on drop, and `Debug` does not print them.
pub struct KeyMaterial {
    suite: CipherSuite,
    /// Boxed, so that moving the material does not copy the keys.
    secrets: Box<Secrets>,
}

struct Secrets {
    key: [u8; LONGEST_KEY],
    sequence_number_key: [u8; LONGEST_KEY],
    iv: [u8; IV_LEN],
}

impl KeyMaterial {
    /// Length of the initialization vector in all suites, in bytes.
    pub const IV_LEN: usize = IV_LEN;

    /// Creates key material from keys that a key management derived.
    ///
    /// # Errors
    /// Returns [`WrongKeyLength`], which names the part whose length does not fit the suite.
    pub fn new(
        suite: CipherSuite,
        key: &[u8],
        sequence_number_key: &[u8],
        iv: &[u8],
    ) -> Result<Self, WrongKeyLength> {
        let check = |what, bytes: &[u8], expected| match bytes.len() {
            found if found == expected => Ok(()),
            found => Err(WrongKeyLength { what, suite, expected, found }),
        };
        check("key", key, suite.key_len())?;
        check("sequence number key", sequence_number_key, suite.key_len())?;
        check("initialization vector", iv, IV_LEN)?;
        let mut material = Self::empty(suite);
        material.secrets.key[..key.len()].copy_from_slice(key);
        material.secrets.sequence_number_key[..key.len()].copy_from_slice(sequence_number_key);
        material.secrets.iv.copy_from_slice(iv);
        Ok(material)
    }

    /// Derives keys from a seed, for simulations. The same seed and purpose give the same keys. Different purposes, such as the two
    /// directions, give unrelated keys.
    pub fn from_seed(suite: CipherSuite, seed: &[u8; 32], purpose: &[u8]) -> Self {
        let secret = Salt::new(HKDF_SHA256, &[]).extract(seed);
        let mut material = Self::empty(suite);
        let len = suite.key_len();
        let secrets = &mut *material.secrets;
        let parts: [(&[u8], &mut [u8]); 3] = [
            (b"key", &mut secrets.key[..len]),
            (b"sn", &mut secrets.sequence_number_key[..len]),
            (b"iv", &mut secrets.iv),
        ];
        for (part, out) in parts {
            let info = [part, purpose];
            let derived = secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out));
            derived.expect("HKDF-SHA256 gives up to 8,160 bytes");
        }
        material
    }

    fn empty(suite: CipherSuite) -> Self {
        let (key, sequence_number_key) = ([0; LONGEST_KEY], [0; LONGEST_KEY]);
        Self { suite, secrets: Box::new(Secrets { key, sequence_number_key, iv: [0; IV_LEN] }) }
    }

    /// Returns the cipher suite of the keys.
    pub const fn suite(&self) -> CipherSuite {
        self.suite
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.secrets.key[..self.suite.key_len()]
    }

    pub(crate) fn sequence_number_key(&self) -> &[u8] {
        &self.secrets.sequence_number_key[..self.suite.key_len()]
    }

    pub(crate) fn iv(&self) -> &[u8; IV_LEN] {
        &self.secrets.iv
    }

    fn wipe(&mut self) {
        self.secrets.key.zeroize();
        self.secrets.sequence_number_key.zeroize();
        self.secrets.iv.zeroize();
    }
}

impl Drop for KeyMaterial {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMaterial").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Number of bytes to derive.
#[derive(Clone, Copy, Debug)]
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn material() -> KeyMaterial {
        KeyMaterial::new(CipherSuite::Aes128Gcm, &[0xA1; 16], &[0xB2; 16], &[0xC3; 12]).unwrap()
    }

    #[test]
    fn keys_are_not_shown() {
        assert_eq!(format!("{:?}", material()), "KeyMaterial { suite: Aes128Gcm, .. }");
    }

    #[test]
    fn drop_erases_key_material() {
        let mut material = material();
        material.wipe();
        let Secrets { key, sequence_number_key, iv } = &*material.secrets;
        assert_eq!((key, sequence_number_key, iv), (&[0; 32], &[0; 32], &[0; 12]));
    }

    #[test]
    fn a_wrong_length_is_named() {
        let error = |key: usize, sn: usize, iv: usize| {
            let made = KeyMaterial::new(CipherSuite::Aes256Gcm, &vec![0; key], &vec![0; sn], &vec![0; iv]);
            made.unwrap_err().to_string()
        };
        assert_eq!(error(16, 32, 12), "key of 16 bytes, where Aes256Gcm has 32");
        assert_eq!(error(32, 31, 12), "sequence number key of 31 bytes, where Aes256Gcm has 32");
        assert_eq!(error(32, 32, 16), "initialization vector of 16 bytes, where Aes256Gcm has 12");
    }

    #[test]
    fn a_seed_gives_the_same_keys_and_each_purpose_its_own() {
        let of = |seed, purpose: &[u8]| {
            KeyMaterial::from_seed(CipherSuite::ChaCha20Poly1305, &[seed; 32], purpose)
        };
        let parts = |material: &KeyMaterial| {
            let Secrets { key, sequence_number_key, iv } = &*material.secrets;
            (*key, *sequence_number_key, *iv)
        };
        let one = parts(&of(1, b"a"));
        assert_eq!(one, parts(&of(1, b"a")));
        for other in [of(1, b"b"), of(2, b"a")].each_ref().map(parts) {
            assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
        }
        assert_ne!(one.0, one.1);
    }
}
