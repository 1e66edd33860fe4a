//! Key contexts: the keys of one epoch in one direction, and the sequence numbers of its records (draft-ietf-tsvwg-sctp-dtls-chunk
//! of July 2026, section "DTLS Considerations"; RFC 9147 sections 4.2 and 4.5).

use anabranch_wire::{DtlsRecordHeader, NoSpace, PlainRecord, dtls_content};

use super::cipher::{CipherError, RECORD_SAMPLE_LEN, RecordCipher};
use super::replay::{MAX_SEQUENCE_NUMBER, ReplayWindow};
use crate::stats::Discard;

/// Maximum number of chunk bytes in a record (RFC 9147 section 4: the limits of RFC 8446 section 5.1).
pub(crate) const LARGEST_RECORD: usize = 1 << 14;

/// Maximum length of a ciphertext: content, content type, padding and tag (RFC 8446 section 5.2).
const LARGEST_CIPHERTEXT: usize = LARGEST_RECORD + 256;

/// Reason for which a packet was not protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The key has sealed the maximum number of records.
    #[error("the key has sealed as many records as it may")]
    KeySpent,
    /// The cipher failed.
    #[error(transparent)]
    Cipher(#[from] CipherError),
    /// The packet was not started as a protected one.
    #[error("the packet leaves no room for a record")]
    NoSpace,
}

impl From<NoSpace> for SealError {
    fn from(_: NoSpace) -> Self {
        Self::NoSpace
    }
}

/// Keys to send with.
#[derive(Debug)]
pub struct SendContext {
    epoch: u64,
    cipher: Box<dyn RecordCipher>,
    next: u64,
    bytes: u64,
}

impl SendContext {
    /// Returns keys that have sealed no record yet.
    pub fn new(epoch: u64, cipher: Box<dyn RecordCipher>) -> Self {
        Self { epoch, cipher, next: 0, bytes: 0 }
    }

    /// Returns the epoch, of which records carry the two low bits.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the length in bytes of a record's tag, for which packets need room.
    pub fn tag_bytes(&self) -> usize {
        self.cipher.tag_bytes()
    }

    /// Returns the number of sealed records.
    pub fn sealed(&self) -> u64 {
        self.next
    }

    /// Returns the chunk bytes in sealed records.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of records that the key may still seal.
    pub fn left(&self) -> u64 {
        self.cipher.limits().sealed.min(MAX_SEQUENCE_NUMBER + 1).saturating_sub(self.next)
    }

    /// Encrypts a record under the next number. A failure uses the number up too, so that no nonce is used twice.
    ///
    /// # Errors
    /// Returns [`SealError`] if the key is used up or the cipher fails; the packet must then not be sent.
    pub fn seal(&mut self, mut record: PlainRecord<'_>) -> Result<(), SealError> {
        if self.left() == 0 {
            return Err(SealError::KeySpent);
        }
        let number = self.next;
        self.next += 1;
        self.bytes += record.content.len() as u64;
        let plain = DtlsRecordHeader::new(self.epoch, number as u16);
        self.cipher.seal(number, &plain.to_wire(), record.content, record.tag)?;
        let sample = sample_of(record.content, record.tag).ok_or(SealError::Cipher(CipherError))?;
        record.set_header(plain.masked(self.cipher.mask(&sample)));
        Ok(())
    }
}

/// Returns the start of a ciphertext and its tag, which are consecutive on the wire.
fn sample_of(content: &[u8], tag: &[u8]) -> Option<[u8; RECORD_SAMPLE_LEN]> {
    if let Some(sample) = content.first_chunk() {
        return Some(*sample);
    }
    let mut sample = [0; RECORD_SAMPLE_LEN];
    let (first, rest) = sample.split_at_mut(content.len());
    first.copy_from_slice(content);
    rest.copy_from_slice(tag.get(..rest.len())?);
    Some(sample)
}

/// Keys to receive with.
#[derive(Debug)]
pub struct ReceiveContext {
    epoch: u64,
    cipher: Box<dyn RecordCipher>,
    replay: ReplayWindow,
    opened: u64,
    bytes: u64,
    failed: u64,
}

impl ReceiveContext {
    /// Returns keys that have opened no record yet.
    pub fn new(epoch: u64, cipher: Box<dyn RecordCipher>) -> Self {
        Self { epoch, cipher, replay: ReplayWindow::new(), opened: 0, bytes: 0, failed: 0 }
    }

    /// Returns the epoch, of which records carry the two low bits.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of opened records.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns the chunk bytes in opened records.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of records that were not authentic.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Decrypts a record in place and returns its chunks. Only an authentic record uses its number up.
    ///
    /// # Errors
    /// Returns the reason why the packet is dropped.
    pub fn open<'r>(&mut self, header: DtlsRecordHeader, record: &'r mut [u8]) -> Result<&'r [u8], Discard> {
        if self.failed >= self.cipher.limits().failed {
            return Err(Discard::KeySpent);
        }
        // RFC 9147 section 4.5.2: an invalid record is discarded, and the association continues.
        if record.len() > LARGEST_CIPHERTEXT {
            return Err(Discard::Malformed);
        }
        // RFC 9147 section 4.2.3: a record too short for a sample is not authentic.
        let Some(sample) = record.first_chunk() else { return self.fail() };
        let plain = header.masked(self.cipher.mask(sample));
        let number = self.replay.reconstruct(plain.sequence_number);
        if !self.replay.is_fresh(number) {
            return Err(Discard::Replayed);
        }
        let Ok(content) = self.cipher.open(number, &plain.to_wire(), record) else { return self.fail() };
        self.replay.mark(number);
        self.opened += 1;
        self.bytes += content.len() as u64;
        dtls_content(content).ok_or(Discard::Malformed)
    }

    fn fail<T>(&mut self) -> Result<T, Discard> {
        self.failed += 1;
        Err(Discard::NotAuthentic)
    }
}

#[cfg(test)]
mod tests;
