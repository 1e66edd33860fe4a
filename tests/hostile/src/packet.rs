//! Data that a peer sends: control messages, segments, and bytes that are neither.

use anabranch_transfer::Hash;
use anabranch_transfer::PeerText;
use anabranch_transfer::protocol::{
    CONTROL_STREAM, DATA_STREAM, Failure, MAX_SEGMENT_BYTES, Message, Reason, Segment,
};
use bytes::{BufMut, Bytes, BytesMut};

/// A message of the association before its transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Stream of the message.
    pub stream: u16,
    /// Set if it is delivered unordered.
    pub unordered: bool,
    /// Payload; never empty, which SCTP cannot carry.
    pub bytes: Bytes,
}

impl Packet {
    /// Returns a control message on its stream.
    pub fn control(message: &Message) -> Self {
        Packet::raw(CONTROL_STREAM, message.encode())
    }

    /// Returns a segment, even if its lengths disagree. [`Segment::decode`] is the inverse if they agree.
    pub fn segment(segment: &Segment) -> Self {
        let mut bytes = BytesMut::with_capacity(20 + segment.content.len() + Hash::LEN);
        bytes.put_u32(segment.id);
        bytes.put_u64(segment.index);
        bytes.put_u32(segment.block_len);
        bytes.put_u32(segment.offset);
        bytes.put_slice(&segment.content);
        if let Some(hash) = segment.hash {
            bytes.put_slice(&hash.0);
        }
        Packet { stream: DATA_STREAM, unordered: true, bytes: bytes.freeze() }
    }

    /// Returns any bytes on any stream, in order.
    pub fn raw(stream: u16, bytes: impl Into<Bytes>) -> Self {
        Packet { stream, unordered: false, bytes: bytes.into() }
    }
}

/// Returns the segments of a block with any hash. A part of them is an incomplete block.
///
/// # Panics
/// Panics if the block is longer than 4 GiB.
pub fn block(id: u32, index: u64, content: &[u8], hash: Hash) -> Vec<Packet> {
    let block_len = u32::try_from(content.len()).expect("a block is short");
    let pieces = content.len().div_ceil(MAX_SEGMENT_BYTES);
    let segment = |(at, piece): (usize, &[u8])| {
        Packet::segment(&Segment {
            id,
            index,
            block_len,
            offset: u32::try_from(at * MAX_SEGMENT_BYTES).expect("below the length"),
            content: Bytes::copy_from_slice(piece),
            hash: (at + 1 == pieces).then_some(hash),
        })
    };
    content.chunks(MAX_SEGMENT_BYTES).enumerate().map(segment).collect()
}

/// Returns the root of a file with blocks of these hashes, computed independently of the tested code.
pub fn root(blocks: impl IntoIterator<Item = Hash>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for block in blocks {
        hasher.update(&block.0);
    }
    Hash(*hasher.finalize().as_bytes())
}

/// Returns a text unescaped. Other code cannot access it, so that a terminal never gets control sequences; a test compares it with
/// names of files.
pub(crate) fn raw(text: PeerText) -> String {
    // The variant, the reason, and the length in groups of seven bits precede it.
    let bytes = Message::Fail(Failure { reason: Reason::Clash, text }).encode();
    let length = bytes[2..].iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    String::from_utf8(bytes[2 + length..].to_vec()).expect("a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_back_unchanged() {
        for text in ["", "a", "\x1b[2J\u{202e}", &"é".repeat(2000)] {
            assert_eq!(raw(text.into()), text);
        }
    }

    #[test]
    fn the_segments_of_a_block_are_what_the_protocol_reads() {
        let content = vec![7; MAX_SEGMENT_BYTES + 5];
        let packets = block(3, 1 << 40, &content, Hash::of(&content));
        let read: Vec<Segment> =
            packets.iter().map(|packet| Segment::decode(packet.bytes.clone()).expect("a segment")).collect();
        assert_eq!(read.iter().map(|segment| segment.content.len()).sum::<usize>(), content.len());
        assert_eq!(read.last().and_then(|segment| segment.hash), Some(Hash::of(&content)));
        assert!(read.iter().all(|segment| (segment.id, segment.index) == (3, 1 << 40)));
        assert_eq!(read.iter().map(Packet::segment).collect::<Vec<_>>(), packets);
    }
}
