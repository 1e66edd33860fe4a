//! Restart keys of an association, in a form that can be stored (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, sections "SCTP
//! Restart Considerations" and "Persistent Secure Storage of Restart Key Context").
//!
//! ```text
//! version = 1 (1 byte), cipher suite (2), epoch (8), to send with: key, sequence number key, initialization vector (12),
//! to receive with: the same
//! ```
//!
//! Numbers are in network byte order. Key and sequence number key both have the key length of the suite.

use std::fmt;
use std::ops::RangeInclusive;

use anabranch_core::protection::{FIRST_EPOCH, RestartContext};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::CipherSuite;

const VERSION: u8 = 1;

/// Length of version, cipher suite and epoch, in bytes.
const HEADER_LEN: usize = 11;

/// Valid epochs of an association (the maximum is 2^48 - 1, RFC 9147 section 4.2.1).
const EPOCHS: RangeInclusive<u64> = FIRST_EPOCH..=(1 << 48) - 1;

/// Reason why restart keys are rejected.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RestartKeysError {
    /// The keys are truncated or too long.
    #[error(
        "restart keys of this cipher suite have {expected} bytes, and these are {found}; they are incomplete"
    )]
    Length {
        /// Length for the cipher suite in bytes, or the minimum length if the suite is missing.
        expected: usize,
        /// Actual length, in bytes.
        found: usize,
    },
    /// The version is not supported.
    #[error("restart keys of version {0} are not known here; a newer program has stored them")]
    Version(u8),
    /// The cipher suite is not supported, or the directions have different ones.
    #[error("restart keys are for a cipher suite that is not known here")]
    Suite,
    /// The epoch is outside the valid range.
    #[error("restart keys of epoch {0} belong to no association")]
    Epoch(u64),
}

/// Keys of both directions with which one endpoint can restart an association after losing its state.
///
/// A holder of these keys can take over the association, so they must be stored as secrets. They serve **one** restart: delete them
/// from storage before the restart begins, because a second restart would reuse nonces and reveal the sent data. They are wiped on
/// drop, and `Debug` does not print them.
pub struct RestartKeys {
    epoch: u64,
    send: KeyMaterial,
    receive: KeyMaterial,
}

impl RestartKeys {
    /// Creates restart keys from the keys that a key management derived for this epoch.
    ///
    /// # Errors
    /// Returns [`RestartKeysError::Epoch`] for an invalid epoch, and [`RestartKeysError::Suite`] if the directions differ in their
    /// suite.
    pub fn new(epoch: u64, send: KeyMaterial, receive: KeyMaterial) -> Result<Self, RestartKeysError> {
        if !EPOCHS.contains(&epoch) {
            return Err(RestartKeysError::Epoch(epoch));
        }
        if send.suite() != receive.suite() {
            return Err(RestartKeysError::Suite);
        }
        Ok(RestartKeys { epoch, send, receive })
    }

    /// Returns the epoch of the key exchange. Until the association restarts, a larger epoch is newer.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the encoded keys, for storage. The bytes are wiped on drop.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Allocated in full, because a growing buffer would leave copies of the keys behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length(self.send.suite())));
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.send.suite().number().to_be_bytes());
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        for material in [&self.send, &self.receive] {
            bytes.extend_from_slice(material.key());
            bytes.extend_from_slice(material.sequence_number_key());
            bytes.extend_from_slice(material.iv());
        }
        bytes
    }

    /// Decodes keys that [`to_bytes`](Self::to_bytes) encoded.
    ///
    /// # Errors
    /// Returns [`RestartKeysError`] if length, version, cipher suite or epoch are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RestartKeysError> {
        let short = RestartKeysError::Length { expected: HEADER_LEN, found: bytes.len() };
        let (&[version, high, low, ref epoch @ ..], keys) =
            bytes.split_first_chunk::<HEADER_LEN>().ok_or(short)?;
        if version != VERSION {
            return Err(RestartKeysError::Version(version));
        }
        let number = u16::from_be_bytes([high, low]);
        let suite = CipherSuite::of_number(number).ok_or(RestartKeysError::Suite)?;
        if bytes.len() != length(suite) {
            return Err(RestartKeysError::Length { expected: length(suite), found: bytes.len() });
        }
        let (send, receive) = keys.split_at(keys.len() / 2);
        let material = |bytes: &[u8]| {
            let (key, rest) = bytes.split_at(suite.key_len());
            let (sequence_number_key, iv) = rest.split_at(suite.key_len());
            KeyMaterial::new(suite, key, sequence_number_key, iv).map_err(|_| short)
        };
        RestartKeys::new(u64::from_be_bytes(*epoch), material(send)?, material(receive)?)
    }

    /// Returns the protection context that an endpoint uses for the restart.
    pub fn context(&self) -> RestartContext {
        let made = RestartContext::new(self.epoch, self.send.cipher(), self.receive.cipher());
        made.expect("an epoch and tags that every association has")
    }
}

/// Returns the length of the encoded keys of a suite, in bytes.
const fn length(suite: CipherSuite) -> usize {
    HEADER_LEN + 2 * (2 * suite.key_len() + IV_LEN)
}

impl fmt::Debug for RestartKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suite = self.send.suite();
        f.debug_struct("RestartKeys")
            .field("suite", &suite)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(suite: CipherSuite, epoch: u64) -> RestartKeys {
        let of = |purpose: &[u8]| KeyMaterial::from_seed(suite, &[7; 32], purpose);
        RestartKeys::new(epoch, of(b"send"), of(b"receive")).expect("a usual epoch")
    }

    #[test]
    fn stored_keys_are_read_back_and_seal_as_before() {
        for suite in CipherSuite::ALL {
            let ours = keys(suite, 0x0102_0304_0506);
            let bytes = ours.to_bytes();
            assert_eq!(bytes.len(), 11 + 4 * suite.key_len() + 24);
            let again = RestartKeys::from_bytes(&bytes).expect("as it was written");
            assert_eq!((again.epoch(), again.to_bytes()), (ours.epoch(), bytes));
            let sealed = |keys: &RestartKeys| {
                let (mut content, mut tag) = (*b"data", [0; 16]);
                keys.send.cipher().seal(0, b"", &mut content, &mut tag).expect("it seals");
                let mut record = [&content[..], &tag].concat();
                assert!(keys.receive.cipher().open(0, b"", &mut record).is_err(), "another direction");
                (content, tag)
            };
            assert_eq!(sealed(&again), sealed(&ours));
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let shown = format!("{:?}", keys(CipherSuite::Aes128Gcm, 4));
        assert_eq!(shown, "RestartKeys { suite: Aes128Gcm, epoch: 4, .. }");
    }

    #[test]
    fn invalid_text_is_refused_with_the_reason() {
        let bytes = keys(CipherSuite::Aes128Gcm, 3).to_bytes();
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.to_vec();
            bytes[at] = to;
            RestartKeys::from_bytes(&bytes).expect_err("it was changed")
        };
        assert_eq!(changed(0, 2), RestartKeysError::Version(2));
        assert_eq!(changed(2, 9), RestartKeysError::Suite);
        assert_eq!(changed(2, 2), RestartKeysError::Length { expected: 163, found: 99 });
        assert_eq!(changed(10, 2), RestartKeysError::Epoch(2));
        assert_eq!(changed(3, 1), RestartKeysError::Epoch((1 << 56) + 3));
        let cut = RestartKeys::from_bytes(&bytes[..98]).expect_err("it was cut");
        assert_eq!(cut, RestartKeysError::Length { expected: 99, found: 98 });
        let cut = RestartKeys::from_bytes(&bytes[..10]).expect_err("it was cut");
        assert_eq!(cut, RestartKeysError::Length { expected: 11, found: 10 });
        let long = RestartKeys::from_bytes(&[&bytes[..], &[0]].concat()).expect_err("it is too long");
        assert_eq!(long, RestartKeysError::Length { expected: 99, found: 100 });
    }

    #[test]
    fn both_directions_have_one_suite() {
        let [a, b] = [CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305]
            .map(|suite| KeyMaterial::from_seed(suite, &[1; 32], b""));
        assert_eq!(RestartKeys::new(3, a, b).err(), Some(RestartKeysError::Suite));
    }

    proptest! {
        #[test]
        fn every_read_value_is_written_unchanged(
            head in prop::array::uniform3(0_u8..4),
            epoch in 0_u64..1 << 50,
            keys in prop::collection::vec(any::<u8>(), 80..160),
        ) {
            let [version, high, low] = head;
            let bytes = [&[version, 0x13 * (high / 3), low][..], &epoch.to_be_bytes(), &keys].concat();
            if let Ok(read) = RestartKeys::from_bytes(&bytes) {
                prop_assert_eq!(&read.to_bytes()[..], &bytes[..]);
            }
        }

        #[test]
        fn any_bytes_can_be_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RestartKeys::from_bytes(&bytes);
        }
    }
}
