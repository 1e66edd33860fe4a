//! What one side has sent, and the check that the other gets exactly that.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::{ReceivedMessage, SendOptions};
use bytes::Bytes;

use crate::dice::Dice;

/// A message that has not arrived.
#[derive(Clone, Debug)]
struct Sent {
    number: u32,
    payload: Bytes,
}

/// The messages of one direction.
#[derive(Debug, Default)]
pub struct Flow {
    first_ssn: u16,
    next_number: u32,
    ordered: BTreeMap<u16, VecDeque<Sent>>,
    next_ssn: BTreeMap<u16, u16>,
    unordered: BTreeMap<u32, (u16, Bytes)>,
    partial: BTreeMap<u16, Vec<u8>>,
    /// User bytes that arrived.
    pub delivered_bytes: u64,
    /// Whole messages that arrived.
    pub delivered_messages: u64,
}

impl Flow {
    /// Nothing sent yet; the sender numbers its ordered messages from `first_ssn`.
    pub fn new(first_ssn: u16) -> Self {
        Flow { first_ssn, ..Flow::default() }
    }

    /// The next message of this size; it counts as sent only when [`sent`](Self::sent) says so.
    pub fn draft(&self, size: usize, stream: u16, unordered: bool) -> (Bytes, SendOptions) {
        let seed = u64::from(self.next_number) * 0x1_0001 + u64::from(self.first_ssn);
        let payload = Bytes::from(Dice::new(seed).bytes(size));
        (payload, SendOptions { stream, ppid: self.next_number, unordered, ..SendOptions::default() })
    }

    /// The association has taken the message.
    pub fn sent(&mut self, payload: Bytes, options: SendOptions) {
        self.next_number = options.ppid + 1;
        if options.unordered {
            self.unordered.insert(options.ppid, (options.stream, payload));
        } else {
            let line = self.ordered.entry(options.stream).or_default();
            line.push_back(Sent { number: options.ppid, payload });
        }
    }

    /// Messages on their way.
    pub fn missing(&self) -> usize {
        self.unordered.len() + self.ordered.values().map(VecDeque::len).sum::<usize>()
    }

    /// Takes what the reader was given.
    ///
    /// # Panics
    /// If it is not what was sent, or not in its turn.
    pub fn received(&mut self, piece: &ReceivedMessage, bytes: &[u8]) {
        assert_eq!(piece.bytes, bytes.len(), "a piece says how long it is");
        assert!(!bytes.is_empty(), "no piece is empty");
        self.delivered_bytes += bytes.len() as u64;
        let begun = self.partial.remove(&piece.stream);
        assert_eq!(piece.beginning, begun.is_none(), "pieces of a message follow each other: {piece:?}");
        let mut message = begun.unwrap_or_default();
        message.extend_from_slice(bytes);
        if piece.unordered {
            self.check_unordered(piece, &message);
        } else {
            self.check_ordered(piece, &message);
        }
        if !piece.ending {
            self.partial.insert(piece.stream, message);
            return;
        }
        self.delivered_messages += 1;
        if piece.unordered {
            self.unordered.remove(&piece.ppid);
        } else {
            self.ordered.get_mut(&piece.stream).and_then(VecDeque::pop_front);
            let ssn = self.next_ssn.entry(piece.stream).or_insert(self.first_ssn);
            *ssn = ssn.wrapping_add(1);
        }
    }

    fn check_unordered(&self, piece: &ReceivedMessage, message: &[u8]) {
        let Some((stream, payload)) = self.unordered.get(&piece.ppid) else {
            panic!("an unordered message arrived that was not sent, or twice: {piece:?}");
        };
        assert_eq!(piece.stream, *stream, "the stream of an unordered message");
        check_bytes(piece, message, payload);
    }

    fn check_ordered(&self, piece: &ReceivedMessage, message: &[u8]) {
        let Some(next) = self.ordered.get(&piece.stream).and_then(VecDeque::front) else {
            panic!("an ordered message arrived that was not sent, or twice: {piece:?}");
        };
        assert_eq!(piece.ppid, next.number, "ordered messages arrive in order");
        let ssn = self.next_ssn.get(&piece.stream).copied().unwrap_or(self.first_ssn);
        assert_eq!(piece.ssn, ssn, "stream sequence numbers count messages");
        check_bytes(piece, message, &next.payload);
    }
}

fn check_bytes(piece: &ReceivedMessage, message: &[u8], payload: &Bytes) {
    if piece.ending {
        assert!(message == &payload[..], "a message arrived changed: {piece:?}");
    } else {
        assert!(
            payload.starts_with(message) && message.len() < payload.len(),
            "a part arrived changed: {piece:?}"
        );
    }
}
