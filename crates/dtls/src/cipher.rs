//! Keys in use: a [`RecordCipher`] of a suite and its keys.

use std::fmt;

use anabranch_core::protection::{CipherError, RECORD_SAMPLE_LEN, RecordCipher, RecordLimits};
use aws_lc_rs::aead::quic::HeaderProtectionKey;
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::{Zeroize as _, Zeroizing};

use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::CipherSuite;

/// The length of the tags of all suites.
const TAG_LEN: usize = 16;

/// 2^24.5, the most records that AES-GCM may seal with one key (RFC 9147 section 4.5.3). With packets of 1,400 bytes that is
/// 33 GB, so it asks for new keys before the 100 GB do that draft-porfiri-tsvwg-sctp-dtls-handshake names.
const AES_GCM_SEALED: u64 = 23_726_566;

/// The most forgeries that any of the three may meet (RFC 9147 section 4.5.3).
const FAILED: u64 = 1 << 36;

impl KeyMaterial {
    /// The cipher with these keys.
    pub fn cipher(&self) -> Box<dyn RecordCipher> {
        let cipher = self.make_cipher();
        wipe_stack();
        cipher
    }

    /// Its parts are values on the stack until they are in their place, and moves leave copies behind.
    #[inline(never)]
    fn make_cipher(&self) -> Box<dyn RecordCipher> {
        let suite = self.suite();
        let key = UnboundKey::new(suite.aead(), self.key()).expect("a key of the suite's length");
        let mask = HeaderProtectionKey::new(suite.mask(), self.sequence_number_key());
        Box::new(SuiteCipher {
            suite,
            key: LessSafeKey::new(key),
            mask: mask.expect("a key of the suite's length"),
            iv: Zeroizing::new(*self.iv()),
        })
    }
}

/// More than the functions need that make a cipher.
const MOST_STACK: usize = 8 << 10;

/// Overwrites what functions that were called before from the same place have left on the stack: from there it could get to wherever
/// a value is moved that is larger than what it holds, and stay there.
#[inline(never)]
fn wipe_stack() {
    let mut space = [0_u8; MOST_STACK];
    space.zeroize();
    std::hint::black_box(&space);
}

/// Keys in use. The library wipes what it holds of them when they are dropped.
struct SuiteCipher {
    suite: CipherSuite,
    key: LessSafeKey,
    mask: HeaderProtectionKey,
    iv: Zeroizing<[u8; IV_LEN]>,
}

impl SuiteCipher {
    /// The vector combined with the number at its right end (RFC 8446 section 5.3). Unlike before DTLS 1.3 the number is
    /// without the epoch (RFC 9147 section 4.2.1).
    fn nonce(&self, sequence_number: u64) -> Nonce {
        let mut nonce = *self.iv;
        for (byte, number) in nonce.iter_mut().rev().zip(sequence_number.to_le_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl fmt::Debug for SuiteCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SuiteCipher").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl RecordCipher for SuiteCipher {
    fn tag_bytes(&self) -> usize {
        TAG_LEN
    }

    fn limits(&self) -> RecordLimits {
        let sealed = match self.suite {
            CipherSuite::Aes128Gcm | CipherSuite::Aes256Gcm => AES_GCM_SEALED,
            CipherSuite::ChaCha20Poly1305 => u64::MAX,
        };
        RecordLimits { sealed, failed: FAILED }
    }

    fn seal(
        &self,
        sequence_number: u64,
        header: &[u8],
        content: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CipherError> {
        let nonce = self.nonce(sequence_number);
        let made = self.key.seal_in_place_separate_tag(nonce, Aad::from(header), content);
        let made = made.map_err(|_| CipherError)?;
        let place: &mut [u8; TAG_LEN] = tag.try_into().map_err(|_| CipherError)?;
        *place = made.as_ref().try_into().map_err(|_| CipherError)?;
        Ok(())
    }

    fn open<'r>(
        &self,
        sequence_number: u64,
        header: &[u8],
        record: &'r mut [u8],
    ) -> Result<&'r [u8], CipherError> {
        let nonce = self.nonce(sequence_number);
        let opened = self.key.open_in_place(nonce, Aad::from(header), record);
        opened.map(|content| &*content).map_err(|_| CipherError)
    }

    fn mask(&self, sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2] {
        let [a, b, ..] = self.mask.new_mask(sample).expect("a sample of the right length");
        [a, b]
    }
}
