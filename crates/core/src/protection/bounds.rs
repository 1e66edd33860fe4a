//! Limits of the keys of an association, and the errors for other keys.

use thiserror::Error;

/// Epoch of the first keys of an association.
pub const FIRST_EPOCH: u64 = 3;

/// Length of the tags of all recommended cipher suites of TLS 1.3. Packets are cut for it before there are keys.
pub(crate) const TAG_BYTES: usize = 16;

/// Reason for which keys were not installed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeyError {
    /// The peer has not agreed to protection, or the handshake has not ended.
    #[error(
        "no protection is agreed on; install keys once the association is up with a peer that protects packets"
    )]
    NotAgreed,
    /// The epoch is not the next one.
    #[error("keys are for epoch {found}, and the next one is {expected}")]
    Epoch {
        /// Next epoch.
        expected: u64,
        /// Given epoch.
        found: u64,
    },
    /// Two epochs are open for receiving.
    #[error("keys of two epochs are installed; remove those of the older one first")]
    TooMany,
    /// The tags of the cipher suite have another length.
    #[error("tags have {found} bytes where packets leave room for {TAG_BYTES}; choose another cipher suite")]
    TagLength {
        /// Length of its tags in bytes.
        found: usize,
    },
    /// Plain data arrived that the key management did not ask for, and that must not be mixed with protected data.
    #[error("unprotected data arrived that is not part of the key management; abort the association")]
    DataLeft,
    /// There is no send key yet.
    #[error("no send keys are installed; install them before protection is required")]
    NoSendKey,
    /// A SHUTDOWN was sent or received before protection. A received one may be forged.
    #[error("the association began to shut down before it was protected; abort it")]
    Closing,
    /// One side does not keep keys for a restart.
    #[error("the sides have not agreed to keep keys for a restart; both have to offer it")]
    RestartNotAgreed,
}
