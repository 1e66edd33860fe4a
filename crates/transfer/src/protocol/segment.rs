//! Segments: the pieces of a block that are sent.
//!
//! | field | bytes | |
//! | --- | --- | --- |
//! | offer | 4 | |
//! | block | 8 | its index |
//! | block length | 4 | at most [`BLOCK_BYTES`] |
//! | offset | 4 | of the content in the block |
//! | content | the rest | at most [`MAX_SEGMENT_BYTES`], at least 1 |
//! | hash | 32 | of the whole block; only behind content that reaches its end |
//!
//! All numbers are big-endian. The hash is behind the content so that a block can be read directly into the buffers that are sent.

use bytes::{BufMut, Bytes, BytesMut};

use crate::block::{BLOCK_BYTES, Hash};
use crate::protocol::ProtocolError;

/// Maximum length of the content in a segment, in bytes.
pub const MAX_SEGMENT_BYTES: usize = 60 << 10;

/// Length of the header before the content, in bytes.
const HEADER_LEN: usize = 20;

/// Piece of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the offer it belongs to.
    pub id: u32,
    /// Index of the block.
    pub index: u64,
    /// Length of the block, in bytes.
    pub block_len: u32,
    /// Offset of the content in the block, in bytes.
    pub offset: u32,
    /// Content of the segment.
    pub content: Bytes,
    /// Hash of the block, with the content that ends it.
    pub hash: Option<Hash>,
}

impl Segment {
    /// Decodes a message without copying it.
    ///
    /// # Errors
    /// Returns [`ProtocolError::Garbled`] if lengths do not agree or exceed their bounds.
    pub fn decode(mut bytes: Bytes) -> Result<Self, ProtocolError> {
        if bytes.len() <= HEADER_LEN {
            return Err(ProtocolError::Garbled);
        }
        let header = bytes.split_to(HEADER_LEN);
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let index = u64::from(word(4)) << 32 | u64::from(word(8));
        let (id, block_len, offset) = (word(0), word(12), word(16));
        if block_len > BLOCK_BYTES || offset >= block_len {
            return Err(ProtocolError::Garbled);
        }
        let left = (block_len - offset) as usize;
        let hash = if bytes.len() == left + Hash::LEN && left <= MAX_SEGMENT_BYTES {
            let hash = bytes.split_off(left);
            Some(Hash(hash[..].try_into().expect("the length of a hash")))
        } else {
            None
        };
        let is_whole = hash.is_some() || bytes.len() < left;
        if !is_whole || bytes.len() > MAX_SEGMENT_BYTES {
            return Err(ProtocolError::Garbled);
        }
        Ok(Segment { id, index, block_len, offset, content: bytes, hash })
    }
}

/// Content of a block in messages that are ready to send.
#[derive(Debug)]
pub(crate) struct BlockMessages {
    pub(crate) messages: Vec<Bytes>,
    pub(crate) hash: Hash,
}

/// Reads a block into the messages that carry it, and hashes it at the same time. `fill` must fill the whole buffer that it
/// receives.
pub(crate) fn read_block<E>(
    id: u32,
    index: u64,
    block_len: u32,
    mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<BlockMessages, E> {
    let mut hasher = blake3::Hasher::new();
    let mut messages = Vec::new();
    let mut offset = 0_u32;
    while offset < block_len {
        let left = (block_len - offset) as usize;
        let length = left.min(MAX_SEGMENT_BYTES);
        let mut message = BytesMut::with_capacity(HEADER_LEN + length + Hash::LEN);
        message.put_u32(id);
        message.put_u64(index);
        message.put_u32(block_len);
        message.put_u32(offset);
        message.resize(HEADER_LEN + length, 0);
        fill(&mut message[HEADER_LEN..])?;
        hasher.update(&message[HEADER_LEN..]);
        if length == left {
            message.put_slice(hasher.finalize().as_bytes());
        }
        messages.push(message.freeze());
        offset += u32::try_from(length).expect("at most a segment");
    }
    Ok(BlockMessages { messages, hash: Hash(*hasher.finalize().as_bytes()) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages(content: &[u8]) -> BlockMessages {
        let mut rest = content;
        let length = u32::try_from(content.len()).expect("short");
        read_block(3, 1 << 40, length, |buffer| {
            let (now, later) = rest.split_at(buffer.len());
            buffer.copy_from_slice(now);
            rest = later;
            Ok::<_, ()>(())
        })
        .expect("it can be read")
    }

    #[test]
    fn a_block_comes_back_from_its_segments() {
        for length in [1, MAX_SEGMENT_BYTES, MAX_SEGMENT_BYTES + 1, BLOCK_BYTES as usize] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let block = messages(&content);
            assert_eq!(block.hash, Hash::of(&content));
            let mut again = vec![0; length];
            let mut ends = 0;
            for message in &block.messages {
                let segment = Segment::decode(message.clone()).expect("a segment");
                assert_eq!((segment.id, segment.index), (3, 1 << 40));
                assert_eq!(segment.block_len as usize, length);
                let at = segment.offset as usize;
                again[at..at + segment.content.len()].copy_from_slice(&segment.content);
                ends += usize::from(segment.hash == Some(block.hash));
            }
            assert_eq!((again, ends), (content, 1));
        }
    }

    #[test]
    fn lengths_that_do_not_agree_are_garbled() {
        let whole = messages(b"content").messages[0].to_vec();
        for length in 0..whole.len() {
            let cut = Segment::decode(Bytes::copy_from_slice(&whole[..length]));
            // Content that does not reach the end of its block is a segment, too; content with an incomplete hash is not.
            let short = length > HEADER_LEN && length < HEADER_LEN + 7;
            assert_eq!(cut.is_ok(), short, "{length}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(Segment::decode(longer.into()).is_err());
        let mut big = whole;
        big[12..16].copy_from_slice(&(BLOCK_BYTES + 1).to_be_bytes());
        assert!(Segment::decode(big.into()).is_err());
    }

    proptest! {
        #[test]
        fn a_segment_never_reaches_out_of_its_block(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(segment) = Segment::decode(bytes.into()) {
                let end = u64::from(segment.offset) + segment.content.len() as u64;
                prop_assert!(segment.block_len <= BLOCK_BYTES && end <= u64::from(segment.block_len));
                prop_assert_eq!(segment.hash.is_some(), end == u64::from(segment.block_len));
            }
        }
    }
}
