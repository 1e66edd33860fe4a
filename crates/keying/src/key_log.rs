//! Key log for decrypting captures later.

use std::fmt;

use anabranch_dtls::CipherSuite;

/// Sender of the packets that a key protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client of the exchange.
    FromClient,
    /// Server of the exchange.
    FromServer,
}

/// Keys of one direction. `Debug` prints only the suite.
pub struct LoggedKeys<'k> {
    /// Cipher suite of the keys.
    pub suite: CipherSuite,
    /// AEAD key.
    pub key: &'k [u8],
    /// Key that encrypts sequence numbers.
    pub sequence_number_key: &'k [u8],
    /// Initialization vector.
    pub iv: &'k [u8],
}

impl fmt::Debug for LoggedKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedKeys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Receiver of all keys of associations with certain credentials. Its holder can decrypt their packets.
pub trait KeyLog: fmt::Debug + Send + Sync {
    /// Logs keys that are about to be used. It must not block: the association continues only after it returns.
    fn log(&self, direction: Direction, keys: &LoggedKeys<'_>);
}
