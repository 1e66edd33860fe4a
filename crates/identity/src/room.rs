//! Rooms of a rendezvous server: short texts from which two sides derive the key by which they find each other.

use std::fmt;
use std::str::FromStr;

use anabranch_keying::crypto::digest;
use anabranch_keying::crypto::rand::{SecureRandom as _, SystemRandom};

use crate::error::IdentityError;
use crate::key_pair::KeyPair;

/// Beginning of the text of a room.
const PREFIX: &str = "room-";

/// Number of characters behind the prefix, with five random bits each.
const LEN: usize = 10;

/// Characters of a room: digits and letters without `i`, `l`, `o` and `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Room: a text such as `room-4k9xw2mqc7`, which has 50 random bits. Its key only finds the other side. It proves no identity, which a
/// [one-time code](crate::OneTimeCode) does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Room([u8; LEN]);

/// Error: the text is not a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a room is `room-` and {LEN} digits and letters, as `anabranch send --code --rendezvous` prints it")]
pub struct WrongRoom;

impl Room {
    /// Generates a uniformly random room.
    ///
    /// # Errors
    /// Returns [`IdentityError::NoRandomness`] if the system provides no random bytes.
    pub fn random() -> Result<Self, IdentityError> {
        let mut bytes = [0; LEN];
        SystemRandom::new().fill(&mut bytes).map_err(|_| IdentityError::NoRandomness)?;
        Ok(Room(bytes.map(|byte| ALPHABET[usize::from(byte) % ALPHABET.len()])))
    }

    /// Returns the key pair of the room, which all who know its text can derive.
    pub fn key_pair(&self) -> KeyPair {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"anabranch rendezvous room\0");
        context.update(&self.0);
        let seed = context.finish();
        KeyPair::from_seed(seed.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// Accepts letters in upper case.
impl FromStr for Room {
    type Err = WrongRoom;

    fn from_str(text: &str) -> Result<Self, WrongRoom> {
        if text.len() != PREFIX.len() + LEN {
            return Err(WrongRoom);
        }
        let text = text.to_ascii_lowercase();
        let characters = text.strip_prefix(PREFIX).ok_or(WrongRoom)?.as_bytes();
        if characters.iter().any(|character| !ALPHABET.contains(character)) {
            return Err(WrongRoom);
        }
        characters.try_into().map(Room).map_err(|_| WrongRoom)
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|character| write!(f, "{}", char::from(*character)))
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_survives_its_text_and_upper_case() {
        for _ in 0..100 {
            let room = Room::random().expect("randomness");
            let text = room.to_string();
            assert_eq!((text.parse(), text.to_uppercase().parse()), (Ok(room), Ok(room)), "{text}");
        }
    }

    #[test]
    fn both_sides_derive_one_key_and_other_rooms_have_another() {
        let room: Room = "room-4k9xw2mqc7".parse().expect("a room");
        assert_eq!(room.key_pair().public(), room.key_pair().public());
        let other: Room = "room-4k9xw2mqc8".parse().expect("a room");
        assert_ne!(room.key_pair().public(), other.key_pair().public());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "room-",
            "room-4k9xw2mqc",
            "room-4k9xw2mqc77",
            "room-4k9xw2mqcl",
            "rooms4k9xw2mqc7",
            "room-4k9xw2mqß",
        ] {
            assert_eq!(text.parse::<Room>(), Err(WrongRoom), "{text}");
        }
    }
}
