//! [`RecordCipher`] implementation: a cipher suite with its keys.

use std::fmt;

use crate::crypto::aead::quic::HeaderProtectionKey;
use crate::crypto::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use anabranch_core::protection::{CipherError, RECORD_SAMPLE_LEN, RecordCipher, RecordLimits};
use zeroize::{Zeroize as _, Zeroizing};

use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::CipherSuite;

/// Length of an authentication tag, equal in all suites, in bytes.
const TAG_LEN: usize = 16;

/// Maximum number of records that AES-GCM may seal with one key: 2^24.5 (RFC 9147 section 4.5.3). With packets of 1,400 bytes this
/// is 33 GB, so new keys are requested before the 100 GB that draft-porfiri-tsvwg-sctp-dtls-handshake names.
const AES_GCM_SEALED: u64 = 23_726_566;

/// Maximum number of failed authentications, for the AEAD with the lowest limit of the three (RFC 9147 section 4.5.3).
const FAILED: u64 = 1 << 36;

impl KeyMaterial {
    /// Returns a cipher with these keys.
    pub fn cipher(&self) -> Box<dyn RecordCipher> {
        let cipher = self.make_cipher();
        wipe_stack();
        cipher
    }

    /// Creates the cipher. Its parts pass through the stack, and moves leave copies there, which the caller wipes.
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

/// Size of the stack area that [`wipe_stack`] overwrites, in bytes. [`KeyMaterial::make_cipher`] needs less.
const MOST_STACK: usize = 8 << 10;

/// Overwrites the stack that earlier calls from the same function used. Otherwise key bytes left there could be copied as unused
/// bytes of a value that is moved later, and persist.
#[inline(never)]
fn wipe_stack() {
    let mut space = [0_u8; MOST_STACK];
    space.zeroize();
    std::hint::black_box(&space);
}

/// Cipher suite with its keys. aws-lc-rs wipes its copies of the keys when they are dropped; ring does not.
struct SuiteCipher {
    suite: CipherSuite,
    key: LessSafeKey,
    mask: HeaderProtectionKey,
    iv: Zeroizing<[u8; IV_LEN]>,
}

impl SuiteCipher {
    /// Computes the nonce: the initialization vector XOR the right-aligned sequence number (RFC 8446 section 5.3). Unlike in
    /// earlier versions of DTLS, the sequence number does not include the epoch (RFC 9147 section 4.2.1).
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
