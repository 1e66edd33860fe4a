//! Comparison of the data that an end receives with the data that its peer sends.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::run::{DeliveryFault, payload};

/// Data that an end is to receive, compared with the data that it has received.
#[derive(Clone, Debug)]
pub struct Expected {
    content: Bytes,
    message_bytes: usize,
    delivered_bytes: u64,
    comparison: Comparison,
}

#[derive(Clone, Debug)]
enum Comparison {
    InOrder(InOrder),
    AsSet(MessagesSum),
}

/// Part of a message that the application has read.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Stream of the message.
    pub stream: u16,
    /// Set if the message is unordered.
    pub unordered: bool,
    /// User data.
    pub bytes: &'a [u8],
    /// Set if the message ends here.
    pub ending: bool,
}

impl Expected {
    /// Describes content in messages of this size, which arrive in order or are compared as a set.
    pub fn new(content: Bytes, message_bytes: usize, in_order: bool) -> Self {
        let comparison = match in_order {
            true => Comparison::InOrder(InOrder::default()),
            false => Comparison::AsSet(MessagesSum::default()),
        };
        Expected { content, message_bytes, delivered_bytes: 0, comparison }
    }

    /// Removes the end of the content. Returns `false` if more than the rest was delivered.
    pub(crate) fn shorten(&mut self, bytes: usize) -> bool {
        self.content.truncate(bytes);
        self.delivered_bytes <= bytes as u64
    }

    /// Compares the next piece that the application has read.
    pub fn read(&mut self, piece: &Piece<'_>) {
        self.delivered_bytes += piece.bytes.len() as u64;
        match &mut self.comparison {
            Comparison::InOrder(in_order) => in_order.read(&self.content, piece.bytes),
            Comparison::AsSet(sum) => sum.piece(piece.stream, piece.unordered, piece.bytes, piece.ending),
        }
    }

    /// Returns `true` once as many bytes have been delivered as were sent.
    pub fn is_complete(&self) -> bool {
        self.delivered_bytes >= self.content.len() as u64
    }

    /// Returns `true` if the delivered data is the sent data.
    pub fn matches(&self) -> bool {
        match &self.comparison {
            Comparison::InOrder(in_order) => in_order.is(&self.content),
            Comparison::AsSet(sum) => sum.sum == MessagesSum::of(&self.content, self.message_bytes).sum,
        }
    }

    /// Returns the difference between delivered and sent data, if there is one.
    pub fn fault(&self) -> Option<DeliveryFault> {
        match self.is_complete() {
            false => Some(DeliveryFault::Unfinished { delivered_bytes: self.delivered_bytes }),
            true if self.matches() => None,
            true => Some(DeliveryFault::Different),
        }
    }

    /// Returns the SHA-256 of the delivered bytes, or of the content if messages are compared as a set.
    pub(crate) fn sha256(&self) -> [u8; 32] {
        match &self.comparison {
            Comparison::InOrder(in_order) => in_order.digest(&self.content),
            Comparison::AsSet(_) => payload::sha256(&self.content),
        }
    }
}

/// Comparison of bytes in their order. They are hashed only after a difference.
#[derive(Clone, Debug, Default)]
struct InOrder {
    agreed_bytes: usize,
    /// Hash of all bytes, after the first difference.
    differing: Option<Sha256>,
}

impl InOrder {
    fn read(&mut self, content: &[u8], bytes: &[u8]) {
        if let Some(hash) = &mut self.differing {
            hash.update(bytes);
            return;
        }
        let end = self.agreed_bytes + bytes.len();
        if content.get(self.agreed_bytes..end) == Some(bytes) {
            self.agreed_bytes = end;
        } else {
            let before = content.get(..self.agreed_bytes).unwrap_or_default();
            self.differing = Some(Sha256::new_with_prefix(before).chain_update(bytes));
        }
    }

    fn is(&self, content: &[u8]) -> bool {
        self.differing.is_none() && self.agreed_bytes == content.len()
    }

    fn digest(&self, content: &[u8]) -> [u8; 32] {
        match &self.differing {
            Some(hash) => hash.clone().finalize().into(),
            None => payload::sha256(content.get(..self.agreed_bytes).unwrap_or_default()),
        }
    }
}

/// Comparison of messages as a set, by the sum of their digests.
#[derive(Clone, Debug, Default)]
struct MessagesSum {
    sum: u128,
    /// Hashes of incomplete messages, by stream and `true` if they are unordered.
    begun: BTreeMap<(u16, bool), Sha256>,
}

impl MessagesSum {
    fn piece(&mut self, stream: u16, unordered: bool, bytes: &[u8], ending: bool) {
        let mut hash = self.begun.remove(&(stream, unordered)).unwrap_or_default();
        hash.update(bytes);
        if ending {
            let digest: [u8; 32] = hash.finalize().into();
            let half = digest.first_chunk::<16>().map_or(0, |half| u128::from_be_bytes(*half));
            self.sum = self.sum.wrapping_add(half);
        } else {
            self.begun.insert((stream, unordered), hash);
        }
    }

    /// Returns the sum for content that is cut into messages of this size.
    fn of(content: &[u8], message_bytes: usize) -> Self {
        let mut all = MessagesSum::default();
        content.chunks(message_bytes.max(1)).for_each(|message| all.piece(0, false, message, true));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(expected: &mut Expected, stream: u16, bytes: &[u8], ending: bool) {
        expected.read(&Piece { stream, unordered: false, bytes, ending });
    }

    #[test]
    fn messages_without_order_are_compared_as_a_set() {
        let mut expected = Expected::new(Bytes::from_static(b"aabbcc"), 2, false);
        read(&mut expected, 1, b"cc", true);
        read(&mut expected, 0, b"a", false);
        read(&mut expected, 1, b"bb", true);
        assert_eq!(expected.fault(), Some(DeliveryFault::Unfinished { delivered_bytes: 5 }));
        read(&mut expected, 0, b"a", true);
        assert_eq!(expected.fault(), None);
        read(&mut expected, 0, b"aa", true);
        assert_eq!(expected.fault(), Some(DeliveryFault::Different));
    }

    #[test]
    fn messages_in_order_are_compared_as_one_content() {
        let content = b"aabbcc";
        let fault = |pieces: &[&[u8]]| {
            let mut expected = Expected::new(Bytes::from_static(content), 2, true);
            pieces.iter().for_each(|piece| read(&mut expected, 0, piece, true));
            assert_eq!(expected.sha256(), <[u8; 32]>::from(Sha256::digest(pieces.concat())));
            expected.fault()
        };
        assert_eq!(fault(&[b"aab", b"", b"bcc"]), None);
        assert_eq!(fault(&[]), Some(DeliveryFault::Unfinished { delivered_bytes: 0 }));
        assert_eq!(fault(&[b"aabb"]), Some(DeliveryFault::Unfinished { delivered_bytes: 4 }));
        for other in [&[&b"aabb"[..], b"xx"][..], &[b"bb", b"aa", b"cc"], &[b"aa", b"bbccdd", b"ee"]] {
            assert_eq!(fault(other), Some(DeliveryFault::Different));
        }
    }
}
