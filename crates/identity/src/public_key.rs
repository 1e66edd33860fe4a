//! Ed25519 public keys in the formats of TLS and of users.

use std::fmt;
use std::str::FromStr;

use anabranch_keying::crypto::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use curve25519_dalek::edwards::CompressedEdwardsY;

use crate::fingerprint::Fingerprint;

/// Prefix of the text of a key.
pub(crate) const PREFIX: &str = "ed25519:";

/// SubjectPublicKeyInfo of an Ed25519 key up to the key itself (RFC 8410 section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Ed25519 public key. Its text is `ed25519:` and 43 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; PublicKey::LEN]);

/// Error of parsing an Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongPublicKey {
    /// The text has another format.
    #[error("a key is `ed25519:` and 43 characters of base64, as `anabranch keys` prints it")]
    Text,
    /// The encoding is not that of an Ed25519 key.
    #[error("the peer's key is not an Ed25519 key")]
    Encoding,
    /// The key is a point of small order, such as 32 zeros. Signatures for it can be forged without a private key.
    #[error(
        "this key belongs to everyone: signatures for it can be made without a private key; ask its owner for the right one"
    )]
    SmallOrder,
}

impl PublicKey {
    /// Length of a key, in bytes.
    pub const LEN: usize = 32;

    /// Reads the key of a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// Returns [`WrongPublicKey::Encoding`] for other kinds of keys, and [`WrongPublicKey::SmallOrder`].
    pub fn from_spki(spki: &[u8]) -> Result<Self, WrongPublicKey> {
        let key = spki.strip_prefix(&SPKI_PREFIX).and_then(|key| key.try_into().ok());
        Self::checked(key.ok_or(WrongPublicKey::Encoding)?)
    }

    /// Returns the SubjectPublicKeyInfo in DER.
    pub fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// Rejects the points of small order in each of their encodings (RFC 8032 section 5.1.7 accepts them). Every signature that
    /// ends in zeros is valid for the neutral element, and one in eight for the other points.
    fn checked(bytes: [u8; Self::LEN]) -> Result<Self, WrongPublicKey> {
        match CompressedEdwardsY(bytes).decompress() {
            Some(point) if point.is_small_order() => Err(WrongPublicKey::SmallOrder),
            // Bytes that do not encode a point verify no signature.
            _ => Ok(PublicKey(bytes)),
        }
    }

    /// Reads the 32 bytes of a key (RFC 8032).
    ///
    /// # Errors
    /// Returns [`WrongPublicKey::SmallOrder`].
    pub fn from_raw(bytes: [u8; Self::LEN]) -> Result<Self, WrongPublicKey> {
        Self::checked(bytes)
    }

    /// Returns the 32 bytes of the key (RFC 8032).
    pub fn to_raw(self) -> [u8; Self::LEN] {
        self.0
    }

    /// Returns `true` if the signature over the message is valid.
    pub fn verifies(self, message: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        PublicKey(bytes)
    }

    /// Returns the fingerprint, for comparison by users.
    pub fn fingerprint(self) -> Fingerprint {
        Fingerprint::of_spki(&self.to_spki())
    }
}

impl FromStr for PublicKey {
    type Err = WrongPublicKey;

    fn from_str(text: &str) -> Result<Self, WrongPublicKey> {
        let digits = text.strip_prefix(PREFIX).ok_or(WrongPublicKey::Text)?;
        let mut bytes = [0; Self::LEN];
        // The size of the buffer also bounds the text.
        match STANDARD_NO_PAD.decode_slice(digits, &mut bytes) {
            Ok(Self::LEN) => Self::checked(bytes),
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

    /// Returns the eight points of small order, including other encodings of the same coordinate.
    fn small_order_keys() -> Vec<[u8; 32]> {
        let order_8 = [
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        ];
        let order_8 = order_8.map(|digits| {
            std::array::from_fn(|at| {
                u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("hexadecimal")
            })
        });
        // y = 0, 1, p - 1, p and p + 1, in little endian.
        let number = |first: u8, rest: u8, last: u8| {
            let mut bytes = [rest; 32];
            (bytes[0], bytes[31]) = (first, last);
            bytes
        };
        let plain = [
            number(0, 0, 0),
            number(1, 0, 0),
            number(0xec, 0xff, 0x7f),
            number(0xed, 0xff, 0x7f),
            number(0xee, 0xff, 0x7f),
        ];
        let with_sign = |key: [u8; 32]| {
            let mut signed = key;
            signed[31] |= 0x80;
            [key, signed]
        };
        order_8.into_iter().chain(plain).flat_map(with_sign).collect()
    }

    #[test]
    fn keys_of_small_order_are_refused_in_every_encoding() {
        for bytes in small_order_keys() {
            let key = PublicKey(bytes);
            assert_eq!(PublicKey::from_spki(&key.to_spki()), Err(WrongPublicKey::SmallOrder), "{key}");
            assert_eq!(key.to_string().parse::<PublicKey>(), Err(WrongPublicKey::SmallOrder), "{key}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_hash_of_the_encoding() {
        // The expected text was computed with `printf` of the twelve octets of RFC 8410 and 32 octets of 0x07, `sha256sum` and
        // `base64`.
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
