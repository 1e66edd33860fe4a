//! What the fuzz target calls.

use bytes::Bytes;

use super::{Message, Segment};

/// Reads bytes in every way in which a peer's bytes are read; what is read as a message must survive being written.
///
/// # Panics
/// If that does not hold.
pub fn decode(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes)
        && !matches!(message, Message::Hello { .. } | Message::Welcome { .. })
    {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = Message::decode_first(bytes)
        && matches!(message, Message::Hello { .. } | Message::Welcome { .. })
    {
        assert_eq!(Message::decode_first(&message.encode()), Ok(message));
    }
    if let Ok(segment) = Segment::decode(Bytes::copy_from_slice(bytes)) {
        assert!(segment.offset as usize + segment.content.len() <= segment.block_len as usize);
    }
}
