//! Applications at the two ends of a flow.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_core::time::{Rate, Span, Time, earliest};
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, Endpoint, Reliability, SendOptions,
};
use anabranch_sim::Application;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::run::beside::{Arrivals, BesideSource};
use crate::run::keys::{Keys, identifier_of, number_of};
use crate::run::payload;
use crate::run::recorder::PathRecorder;
use crate::run::video::{VideoSink, VideoSource};

/// Data that an end sends.
#[derive(Debug)]
pub(crate) enum Workload {
    /// The same message without end. Enough of them are queued that no window runs empty.
    Bulk { message: Bytes, keep_bytes: u64 },
    /// This content, once, in messages of this size.
    Transfer { content: Bytes, message_bytes: usize, sent: usize },
    /// A message at regular times.
    Messages {
        message: Bytes,
        interval: Span,
        left: Option<u64>,
        next: Option<Time>,
        streams: u16,
        ordered: bool,
        reliability: Reliability,
    },
    /// The frames of a trace at their times.
    Video(VideoSource),
}

/// Data that an end has received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    /// User bytes after the warm-up.
    pub(crate) counted_bytes: u64,
    pub(crate) messages: u64,
    pub(crate) last_at: Option<Time>,
    pub(crate) in_order: InOrder,
    /// Sum of the messages as a set.
    pub(crate) messages_sum: MessagesSum,
    /// Messages beside the bulk, with their stream.
    pub(crate) beside: Option<(u16, Arrivals)>,
}

/// Content that is read in order. It is hashed only after a difference from the sent content.
#[derive(Debug, Default)]
pub(crate) struct InOrder {
    agreed_bytes: usize,
    /// Hash of all data, after a difference.
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

/// Identifies a set of messages in any order, by the sum of their digests.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessagesSum {
    sum: u128,
    /// Messages of which a part has been read, by stream and kind.
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

    /// Returns the sum over content that was cut into messages of this size.
    fn of(content: &[u8], message_bytes: usize) -> u128 {
        let mut all = MessagesSum::default();
        content.chunks(message_bytes.max(1)).for_each(|message| all.piece(0, false, message, true));
        all.sum
    }
}

/// Data that an end has to receive.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    content: Bytes,
    message_bytes: usize,
    /// Set if messages arrive in the order in which they were sent.
    in_order: bool,
}

impl Expected {
    pub(crate) fn new(content: Bytes, message_bytes: usize, in_order: bool) -> Self {
        Expected { content, message_bytes, in_order }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns `true` if the data arrived as it was sent. Unordered messages are compared as a set.
    pub(crate) fn matches(&self, received: &Received) -> bool {
        if self.in_order {
            received.in_order.is(&self.content)
        } else {
            received.messages_sum.sum == MessagesSum::of(&self.content, self.message_bytes)
        }
    }

    /// Returns the digest of the received data, or that of the content if messages are unordered.
    pub(crate) fn digest(&self, received: &Received) -> [u8; 32] {
        if self.in_order { received.in_order.digest(&self.content) } else { payload::sha256(&self.content) }
    }
}

/// Parameters with which an end opens its association. The other end waits.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) pairs: Vec<(IpAddr, IpAddr)>,
    pub(crate) port: u16,
    pub(crate) config: AssociationConfig,
}

/// State of an end's association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Waiting,
    Open,
    Closed,
    Failed(anabranch_core::AbortReason),
}

pub(crate) struct End {
    pub(crate) connect: Option<Connect>,
    pub(crate) start: Time,
    pub(crate) source: Option<Workload>,
    pub(crate) beside: Option<BesideSource>,
    pub(crate) ordered: bool,
    pub(crate) streams: u16,
    pub(crate) reader: Option<Rate>,
    pub(crate) counted_from: Time,
    pub(crate) received: Received,
    pub(crate) status: Status,
    pub(crate) id: Option<AssociationId>,
    pub(crate) expected: Option<Expected>,
    pub(crate) video: Option<VideoSink>,
    pub(crate) recorder: Option<Rc<RefCell<PathRecorder>>>,
    /// Keys of an end whose packets are protected.
    pub(crate) keys: Option<Keys>,
    next_stream: u16,
    /// Set if unread data may have arrived.
    readable: bool,
    /// Set if the latest message did not fit into the send buffer.
    refused: bool,
    next_read: Option<Time>,
    buffer: Vec<u8>,
}

impl End {
    pub(crate) fn new(start: Time, counted_from: Time) -> Self {
        End {
            connect: None,
            start,
            source: None,
            beside: None,
            ordered: true,
            streams: 1,
            reader: None,
            counted_from,
            received: Received::default(),
            status: Status::Waiting,
            id: None,
            expected: None,
            video: None,
            recorder: None,
            keys: None,
            next_stream: 0,
            readable: false,
            refused: false,
            next_read: None,
            buffer: Vec::new(),
        }
    }

    /// Returns `true` if the end needs the content of messages, and not only their length.
    pub(crate) fn looks_at_content(&self) -> bool {
        self.keys.is_some() || self.expected.is_some() || self.received.beside.is_some()
    }

    /// Returns `true` if all expected data has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.expected.as_ref().is_none_or(|expected| self.received.bytes >= expected.bytes())
    }

    fn open(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now < self.start {
            return;
        }
        if let Some(connect) = self.connect.take() {
            // The endpoint was created for this association alone, so it has room for it.
            self.id = endpoint.connect(now, connect.port, &connect.pairs, connect.config).ok();
        }
    }

    fn send(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(id) = self.id.filter(|_| self.status == Status::Open) else { return };
        if self.source.is_none() && self.beside.is_none() {
            return;
        }
        let Some(association) = endpoint.association_mut(id) else { return };
        let mut options =
            SendOptions { stream: self.next_stream, unordered: !self.ordered, ..SendOptions::default() };
        match &mut self.source {
            Some(Workload::Bulk { message, keep_bytes }) => {
                while association.queued_bytes() < *keep_bytes {
                    if association.send_at(now, message.clone(), options).is_err() {
                        break;
                    }
                    options.stream = (options.stream + 1) % self.streams;
                }
            }
            Some(Workload::Transfer { content, message_bytes, sent }) => {
                while *sent < content.len() {
                    let end = content.len().min(*sent + *message_bytes);
                    if association.send_at(now, content.slice(*sent..end), options).is_err() {
                        break;
                    }
                    *sent = end;
                    options.stream = (options.stream + 1) % self.streams;
                }
                if *sent == content.len() {
                    association.shutdown(now);
                }
            }
            Some(Workload::Messages { message, interval, left, next, streams, ordered, reliability }) => {
                options.unordered = !*ordered;
                options.reliability = *reliability;
                self.refused = false;
                while next.is_some_and(|at| at <= now) && *left != Some(0) {
                    if association.send_at(now, message.clone(), options).is_err() {
                        self.refused = true;
                        break;
                    }
                    options.stream = (options.stream + 1) % *streams;
                    *next = next.map(|at| at + *interval);
                    *left = left.map(|n| n - 1);
                }
                if *left == Some(0) {
                    association.shutdown(now);
                }
            }
            Some(Workload::Video(video)) => {
                self.refused = false;
                while let Some(packet) = video.due(now) {
                    options.stream = packet.stream;
                    options.ppid =
                        if self.keys.is_some() { identifier_of(packet.number) } else { packet.number };
                    options.unordered = packet.unordered;
                    options.reliability = packet.reliability;
                    if association.send_at(now, packet.content, options).is_err() {
                        self.refused = true;
                        break;
                    }
                    video.advance();
                }
                if video.is_done() {
                    association.shutdown(now);
                }
            }
            None => {}
        }
        self.next_stream = options.stream;
        if let Some(beside) = &mut self.beside {
            beside.send(now, association);
        }
    }

    fn read(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(id) = self.id.filter(|_| self.readable) else { return };
        if self.next_read.is_some_and(|at| at > now) {
            return;
        }
        let Some(association) = endpoint.association_mut(id) else { return };
        self.next_read = None;
        let looks_at_content = self.looks_at_content();
        loop {
            self.buffer.clear();
            let buffer = &mut self.buffer;
            let piece =
                if looks_at_content { association.recv(buffer) } else { association.recv_with(|_| ()) };
            let Some(piece) = piece else {
                self.readable = false;
                break;
            };
            if let Some(keys) = &mut self.keys
                && keys.take(now, &piece, &self.buffer, association)
            {
                continue;
            }
            self.received.bytes += piece.bytes as u64;
            self.received.messages += u64::from(piece.ending);
            self.received.last_at = Some(now);
            if piece.ending
                && let Some(video) = &mut self.video
            {
                let number = if self.keys.is_some() { number_of(piece.ppid) } else { piece.ppid };
                video.arrived(now, number);
            }
            if now >= self.counted_from {
                self.received.counted_bytes += piece.bytes as u64;
            }
            if let Some((stream, arrivals)) = &mut self.received.beside
                && piece.stream == *stream
            {
                arrivals.see(now, &self.buffer);
            }
            match &self.expected {
                Some(expected) if expected.in_order => {
                    self.received.in_order.read(&expected.content, &self.buffer);
                }
                Some(_) => {
                    let sum = &mut self.received.messages_sum;
                    sum.piece(piece.stream, piece.unordered, &self.buffer, piece.ending);
                }
                None => {}
            }
            if let Some(rate) = self.reader {
                let (pause, _) = rate.serialise(piece.bytes as u64, 0);
                self.next_read = Some(now + pause);
                break;
            }
        }
    }

    fn next_message(&self) -> Option<Time> {
        match &self.source {
            // A send buffer that empties wakes the application, so there is no deadline while it is full.
            Some(Workload::Messages { next, left, .. })
                if *left != Some(0) && self.status == Status::Open && !self.refused =>
            {
                *next
            }
            Some(Workload::Video(video)) if self.status == Status::Open && !self.refused => video.next_at(),
            _ => None,
        }
    }
}

impl End {
    /// Starts the application, once the association is usable.
    fn opened(&mut self, now: Time) {
        self.status = Status::Open;
        match &mut self.source {
            Some(Workload::Messages { next, .. }) => {
                next.get_or_insert(now);
            }
            Some(Workload::Video(video)) => video.start(now),
            _ => {}
        }
        if let Some(beside) = &mut self.beside {
            beside.open(now);
        }
    }

    /// Handles the established association, which is usable once it has its keys.
    fn connected(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.keys.is_none() {
            self.opened(now);
        }
        self.begin_keys(now, endpoint);
    }

    /// Begins the key exchange as soon as the peer has answered the INIT, so that the COOKIE ECHO carries the first message.
    fn begin_keys(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(keys) = &mut self.keys
            && let Some(association) = self.id.and_then(|id| endpoint.association_mut(id))
        {
            keys.begin(now, association);
        }
    }

    fn advance_keys(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(keys) = &mut self.keys
            && let Some(association) = self.id.and_then(|id| endpoint.association_mut(id))
            && keys.advance(now, association)
        {
            self.opened(now);
        }
    }

    fn keys_due(&self) -> Option<Time> {
        let goes_on = matches!(self.status, Status::Waiting | Status::Open);
        self.keys.as_ref().filter(|_| goes_on).and_then(Keys::deadline)
    }
}

impl Application for End {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.open(now, endpoint);
        self.begin_keys(now, endpoint);
        self.read(now, endpoint);
        self.advance_keys(now, endpoint);
        self.send(now, endpoint);
    }

    fn drained(&mut self, now: Time, endpoint: &mut Endpoint) {
        let (Some(recorder), Some(id)) = (&self.recorder, self.id) else { return };
        if let Some(association) = endpoint.association_mut(id) {
            recorder.borrow_mut().sample(now, association);
        }
    }

    fn on_event(&mut self, now: Time, endpoint: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        match event {
            AssociationEvent::Connected => {
                self.id = Some(id);
                self.connected(now, endpoint);
            }
            AssociationEvent::Closed => self.status = Status::Closed,
            AssociationEvent::Aborted(reason) => self.status = Status::Failed(*reason),
            AssociationEvent::Readable => self.readable = true,
            // The next step sends.
            _ => {}
        }
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        let start = self.connect.as_ref().map(|_| self.start);
        let beside = self.beside.as_ref().filter(|_| self.status == Status::Open).and_then(BesideSource::due);
        earliest([start, self.next_read, self.next_message(), beside, self.keys_due()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_order_are_compared_as_a_set() {
        let expected = Expected::new(Bytes::from_static(b"aabbcc"), 2, false);
        let mut received = Received::default();
        for (stream, bytes, ending) in
            [(1, &b"cc"[..], true), (0, b"a", false), (1, b"bb", true), (0, b"a", true)]
        {
            received.messages_sum.piece(stream, false, bytes, ending);
        }
        assert!(expected.matches(&received));
        received.messages_sum.piece(0, false, b"aa", true);
        assert!(!expected.matches(&received));
    }

    #[test]
    fn messages_in_order_are_compared_as_one_content() {
        let content = b"aabbcc";
        let expected = Expected::new(Bytes::from_static(content), 2, true);
        let read = |pieces: &[&[u8]]| {
            let mut received = Received::default();
            pieces.iter().for_each(|piece| received.in_order.read(content, piece));
            assert_eq!(expected.digest(&received), <[u8; 32]>::from(Sha256::digest(pieces.concat())));
            expected.matches(&received)
        };
        assert!(read(&[b"aab", b"", b"bcc"]));
        assert!(!read(&[]));
        assert!(!read(&[b"aabb"]));
        assert!(!read(&[b"aabb", b"xx"]));
        assert!(!read(&[b"bb", b"aa", b"cc"]));
        assert!(!read(&[b"aa", b"bbccdd", b"ee"]));
    }
}
