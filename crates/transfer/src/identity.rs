//! Who offers files, as far as unfinished files and records are kept apart by it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::{RandomError, token};

/// Random bytes that a side which offers files says first, the same in all its transfers. A receiver keeps unfinished files of
/// different senders apart by it, and the same sender goes on with its own.
///
/// It is a bearer value: whoever knows it can go on in the sender's place, and nothing on the way hides it. It is never shown.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderId([u8; SenderId::LEN]);

impl SenderId {
    /// Bytes of an identity.
    pub const LEN: usize = 16;

    /// One that nobody else has.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> Result<Self, RandomError> {
        token().map(SenderId)
    }

    /// One that was kept.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        SenderId(bytes)
    }

    /// To be kept, where nobody else can read it.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// What may be seen of it.
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

/// Stands for a [`SenderId`] in names of files and in records; it does not lead back to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner([u8; Owner::LEN]);

impl Owner {
    pub(crate) const LEN: usize = 8;

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// As hexadecimal digits.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_not_shown_and_its_owner_is_its_own() {
        let (one, two) = (SenderId::from_bytes([1; 16]), SenderId::from_bytes([2; 16]));
        assert_eq!(one.owner(), SenderId::from_bytes(one.to_bytes()).owner());
        assert_ne!(one.owner(), two.owner());
        assert_eq!(one.owner().to_string().len(), 2 * Owner::LEN);
        assert!(!format!("{one:?}").contains('1'));
        assert_ne!(SenderId::random().expect("random"), SenderId::random().expect("random"));
    }
}
