//! Ed25519 public keys, as TLS and as people write them.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::fingerprint::Fingerprint;

/// What the text of a key begins with.
pub(crate) const PREFIX: &str = "ed25519:";

/// The SubjectPublicKeyInfo of every Ed25519 key but for the key itself (RFC 8410 section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An Ed25519 public key. Its text is `ed25519:` and 43 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; PublicKey::LEN]);

/// A text or an encoding is not that of an Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongPublicKey {
    /// The text has another form.
    #[error("a key is `ed25519:` and 43 characters of base64, as `anabranch keys` prints it")]
    Text,
    /// The encoding is of another kind of key, or of none.
    #[error("the peer's key is no Ed25519 key")]
    Encoding,
}

impl PublicKey {
    /// Bytes of a key.
    pub const LEN: usize = 32;

    /// The key in a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`WrongPublicKey::Encoding`] for any other kind of key.
    pub fn from_spki(spki: &[u8]) -> Result<Self, WrongPublicKey> {
        let key = spki.strip_prefix(&SPKI_PREFIX).and_then(|key| key.try_into().ok());
        key.map(PublicKey).ok_or(WrongPublicKey::Encoding)
    }

    /// Its SubjectPublicKeyInfo in DER.
    pub fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        PublicKey(bytes)
    }

    /// What people compare in its place.
    pub fn fingerprint(self) -> Fingerprint {
        Fingerprint::of_spki(&self.to_spki())
    }
}

impl FromStr for PublicKey {
    type Err = WrongPublicKey;

    fn from_str(text: &str) -> Result<Self, WrongPublicKey> {
        let digits = text.strip_prefix(PREFIX).ok_or(WrongPublicKey::Text)?;
        let mut bytes = [0; Self::LEN];
        // Decoding into so few bytes also bounds the text.
        match STANDARD_NO_PAD.decode_slice(digits, &mut bytes) {
            Ok(Self::LEN) => Ok(PublicKey(bytes)),
            _ => Err(WrongPublicKey::Text),
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_encodings_are_refused() {
        let spki = PublicKey([7; 32]).to_spki();
        for wrong in [&spki[..43], &[&spki[..], &[0]].concat(), &[0; 44], &[]] {
            assert_eq!(PublicKey::from_spki(wrong), Err(WrongPublicKey::Encoding));
        }
    }

    #[test]
    fn a_fingerprint_is_the_hash_of_the_encoding() {
        // printf of the twelve octets of RFC 8410 and 32 of 0x07, through sha256sum and base64.
        assert_eq!(
            PublicKey([7; 32]).fingerprint().to_string(),
            "SHA256:XS16KUJTfwPOfDiK+1SGH7z4f0hUucDay22zqBcE3qM"
        );
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(bytes in any::<[u8; 32]>()) {
            let key = PublicKey(bytes);
            prop_assert_eq!(key.to_string().parse(), Ok(key));
            prop_assert_eq!(PublicKey::from_spki(&key.to_spki()), Ok(key));
            prop_assert_eq!(key.to_string().len(), 8 + 43);
        }

        #[test]
        fn each_text_that_is_a_key_is_its_only_text(text in "ed25519:[A-Za-z0-9+/]{42,44}=?") {
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = text.parse::<PublicKey>();
        }
    }
}
