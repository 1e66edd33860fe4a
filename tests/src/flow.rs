//! Messages of one side, and the check that the other side gets exactly these. Messages with a limit may be missing, but only
//! completely, without blocking later ones, and only if the sender has reported that it abandoned them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_core::{AbandonCause, ReceivedMessage, Reliability, SendOptions};
use bytes::Bytes;

use crate::dice::Dice;

/// Mark in every message, which reveals a packet with readable content.
pub const MARK: [u8; 8] = *b"LEGIBLE:";

/// Distance of marks in bytes: each part of a message of some length that a packet carries contains one.
const MARK_EVERY: usize = 64;

/// Number of streams that tests use at most.
const MOST_STREAMS: u16 = 16;

/// A message that has not arrived.
#[derive(Clone, Debug)]
struct Sent {
    number: u32,
    payload: Bytes,
    limited: bool,
    /// Set if the sender has reported it as abandoned.
    abandoned: bool,
}

/// A message of which a part has arrived.
#[derive(Clone, Debug)]
struct Begun {
    number: u32,
    unordered: bool,
    bytes: Vec<u8>,
}

/// Messages of one direction.
#[derive(Debug, Default)]
pub struct Flow {
    first_ssn: u16,
    next_number: u32,
    ordered: BTreeMap<u16, VecDeque<Sent>>,
    next_ssn: BTreeMap<u16, u16>,
    /// Number of resets of each stream, less those after which a message with a number of the new sequence was read.
    resets: BTreeMap<u16, u32>,
    unordered: BTreeMap<u32, (u16, Sent)>,
    partial: BTreeMap<u16, Begun>,
    /// Messages that were skipped before the sender reported them as abandoned.
    passed: BTreeSet<u32>,
    /// User bytes that arrived.
    pub delivered_bytes: u64,
    /// Whole messages that arrived.
    pub delivered_messages: u64,
    /// Messages that the sender abandoned.
    pub abandoned_messages: u64,
    /// Abandoned messages that arrived nevertheless.
    pub abandoned_and_delivered: u64,
}

impl Flow {
    /// Returns a flow without messages. The sender numbers its ordered messages from `first_ssn`.
    pub fn new(first_ssn: u16) -> Self {
        Flow { first_ssn, ..Flow::default() }
    }

    /// Returns the next message of this size. The message counts as sent after a call of [`sent`](Self::sent).
    pub fn draft(&self, size: usize, stream: u16, unordered: bool) -> (Bytes, SendOptions) {
        let seed = u64::from(self.next_number) * 0x1_0001 + u64::from(self.first_ssn);
        let mut payload = Dice::new(seed).bytes(size);
        for piece in payload.chunks_mut(MARK_EVERY) {
            let length = piece.len().min(MARK.len());
            piece[..length].copy_from_slice(&MARK[..length]);
        }
        (Bytes::from(payload), self.options(stream, unordered))
    }

    /// Returns the options of the next message. The number of the message is its payload protocol identifier and its context.
    fn options(&self, stream: u16, unordered: bool) -> SendOptions {
        let context = u64::from(self.next_number);
        SendOptions { stream, ppid: self.next_number, unordered, context, ..SendOptions::default() }
    }

    /// Records that the association has accepted the message.
    pub fn sent(&mut self, payload: Bytes, options: SendOptions) {
        self.next_number = options.ppid + 1;
        let limited = options.reliability != Reliability::Full;
        let sent = Sent { number: options.ppid, payload, limited, abandoned: false };
        if options.unordered {
            self.unordered.insert(options.ppid, (options.stream, sent));
        } else {
            self.ordered.entry(options.stream).or_default().push_back(sent);
        }
    }

    /// Records that the sender has reported a message as abandoned.
    ///
    /// # Panics
    /// Panics if the message has no limit although the peer supports its stream, or was reported before.
    pub fn abandoned(&mut self, stream: u16, context: u64, cause: AbandonCause) {
        self.abandoned_messages += 1;
        let number = u32::try_from(context).expect("the number that it was sent with");
        assert!(number < self.next_number, "message {number} was never sent");
        if self.passed.remove(&number) {
            return;
        }
        let unordered = self.unordered.values_mut().map(|(_, sent)| sent);
        let in_order = self.ordered.get_mut(&stream).into_iter().flatten();
        let Some(sent) = unordered.chain(in_order).find(|sent| sent.number == number) else {
            self.abandoned_and_delivered += 1;
            return;
        };
        let may_be = sent.limited || cause == AbandonCause::Streams;
        assert!(may_be, "message {number} is fully reliable, but was abandoned");
        assert!(!std::mem::replace(&mut sent.abandoned, true), "message {number} was abandoned twice");
    }

    /// Returns the number of messages on their way, without abandoned ones.
    pub fn missing(&self) -> usize {
        let unordered = self.unordered.values().map(|(_, sent)| sent);
        unordered.chain(self.ordered.values().flatten()).filter(|sent| !sent.abandoned).count()
    }

    /// Returns the number of messages that were skipped although the sender has not reported them.
    pub fn passed_without_a_word(&self) -> usize {
        self.passed.len()
    }

    /// Records that the receiver has reset these streams; no stream means all.
    pub fn reset(&mut self, streams: &[u16]) {
        let all = if streams.is_empty() { MOST_STREAMS } else { 0 };
        for stream in (0..all).chain(streams.iter().copied()) {
            *self.resets.entry(stream).or_default() += 1;
        }
    }

    /// Processes a message of the key management, which uses a sequence number of its stream.
    pub fn passed_key_management(&mut self, piece: &ReceivedMessage) {
        if piece.ending {
            self.next_ssn.insert(piece.stream, piece.ssn.wrapping_add(1));
        }
    }

    /// Processes data of the reader.
    ///
    /// # Panics
    /// Panics if the data differs from the sent data, or is out of order.
    pub fn received(&mut self, piece: &ReceivedMessage, bytes: &[u8]) {
        assert_eq!(piece.bytes, bytes.len(), "a piece says how long it is");
        assert!(!bytes.is_empty(), "no piece is empty");
        self.delivered_bytes += bytes.len() as u64;
        let message = self.joined(piece, bytes);
        if piece.unordered {
            self.check_unordered(piece, &message);
        } else {
            self.pass_over(piece);
            self.check_ordered(piece, &message);
        }
        if !piece.ending {
            let begun = Begun { number: piece.ppid, unordered: piece.unordered, bytes: message };
            self.partial.insert(piece.stream, begun);
            return;
        }
        self.delivered_messages += 1;
        if piece.unordered {
            let taken = self.unordered.remove(&piece.ppid);
            self.abandoned_and_delivered += u64::from(taken.is_some_and(|(_, sent)| sent.abandoned));
        } else {
            let taken = self.ordered.get_mut(&piece.stream).and_then(VecDeque::pop_front);
            self.abandoned_and_delivered += u64::from(taken.is_some_and(|sent| sent.abandoned));
            self.next_ssn.insert(piece.stream, piece.ssn.wrapping_add(1));
        }
    }

    /// Appends to the received part of a message. A message that began and does not continue was abandoned.
    fn joined(&mut self, piece: &ReceivedMessage, bytes: &[u8]) -> Vec<u8> {
        let begun = self.partial.remove(&piece.stream);
        let mut message = match begun {
            Some(begun) if piece.beginning => {
                assert!(
                    self.is_limited(piece.stream, &begun),
                    "pieces of a message follow each other: {piece:?}"
                );
                Vec::new()
            }
            Some(begun) => {
                assert_eq!((begun.number, begun.unordered), (piece.ppid, piece.unordered), "of one message");
                begun.bytes
            }
            None => {
                assert!(piece.beginning, "a message begins at its beginning: {piece:?}");
                Vec::new()
            }
        };
        message.extend_from_slice(bytes);
        message
    }

    fn is_limited(&self, stream: u16, begun: &Begun) -> bool {
        let unordered = self.unordered.values().map(|(_, sent)| sent);
        let in_order = self.ordered.get(&stream).into_iter().flatten();
        unordered.chain(in_order).find(|sent| sent.number == begun.number).is_some_and(|sent| sent.limited)
    }

    /// Removes the messages that a later one of their stream has overtaken. All skipped messages must have a limit.
    fn pass_over(&mut self, piece: &ReceivedMessage) {
        let first = self.next_ssn.get(&piece.stream).copied().unwrap_or(self.first_ssn);
        let line = self.ordered.entry(piece.stream).or_default();
        let mut passed = 0;
        while let Some(sent) = line.pop_front_if(|sent| sent.number < piece.ppid && sent.limited) {
            passed += 1;
            if !sent.abandoned {
                self.passed.insert(sent.number);
            }
        }
        // A message that was abandoned before it got a TSN has no number in its stream.
        let skipped = piece.ssn.wrapping_sub(first);
        if skipped > passed && piece.ssn <= passed && self.take_reset(piece.stream) {
            self.next_ssn.insert(piece.stream, piece.ssn);
            return;
        }
        assert!(
            skipped <= passed,
            "stream sequence numbers count messages: {skipped} for {passed} before {piece:?}"
        );
        self.next_ssn.insert(piece.stream, piece.ssn);
    }

    /// Returns `true` if the stream was reset before this message and after the previous one.
    fn take_reset(&mut self, stream: u16) -> bool {
        let left = self.resets.get_mut(&stream).filter(|resets| **resets > 0);
        left.is_some_and(|resets| {
            *resets -= 1;
            true
        })
    }

    fn check_unordered(&self, piece: &ReceivedMessage, message: &[u8]) {
        let Some((stream, sent)) = self.unordered.get(&piece.ppid) else {
            panic!("an unordered message arrived that was not sent, or twice: {piece:?}");
        };
        assert_eq!(piece.stream, *stream, "the stream of an unordered message");
        check_bytes(piece, message, &sent.payload);
    }

    fn check_ordered(&self, piece: &ReceivedMessage, message: &[u8]) {
        let Some(next) = self.ordered.get(&piece.stream).and_then(VecDeque::front) else {
            panic!("an ordered message arrived that was not sent, or twice: {piece:?}");
        };
        assert_eq!(piece.ppid, next.number, "ordered messages arrive in order");
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
