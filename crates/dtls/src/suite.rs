//! Cipher suites of TLS 1.3 that DTLS 1.3 uses (RFC 8446 appendix B.4).

use crate::crypto::aead::{self, quic};

/// Cipher suite. Its hash function serves key management only, not records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256, mandatory for the DTLS chunk.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All supported cipher suites.
    pub const ALL: [CipherSuite; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Returns the number in IANA's registry of TLS cipher suites.
    pub const fn number(self) -> u16 {
        match self {
            Self::Aes128Gcm => 0x1301,
            Self::Aes256Gcm => 0x1302,
            Self::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// Returns the suite with this number, or `None` if it is not supported.
    pub fn of_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// Returns the length of the key in bytes, which is also that of the sequence number key (RFC 9147 section 4.2.3).
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    pub(crate) fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    /// Returns the algorithm that encrypts sequence numbers, as QUIC encrypts packet numbers (RFC 9001 sections 5.4.3 and 5.4.4).
    pub(crate) fn mask(self) -> &'static quic::Algorithm {
        match self {
            Self::Aes128Gcm => &quic::AES_128,
            Self::Aes256Gcm => &quic::AES_256,
            Self::ChaCha20Poly1305 => &quic::CHACHA20,
        }
    }
}
