//! Identity of a sender, which keeps unfinished files and records of different senders apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::{RandomError, token};

/// Random bytes that a sender presents first, the same in all its transfers. With them the receiver distinguishes the unfinished
/// files of different senders, so that a sender resumes only its own files.
///
/// The identity is a bearer value: any host that knows it can resume in the sender's place. Without encryption, hosts on the path
/// can read it. It is never displayed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderId([u8; SenderId::LEN]);

impl SenderId {
    /// Length of an identity, in bytes.
    pub const LEN: usize = 16;

    /// Creates a new random identity.
    ///
    /// # Errors
    /// Fails if the system provides no random bytes.
    pub fn random() -> Result<Self, RandomError> {
        token().map(SenderId)
    }

    /// Creates an identity from stored bytes.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        SenderId(bytes)
    }

    /// Returns the bytes to store, where no other user can read them.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// Returns the pseudonym that may be visible.
    pub(crate) fn owner(self) -> Owner {
        let hash = blake3::derive_key("anabranch transfer v2: owner of unfinished files", &self.0);
        Owner(*hash.first_chunk().expect("a hash is longer"))
    }
}

impl fmt::Debug for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SenderId(..)")
    }
}

/// Pseudonym of a [`SenderId`] in file names and in records; the identity cannot be derived from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner([u8; Owner::LEN]);

impl Owner {
    pub(crate) const LEN: usize = 8;

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Writes hexadecimal digits.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_an_identity() {
        let (one, two) = (SenderId::from_bytes([1; 16]), SenderId::from_bytes([2; 16]));
        assert_eq!(one.owner(), SenderId::from_bytes(one.to_bytes()).owner());
        assert_ne!(one.owner(), two.owner());
        assert_eq!(one.owner().to_string().len(), 2 * Owner::LEN);
        assert!(!format!("{one:?}").contains('1'));
        assert_ne!(SenderId::random().expect("random"), SenderId::random().expect("random"));
    }
}
