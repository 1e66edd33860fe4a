//! Streams of an association: which are open, what their readers have not taken, and what their writers may send.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU16;
use std::task::{Context, Poll, Waker};

use anabranch_core::DEFAULT_STREAM_PRIORITY;

use super::control::{Ahead, InOrder};
use super::credit::{LARGEST_WINDOW, Overdrawn, RecvCredit, SendCredit};
use crate::message::Message;

/// Unread bytes of all streams from which on nothing more is read from the endpoint. The peer's window then closes.
pub(crate) const UNREAD_LIMIT: usize = 16 << 20;

/// Unread bytes of one stream after which the rest of it is discarded, if the peer does not control streams.
const STALLED_LIMIT: u64 = LARGEST_WINDOW;

/// One use of a stream identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamKey {
    pub(crate) stream: u16,
    /// Number of earlier uses of the identifier.
    pub(crate) incarnation: u32,
    /// Number of restarts of the peer before it.
    restarts: u32,
}

/// Violation of stream control by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// It began a message without credit.
    Overdrawn,
    /// It opened a stream that only this side opens, or one that this side still uses.
    NotItsStream,
    /// It sent a control message that cannot be read, or for a stream that does not exist.
    Malformed,
}

impl Violation {
    /// Returns the description for the peer.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Violation::Overdrawn => "message of a stream without credit",
            Violation::NotItsStream => "message of a stream that the peer may not open",
            Violation::Malformed => "malformed message of stream control",
        }
    }
}

impl From<Overdrawn> for Violation {
    fn from(_: Overdrawn) -> Self {
        Violation::Overdrawn
    }
}

/// Means of the peer to end streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StreamPeer {
    /// Credit, ends and resets in control messages.
    Controls,
    /// Resets of stream sequence numbers (RFC 6525).
    Resets,
    /// The end of the association only.
    #[default]
    Neither,
}

/// End of the receiving half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvEnd {
    /// The peer finished it.
    Finished,
    /// The peer gave it up.
    Reset { code: u32 },
    /// The reader was too slow for a peer that does not control streams.
    Stalled,
    /// The peer restarted.
    Restarted,
}

/// End of the sending half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEnd {
    /// The peer reads no more.
    Stopped { code: u32 },
    /// This side has ended it.
    Ended,
    /// The peer restarted.
    Restarted,
}

/// Messages of one incarnation that were not read.
#[derive(Debug)]
struct Inbox {
    incarnation: u32,
    messages: VecDeque<Message>,
    end: Option<RecvEnd>,
    /// Set once it has no reader.
    discards: bool,
    reader: Option<Waker>,
}

impl Inbox {
    fn new(incarnation: u32) -> Self {
        Inbox { incarnation, messages: VecDeque::new(), end: None, discards: false, reader: None }
    }

    fn finish(&mut self, end: RecvEnd) {
        self.end.get_or_insert(end);
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}

/// Stream identifier, in both directions.
#[derive(Debug)]
struct Channel {
    /// Number of incarnations that were opened, by either side.
    opened: u32,
    /// Number of incarnations that this side has ended.
    sent: u32,
    /// Number of incarnations that the peer has ended.
    received: u32,
    send_credit: SendCredit,
    recv_credit: RecvCredit,
    /// Code with which the peer stopped the current incarnation.
    stopped: Option<u32>,
    writer: Option<Waker>,
    /// Current incarnation, and earlier ones with unread messages.
    inboxes: VecDeque<Inbox>,
}

impl Channel {
    fn new(credit: SendCredit) -> Self {
        Channel {
            opened: 0,
            sent: 0,
            received: 0,
            send_credit: credit,
            recv_credit: RecvCredit::new(),
            stopped: None,
            writer: None,
            inboxes: VecDeque::new(),
        }
    }

    /// Returns `true` if neither side uses the identifier.
    fn is_idle(&self) -> bool {
        self.opened == self.sent && self.opened == self.received
    }

    fn open(&mut self) -> u32 {
        let incarnation = self.opened;
        self.opened += 1;
        self.stopped = None;
        self.inboxes.push_back(Inbox::new(incarnation));
        incarnation
    }

    fn inbox(&mut self, incarnation: u32) -> Option<&mut Inbox> {
        self.inboxes.iter_mut().find(|inbox| inbox.incarnation == incarnation)
    }

    fn wake(&mut self) {
        let readers = self.inboxes.iter_mut().filter_map(|inbox| inbox.reader.take());
        readers.chain(self.writer.take()).for_each(Waker::wake);
    }
}

/// Streams of an association whose application uses stream handles.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    peer: StreamPeer,
    /// Set if this side opens streams with even identifiers.
    even: bool,
    /// Number of streams that exist in both directions.
    streams: u16,
    restarts: u32,
    channels: BTreeMap<u16, Channel>,
    /// Streams that the peer has opened and the application has not accepted.
    arrived: VecDeque<StreamKey>,
    ahead: VecDeque<Ahead>,
    /// Outgoing streams to reset, and incoming ones whose reset is to be requested (RFC 6525).
    resets: [BTreeSet<u16>; 2],
    /// Priorities that the endpoint has not got yet.
    priorities: BTreeMap<u16, NonZeroU16>,
    /// Streams whose priority may differ from that of a new one.
    prioritised: BTreeSet<u16>,
    /// Set if a stream was opened by the peer, or ended, since the last look.
    changed: bool,
    /// Unread bytes of all streams.
    unread: usize,
    /// Bytes by which the windows of all streams exceed their first ones. Idle streams keep their windows: their credit was reported.
    grown: u64,
}

/// Beginning and end of the association.
impl StreamTable {
    /// Sets what the handshake has agreed on.
    pub(crate) fn begin(&mut self, peer: StreamPeer, even: bool, streams: u16) {
        (self.peer, self.even, self.streams) = (peer, even, streams);
    }

    /// Ends all streams, because the peer has lost their state.
    pub(crate) fn restart(&mut self) {
        self.wake_all();
        self.restarts += 1;
        self.channels.clear();
        self.arrived.clear();
        self.ahead.clear();
        self.resets = Default::default();
        self.unread = 0;
        self.grown = 0;
    }

    /// Wakes all readers and writers, so that they look at the state of the association.
    pub(crate) fn wake_all(&mut self) {
        self.channels.values_mut().for_each(Channel::wake);
    }

    pub(crate) fn is_controlled(&self) -> bool {
        self.peer == StreamPeer::Controls
    }

    /// Returns `true` if the peer can be told the ends of streams, which markers among the messages stand for.
    pub(crate) fn has_markers(&self) -> bool {
        self.peer != StreamPeer::Neither
    }

    /// Returns the means of the peer to end streams.
    pub(crate) fn peer(&self) -> StreamPeer {
        self.peer
    }

    /// Returns `true` while the reset of an outgoing stream was not requested.
    pub(crate) fn awaits_reset(&self, stream: u16) -> bool {
        self.resets[0].contains(&stream)
    }

    /// Lets an outgoing stream be reset, whose messages have all been sent.
    pub(crate) fn reset_outgoing(&mut self, stream: u16) {
        self.resets[0].insert(stream);
    }

    fn request_reset(&mut self, stream: u16) {
        if self.peer == StreamPeer::Resets {
            self.resets[1].insert(stream);
        }
    }

    /// Removes the outgoing streams to reset, and the incoming ones whose reset is to be requested.
    pub(crate) fn take_resets(&mut self) -> [BTreeSet<u16>; 2] {
        std::mem::take(&mut self.resets)
    }

    /// Returns `true` if [`take_resets`](Self::take_resets) returns a stream.
    pub(crate) fn has_resets(&self) -> bool {
        self.resets.iter().any(|streams| !streams.is_empty())
    }

    /// Restores streams of [`take_resets`](Self::take_resets) that must wait.
    pub(crate) fn restore_resets(&mut self, streams: [BTreeSet<u16>; 2]) {
        self.resets.iter_mut().zip(streams).for_each(|(all, streams)| all.extend(streams));
    }

    /// Handles the reset of incoming streams by the peer, of all if none is named. All their messages were delivered.
    pub(crate) fn reset_by_peer(&mut self, streams: &[u16]) {
        let in_use = |(stream, channel): (&u16, &Channel)| {
            let named = streams.is_empty() || streams.contains(stream);
            (named && channel.opened > channel.received).then_some(*stream)
        };
        let ended: Vec<u16> = self.channels.iter().filter_map(in_use).collect();
        for stream in ended {
            self.end_receiving(stream, RecvEnd::Finished);
        }
    }

    /// Returns the unread bytes of all streams.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Removes the next reports to the peer, as many as fit a message of this length.
    pub(crate) fn take_reports(&mut self, most_bytes: usize) -> Vec<u8> {
        let mut message = Vec::new();
        while let Some(report) = self.ahead.front() {
            let bytes = report.encode();
            if message.len() + bytes.len() > most_bytes {
                break;
            }
            message.extend_from_slice(&bytes);
            self.ahead.pop_front();
        }
        message
    }

    /// Returns `true` if there are reports to the peer.
    pub(crate) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Sets the priority of an outgoing stream, unless it has ended.
    pub(crate) fn set_priority(&mut self, key: StreamKey, priority: NonZeroU16) {
        let current = |channel: &Channel| channel.sent == key.incarnation && channel.opened > key.incarnation;
        if key.restarts == self.restarts && self.channels.get(&key.stream).is_some_and(current) {
            self.priorities.insert(key.stream, priority);
            self.prioritised.insert(key.stream);
        }
    }

    /// Removes the next priority for the endpoint.
    pub(crate) fn take_priority(&mut self) -> Option<(u16, NonZeroU16)> {
        self.priorities.pop_first()
    }

    /// Opens the next incarnation of a stream, which has the default priority.
    fn begin_stream(&mut self, stream: u16) -> StreamKey {
        if self.prioritised.remove(&stream) {
            self.priorities.insert(stream, DEFAULT_STREAM_PRIORITY);
        }
        let incarnation = self.channel(stream).open();
        self.key(stream, incarnation)
    }

    /// Returns `true` if there are reports or resets for the endpoint.
    pub(crate) fn has_requests(&self) -> bool {
        self.has_ahead() || self.has_resets()
    }

    fn channel(&mut self, stream: u16) -> &mut Channel {
        let credit = if self.is_controlled() { SendCredit::granted() } else { SendCredit::unlimited() };
        self.channels.entry(stream).or_insert_with(|| Channel::new(credit))
    }

    fn key(&self, stream: u16, incarnation: u32) -> StreamKey {
        StreamKey { stream, incarnation, restarts: self.restarts }
    }

    fn is_ours(&self, stream: u16) -> bool {
        stream.is_multiple_of(2) == self.even
    }
}

/// Streams that either side opens.
impl StreamTable {
    /// Opens the stream with the smallest free identifier of this side; `None` while all are in use.
    pub(crate) fn open(&mut self) -> Option<StreamKey> {
        let first = u16::from(!self.even);
        let is_free = |stream: &u16| self.channels.get(stream).is_none_or(Channel::is_idle);
        let stream = (first..self.streams).step_by(2).find(is_free)?;
        Some(self.begin_stream(stream))
    }

    /// Returns the next stream that the peer has opened.
    pub(crate) fn accept(&mut self) -> Option<StreamKey> {
        self.arrived.pop_front()
    }

    /// Returns `true` if more streams can be opened or accepted than at the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Opens a stream of the peer if this is the first that arrives on it.
    fn open_for_peer(&mut self, stream: u16) -> Result<(), Violation> {
        let (controlled, is_ours) = (self.is_controlled(), self.is_ours(stream) || stream >= self.streams);
        let channel = self.channel(stream);
        if channel.opened > channel.received {
            return Ok(());
        }
        if controlled && (is_ours || !channel.is_idle()) {
            return Err(Violation::NotItsStream);
        }
        let key = self.begin_stream(stream);
        self.arrived.push_back(key);
        self.changed = true;
        Ok(())
    }
}

/// Messages and reports of the peer.
impl StreamTable {
    /// Stores a message, or a piece of one, for its reader.
    pub(crate) fn deliver(&mut self, message: Message) -> Result<(), Violation> {
        let (stream, bytes) = (message.stream, message.payload.len());
        self.open_for_peer(stream)?;
        let controlled = self.is_controlled();
        let channel = self.channel(stream);
        // Only a peer that controls streams knows its credit.
        channel.recv_credit.receive(bytes, message.beginning && controlled)?;
        let (current, unread) = (channel.received, channel.recv_credit.unread());
        let mut stalled = false;
        let discarded = match channel.inbox(current) {
            Some(inbox) if !inbox.discards && inbox.end.is_none() => {
                if !controlled && unread > STALLED_LIMIT {
                    inbox.finish(RecvEnd::Stalled);
                    stalled = true;
                    true
                } else {
                    inbox.messages.push_back(message);
                    inbox.reader.take().into_iter().for_each(Waker::wake);
                    false
                }
            }
            _ => true,
        };
        if stalled {
            self.request_reset(stream);
        }
        self.unread += bytes;
        if discarded {
            self.consume(stream, bytes);
        }
        Ok(())
    }

    /// Handles a control message that is ordered behind the messages of its stream.
    pub(crate) fn end_of_peer(&mut self, stream: u16, end: InOrder) -> Result<(), Violation> {
        self.open_for_peer(stream)?;
        let end = match end {
            InOrder::Finish => RecvEnd::Finished,
            InOrder::Reset { code } => RecvEnd::Reset { code },
        };
        self.end_receiving(stream, end);
        Ok(())
    }

    fn end_receiving(&mut self, stream: u16, end: RecvEnd) {
        let channel = self.channel(stream);
        let current = channel.received;
        channel.received += 1;
        if let Some(inbox) = channel.inbox(current) {
            inbox.finish(end);
        }
        channel.inboxes.retain(|inbox| !inbox.discards || inbox.end.is_none());
        self.changed = true;
    }

    /// Handles a report that overtakes waiting messages.
    pub(crate) fn report_of_peer(&mut self, report: Ahead) -> Result<(), Violation> {
        let (Ahead::Credit { stream, .. } | Ahead::Blocked { stream } | Ahead::Stop { stream, .. }) = report;
        if stream >= self.streams {
            return Err(Violation::Malformed);
        }
        // The report may have overtaken the first message of the stream.
        let channel = self.channel(stream);
        match report {
            Ahead::Credit { limit, .. } => {
                channel.send_credit.raise(limit);
                channel.writer.take().into_iter().for_each(Waker::wake);
            }
            Ahead::Stop { incarnation, code, .. }
                if incarnation == channel.sent && channel.opened > incarnation =>
            {
                channel.stopped = Some(code);
                channel.writer.take().into_iter().for_each(Waker::wake);
            }
            // The stream has ended meanwhile.
            Ahead::Stop { .. } => {}
            Ahead::Blocked { .. } => self.grow(stream),
        }
        Ok(())
    }

    fn grow(&mut self, stream: u16) {
        let room = (UNREAD_LIMIT as u64).saturating_sub(self.grown);
        let credit = &mut self.channel(stream).recv_credit;
        let before = credit.window();
        let limit = credit.sender_is_blocked(room);
        let grown = credit.window() - before;
        self.grown += grown;
        self.report_credit(stream, limit);
    }

    fn report_credit(&mut self, stream: u16, limit: Option<u64>) {
        if let Some(limit) = limit.filter(|_| self.is_controlled()) {
            self.ahead.push_back(Ahead::Credit { stream, limit });
        }
    }

    fn consume(&mut self, stream: u16, bytes: usize) {
        self.unread -= bytes;
        let limit = self.channel(stream).recv_credit.consume(bytes);
        self.report_credit(stream, limit);
    }
}

/// Receiving halves.
impl StreamTable {
    /// Takes the next message or piece of a stream.
    pub(crate) fn poll_message(
        &mut self,
        key: StreamKey,
        cx: &Context<'_>,
    ) -> Poll<Result<Message, RecvEnd>> {
        let inbox = match self.channels.get_mut(&key.stream) {
            Some(channel) if key.restarts == self.restarts => channel.inbox(key.incarnation),
            _ => return Poll::Ready(Err(RecvEnd::Restarted)),
        };
        // A handle keeps its inbox.
        let Some(inbox) = inbox else { return Poll::Ready(Err(RecvEnd::Finished)) };
        if let Some(message) = inbox.messages.pop_front() {
            self.consume(key.stream, message.payload.len());
            return Poll::Ready(Ok(message));
        }
        match inbox.end {
            Some(end) => Poll::Ready(Err(end)),
            None if inbox.discards => Poll::Ready(Err(RecvEnd::Finished)),
            None => {
                inbox.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Discards what is unread and what still arrives. `code` tells the peer, unless it has ended the stream.
    pub(crate) fn discard(&mut self, key: StreamKey, code: u32) {
        let controlled = self.is_controlled();
        let Some(channel) = self.channels.get_mut(&key.stream).filter(|_| key.restarts == self.restarts)
        else {
            return;
        };
        let Some(inbox) = channel.inbox(key.incarnation).filter(|inbox| !inbox.discards) else { return };
        inbox.discards = true;
        let has_ended = inbox.end.is_some();
        let bytes = std::mem::take(&mut inbox.messages).iter().map(|message| message.payload.len()).sum();
        channel.inboxes.retain(|inbox| !inbox.discards || inbox.end.is_none());
        self.consume(key.stream, bytes);
        let StreamKey { stream, incarnation, .. } = key;
        match has_ended {
            false if controlled => self.ahead.push_back(Ahead::Stop { stream, incarnation, code }),
            false => self.request_reset(stream),
            true => {}
        }
    }
}

/// Sending halves.
impl StreamTable {
    fn sending(&mut self, key: StreamKey) -> Result<&mut Channel, SendEnd> {
        let channel = self.channels.get_mut(&key.stream).filter(|_| key.restarts == self.restarts);
        let channel = channel.ok_or(SendEnd::Restarted)?;
        match channel.stopped {
            _ if channel.sent != key.incarnation => Err(SendEnd::Ended),
            Some(code) => Err(SendEnd::Stopped { code }),
            None => Ok(channel),
        }
    }

    /// Waits until a message may begin.
    pub(crate) fn poll_credit(&mut self, key: StreamKey, cx: &Context<'_>) -> Poll<Result<(), SendEnd>> {
        let channel = self.sending(key)?;
        if channel.send_credit.admits_message() {
            return Poll::Ready(Ok(()));
        }
        channel.writer = Some(cx.waker().clone());
        if channel.send_credit.is_newly_blocked() {
            self.ahead.push_back(Ahead::Blocked { stream: key.stream });
        }
        Poll::Pending
    }

    /// Counts a message that was sent.
    pub(crate) fn spend(&mut self, key: StreamKey, bytes: usize) {
        if let Ok(channel) = self.sending(key) {
            channel.send_credit.spend(bytes);
        }
    }

    /// Restores the credit of messages that were discarded before they were sent.
    pub(crate) fn refund(&mut self, stream: u16, bytes: u64) {
        if let Some(channel) = self.channels.get_mut(&stream) {
            channel.send_credit.refund(bytes);
        }
    }

    /// Returns the code with which the peer stopped the stream, or waits for it.
    pub(crate) fn poll_stopped(&mut self, key: StreamKey, cx: &Context<'_>) -> Poll<SendEnd> {
        match self.sending(key) {
            Err(end) => Poll::Ready(end),
            Ok(channel) => {
                channel.writer = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Ends the sending half.
    pub(crate) fn end(&mut self, key: StreamKey) -> Result<(), SendEnd> {
        match self.sending(key) {
            Ok(channel) => channel.sent += 1,
            Err(SendEnd::Stopped { .. }) => self.channel(key.stream).sent += 1,
            Err(ended) => return Err(ended),
        }
        Ok(())
    }
}
