//! What encrypts and authenticates records, as far as core knows it.

use std::fmt;

/// How much of a ciphertext the mask of a sequence number is made from (RFC 9147 section 4.2.3).
pub const RECORD_SAMPLE_LEN: usize = 16;

/// A record could not be sealed, or is not authentic. It says no more, so that nobody learns more from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record could not be sealed or opened")]
pub struct CipherError;

/// How often a key may be used (RFC 9147 section 4.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Records sealed.
    pub sealed: u64,
    /// Records that were not authentic.
    pub failed: u64,
}

/// The keys of one epoch in one direction: for the content of records and for their sequence numbers.
///
/// An implementation must not show keys in its `Debug` and should wipe them when it is dropped.
pub trait RecordCipher: fmt::Debug + Send {
    /// The length of the tag behind the ciphertext.
    fn tag_bytes(&self) -> usize;

    /// How often the key may be used.
    fn limits(&self) -> RecordLimits;

    /// Encrypts `content` in place and writes its tag. `header` is authenticated with it.
    ///
    /// # Errors
    /// [`CipherError`] if it cannot; then `content` is not to be sent.
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
    /// [`CipherError`] if it is not authentic.
    fn open<'r>(
        &self,
        sequence_number: u64,
        header: &[u8],
        record: &'r mut [u8],
    ) -> Result<&'r [u8], CipherError>;

    /// What the sequence number on the wire is combined with (RFC 9147 section 4.2.3).
    fn mask(&self, sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2];
}

/// Neither encrypts nor authenticates, but makes records as long as the ciphers of TLS 1.3 make them: for simulations, where
/// nobody attacks and nothing but sizes counts.
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
