//! Keys for those who want to read a capture later.

use std::fmt;

use anabranch_dtls::CipherSuite;

/// Who sends what a key protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client of the exchange.
    FromClient,
    /// The server of the exchange.
    FromServer,
}

/// The keys of one direction. `Debug` shows the suite alone.
pub struct LoggedKeys<'k> {
    /// What they are for.
    pub suite: CipherSuite,
    /// The key of the AEAD.
    pub key: &'k [u8],
    /// The key that masks sequence numbers.
    pub sequence_number_key: &'k [u8],
    /// The initialization vector.
    pub iv: &'k [u8],
}

impl fmt::Debug for LoggedKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedKeys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Is told all keys of the associations with some credentials. Whoever has them can read what they protect.
pub trait KeyLog: fmt::Debug + Send + Sync {
    /// Keys that are about to be used. It must not wait: the association does not go on before it returns.
    fn log(&self, direction: Direction, keys: &LoggedKeys<'_>);
}
