//! Entry point of the fuzz target.

use bytes::Bytes;

use super::{Message, Segment};

/// Decodes bytes by every decoder of a peer's bytes. A decoded message must be equal after encoding and decoding it again.
///
/// # Panics
/// Panics if it is not.
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
