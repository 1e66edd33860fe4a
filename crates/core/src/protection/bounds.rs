//! What keys an association can have, and why it takes no others.

use thiserror::Error;

/// The epoch of the first keys of an association.
pub const FIRST_EPOCH: u64 = 3;

/// The length of the tags of every cipher suite of TLS 1.3 but one that nobody recommends. Packets are cut for it before there
/// are keys.
pub(crate) const TAG_BYTES: usize = 16;

/// Why keys were not installed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeyError {
    /// The peer has not agreed to protection, or the handshake is not over.
    #[error(
        "no protection is agreed on; install keys once the association is up with a peer that protects packets"
    )]
    NotAgreed,
    /// Epochs follow each other.
    #[error("keys are for epoch {found}, and the next one is {expected}")]
    Epoch {
        /// The one that comes next.
        expected: u64,
        /// The one that was given.
        found: u64,
    },
    /// Two epochs are open for receiving.
    #[error("keys of two epochs are installed; remove those of the older one first")]
    TooMany,
    /// A cipher suite whose tags have another length.
    #[error("tags have {found} bytes where packets leave room for {TAG_BYTES}; choose another cipher suite")]
    TagLength {
        /// The length.
        found: usize,
    },
    /// Someone has sent more than the key management has asked for: it is not to be mixed with what comes protected.
    #[error("data came before protection that is no part of the key management; abort the association")]
    DataLeft,
    /// There is no send key yet.
    #[error("there are no keys to send with yet; install them before protection is required")]
    NoSendKey,
    /// A SHUTDOWN was sent or has come before protection. One that has come need not be the peer's.
    #[error("the association began to shut down before it was protected; abort it")]
    Closing,
    /// One of the sides keeps no keys for a restart.
    #[error("the sides have not agreed to keep keys for a restart; both have to offer it")]
    RestartNotAgreed,
}
