//! Applications at the two ends of a flow.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_core::time::{Rate, Span, Time, earliest};
use anabranch_core::{
    Association, AssociationConfig, AssociationEvent, AssociationId, Endpoint, PathCost, PathId, Reliability,
    SendOptions,
};
use anabranch_sim::Application;
use bytes::Bytes;

use crate::run::address::place_of;
use crate::run::beside::{Arrivals, BesideSource};
use crate::run::expected::{Expected, Piece};
use crate::run::forwarding::Programs;
use crate::run::keys::{Keys, identifier_of, number_of};
use crate::run::mobility::Moves;
use crate::run::recorder::PathRecorder;
use crate::run::video::{VideoSink, VideoSource};

/// Workload of a sending end, with its progress.
#[derive(Debug)]
pub(crate) enum Source {
    /// The queue is kept full enough that data always waits when a window opens.
    Bulk {
        message: Bytes,
        keep_bytes: u64,
    },
    Transfer(Progress),
    Messages {
        message: Bytes,
        interval: Span,
        left: Option<u64>,
        next: Option<Time>,
        reliability: Reliability,
    },
    Video(VideoSource),
    Forward(Programs),
}

/// Content that an end sends in messages of one size, and the part that it has handed over.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) content: Bytes,
    pub(crate) message_bytes: usize,
    /// Bytes handed over so far.
    pub(crate) sent: usize,
}

impl Progress {
    /// Returns the bytes that are in chunks, or, if the send buffer is limited, that were handed over: a longer content makes no
    /// difference before this position.
    pub(crate) fn position(&self, association: &Association) -> u64 {
        let is_unlimited = association.association_facts().send_buffer_limit.is_none();
        let waiting = if self.is_handed_over() && is_unlimited { association.queued_bytes() } else { 0 };
        self.sent as u64 - waiting
    }

    /// Returns the position of the last message of a content of this length.
    pub(crate) fn last_message(&self, bytes: u64) -> u64 {
        let message_bytes = self.message_bytes as u64;
        bytes.saturating_sub(1) / message_bytes * message_bytes
    }

    fn is_handed_over(&self) -> bool {
        self.sent == self.content.len()
    }

    /// Removes the end of the content, also from the queue of the association. Returns `false` if a part of it was sent.
    fn shorten(&mut self, association: &mut Association, bytes: usize) -> bool {
        let Some(rest) = self.content.len().checked_sub(bytes) else { return false };
        if self.is_handed_over() {
            if !association.forget_last(rest as u64) {
                return false;
            }
            self.sent = bytes;
        }
        self.content.truncate(bytes);
        self.sent <= bytes
    }
}

/// Data that an end has received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    /// User bytes after the warm-up.
    pub(crate) counted_bytes: u64,
    pub(crate) messages: u64,
    pub(crate) last_at: Option<Time>,
    /// Messages beside the bulk, with their stream.
    pub(crate) beside: Option<(u16, Arrivals)>,
}

/// Parameters with which an end opens its association. The other end accepts.
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
    pub(crate) source: Option<Source>,
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
    /// Addresses that change by handovers.
    pub(crate) moves: Moves,
    /// Costs of local addresses.
    pub(crate) costs: Vec<(IpAddr, PathCost)>,
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
            moves: Moves::default(),
            costs: Vec::new(),
            next_stream: 0,
            readable: false,
            refused: false,
            next_read: None,
            buffer: Vec::new(),
        }
    }

    /// Returns `true` if the end needs the content of messages, and not only their length.
    pub(crate) fn needs_content(&self) -> bool {
        self.keys.is_some() || self.expected.is_some() || self.received.beside.is_some()
    }

    /// Shortens the transfer that this end sends or expects. Returns `false` if the end has state of a longer one.
    pub(crate) fn shorten(&mut self, endpoint: &mut Endpoint, bytes: u64) -> bool {
        if let Some(expected) = &mut self.expected
            && !expected.shorten(bytes as usize)
        {
            return false;
        }
        let Some(Source::Transfer(progress)) = &mut self.source else { return self.source.is_none() };
        let association = self.id.and_then(|id| endpoint.association_mut(id));
        association.is_some_and(|association| progress.shorten(association, bytes as usize))
    }

    /// Returns `true` once the data that this end expects has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.expected.as_ref().is_none_or(Expected::is_complete)
    }

    fn open(&mut self, now: Time, endpoint: &mut Endpoint) {
        if now < self.start {
            return;
        }
        if let Some(connect) = self.connect.take() {
            // The endpoint was created for this association alone, so it accepts the association.
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
            Some(Source::Bulk { message, keep_bytes }) => {
                while association.queued_bytes() < *keep_bytes {
                    if association.send_at(now, message.clone(), options).is_err() {
                        break;
                    }
                    options.stream = (options.stream + 1) % self.streams;
                }
            }
            Some(Source::Transfer(progress)) => {
                while !progress.is_handed_over() {
                    let Progress { content, message_bytes, sent } = progress;
                    let end = content.len().min(*sent + *message_bytes);
                    if association.send_at(now, content.slice(*sent..end), options).is_err() {
                        break;
                    }
                    *sent = end;
                    options.stream = (options.stream + 1) % self.streams;
                }
                if progress.is_handed_over() {
                    association.shutdown(now);
                }
            }
            Some(Source::Messages { message, interval, left, next, reliability }) => {
                options.reliability = *reliability;
                self.refused = false;
                while next.is_some_and(|at| at <= now) && *left != Some(0) {
                    if association.send_at(now, message.clone(), options).is_err() {
                        self.refused = true;
                        break;
                    }
                    options.stream = (options.stream + 1) % self.streams;
                    *next = next.map(|at| at + *interval);
                    *left = left.map(|n| n - 1);
                }
                if *left == Some(0) {
                    association.shutdown(now);
                }
            }
            Some(Source::Video(video)) => {
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
            Some(Source::Forward(programs)) => {
                let is_protected = self.keys.is_some();
                let identify = |number| if is_protected { identifier_of(number) } else { number };
                programs.send(now, association, identify);
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
        let needs_content = self.needs_content();
        loop {
            self.buffer.clear();
            let buffer = &mut self.buffer;
            let piece = if needs_content { association.recv(buffer) } else { association.recv_with(|_| ()) };
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
            if let Some(Source::Forward(programs)) = &mut self.source {
                let number = if self.keys.is_some() { number_of(piece.ppid) } else { piece.ppid };
                programs.receive(now, now >= self.counted_from, &piece, number);
            }
            if now >= self.counted_from {
                self.received.counted_bytes += piece.bytes as u64;
            }
            if let Some((stream, arrivals)) = &mut self.received.beside
                && piece.stream == *stream
            {
                arrivals.see(now, &self.buffer);
            }
            if let Some(expected) = &mut self.expected {
                let (stream, unordered, ending) = (piece.stream, piece.unordered, piece.ending);
                expected.read(&Piece { stream, unordered, bytes: &self.buffer, ending });
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
            Some(Source::Messages { next, left, .. })
                if *left != Some(0) && self.status == Status::Open && !self.refused =>
            {
                *next
            }
            Some(Source::Video(video)) if self.status == Status::Open && !self.refused => video.next_at(),
            Some(Source::Forward(programs)) if self.status == Status::Open => programs.next_at(),
            _ => None,
        }
    }
}

impl End {
    /// Starts the application, once the association is usable.
    fn opened(&mut self, now: Time) {
        self.status = Status::Open;
        match &mut self.source {
            Some(Source::Messages { next, .. }) => {
                next.get_or_insert(now);
            }
            Some(Source::Video(video)) => video.start(now),
            Some(Source::Forward(programs)) => programs.open(now),
            _ => {}
        }
        if let Some(beside) = &mut self.beside {
            beside.open(now);
        }
    }

    /// Handles the established association, which is usable once it has its keys.
    fn connected(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) {
            for (address, cost) in self.costs.drain(..) {
                association.set_local_cost(now, address, cost);
            }
        }
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

    /// Names a path of an association that a handover has added, in the trace.
    fn name_path(&self, endpoint: &Endpoint, id: AssociationId, path: PathId) {
        let address = endpoint.association(id).and_then(|association| association.path_address(path));
        let place = address.and_then(|address| place_of(address.local));
        if let (Some(recorder), Some((_, index, _))) = (&self.recorder, place) {
            recorder.borrow_mut().name_path(path, index);
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
        let continues = matches!(self.status, Status::Waiting | Status::Open);
        self.keys.as_ref().filter(|_| continues).and_then(Keys::deadline)
    }
}

impl Application for End {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.open(now, endpoint);
        self.moves.advance(now, endpoint, self.id);
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
            AssociationEvent::PathAdded { path } => self.name_path(endpoint, id, *path),
            // The next step of the host sends the packets.
            _ => {}
        }
    }

    /// Returns a copy of an end that receives or sends a transfer and writes no trace.
    fn copied(&self) -> Option<Self> {
        let source = match &self.source {
            None => None,
            Some(Source::Transfer(progress)) => Some(Source::Transfer(progress.clone())),
            Some(_) => return None,
        };
        let whole = self.recorder.is_some() || self.keys.is_some() || self.video.is_some();
        if whole || self.beside.is_some() || self.connect.is_some() {
            return None;
        }
        Some(End {
            source,
            ordered: self.ordered,
            streams: self.streams,
            reader: self.reader,
            received: self.received.clone(),
            status: self.status,
            id: self.id,
            expected: self.expected.clone(),
            moves: self.moves.clone(),
            costs: self.costs.clone(),
            next_stream: self.next_stream,
            readable: self.readable,
            refused: self.refused,
            next_read: self.next_read,
            ..End::new(self.start, self.counted_from)
        })
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        let start = self.connect.as_ref().map(|_| self.start);
        let beside = self.beside.as_ref().filter(|_| self.status == Status::Open).and_then(BesideSource::due);
        earliest([start, self.next_read, self.next_message(), beside, self.keys_due(), self.moves.due()])
    }
}
