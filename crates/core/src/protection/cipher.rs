//! Interface of ciphers that encrypt and authenticate records.

use std::fmt;

/// Length of the part of a ciphertext from which the mask of a sequence number is computed (RFC 9147 section 4.2.3).
pub const RECORD_SAMPLE_LEN: usize = 16;

/// Failure to seal a record, or to authenticate one. It has no details, so that an attacker learns nothing from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record could not be sealed or opened")]
pub struct CipherError;

/// Limits on the use of a key (RFC 9147 section 4.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Maximum number of sealed records.
    pub sealed: u64,
    /// Maximum number of records that are not authentic.
    pub failed: u64,
}

/// Keys of one epoch in one direction: for the content of records and for their sequence numbers.
///
/// An implementation must not print keys in its `Debug` and should wipe them when it is dropped.
pub trait RecordCipher: fmt::Debug + Send {
    /// Returns the length in bytes of the tag behind the ciphertext.
    fn tag_bytes(&self) -> usize;

    /// Returns the limits on the use of the key.
    fn limits(&self) -> RecordLimits;

    /// Encrypts `content` in place and writes its tag. `header` is authenticated with it.
    ///
    /// # Errors
    /// Returns [`CipherError`] if encryption fails; `content` must then not be sent.
    fn seal(
        &self,
        sequence_number: u64,
        header: &[u8],
        content: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CipherError>;

    /// Checks and decrypts a ciphertext with the tag behind it, in place, and returns the content.
    ///
    /// # Errors
    /// Returns [`CipherError`] if the ciphertext is not authentic.
    fn open<'r>(
        &self,
        sequence_number: u64,
        header: &[u8],
        record: &'r mut [u8],
    ) -> Result<&'r [u8], CipherError>;

    /// Returns the mask for the sequence number on the wire (RFC 9147 section 4.2.3).
    fn mask(&self, sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2];
}

/// Cipher without encryption or authentication whose records are as long as those of the ciphers of TLS 1.3: for simulations, in
/// which only sizes matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullCipher;

impl NullCipher {
    const TAG_BYTES: usize = 16;
}

impl RecordCipher for NullCipher {
    fn tag_bytes(&self) -> usize {
        Self::TAG_BYTES
    }

    fn limits(&self) -> RecordLimits {
        RecordLimits { sealed: u64::MAX, failed: u64::MAX }
    }

    fn seal(
        &self,
        _sequence_number: u64,
        _header: &[u8],
        _content: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CipherError> {
        tag.fill(0);
        Ok(())
    }

    fn open<'r>(
        &self,
        _sequence_number: u64,
        _header: &[u8],
        record: &'r mut [u8],
    ) -> Result<&'r [u8], CipherError> {
        let content_bytes = record.len().checked_sub(Self::TAG_BYTES).ok_or(CipherError)?;
        record.get(..content_bytes).ok_or(CipherError)
    }

    fn mask(&self, _sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2] {
        [0; 2]
    }
}
