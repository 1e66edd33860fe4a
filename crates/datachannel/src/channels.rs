//! Channels of an association.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU16;

use anabranch_core::time::Time;
use anabranch_core::{
    Association, AssociationEvent, ReceivedMessage, SendError, SendOptions, StreamDirection, StreamRequest,
};
use bytes::Bytes;

use crate::channel::{Channel, ChannelId, OutgoingReset, Phase, Role, Settings};
use crate::control::{Control, OPEN_HEADER_BYTES};
use crate::error::ChannelError;
use crate::resets::{Requested, Resets};

/// Payload protocol identifiers (RFC 8831 section 8).
const CONTROL: u32 = 50;
const TEXT: u32 = 51;
const BINARY: u32 = 53;
const EMPTY_TEXT: u32 = 56;
const EMPTY_BINARY: u32 = 57;

/// Content of an empty message, because SCTP carries at least one byte (RFC 8831 section 6.6).
const EMPTY: &[u8] = &[0];

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// UTF-8 text, as the sender claims.
    Text,
    /// Any bytes, also none.
    Binary,
}

/// Bounds on what a peer can make this side hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of channels, of both sides together.
    pub channels: usize,
    /// Maximum bytes of label and protocol of a channel that the peer opens.
    pub name_bytes: usize,
    /// Maximum bytes of a received message. Messages of which only a part has arrived have as many bytes together.
    pub received_bytes: usize,
    /// Maximum bytes of a sent message: `max-message-size` of the peer (RFC 8841).
    pub sent_bytes: usize,
}

impl Default for Limits {
    /// 1,024 channels, names of 1 KiB, received messages of 256 KiB, and sent ones of 64 KiB, the default of RFC 8841.
    fn default() -> Self {
        Limits { channels: 1024, name_bytes: 1 << 10, received_bytes: 256 << 10, sent_bytes: 64 << 10 }
    }
}

/// Cause of the end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCause {
    /// The application has closed it.
    Local,
    /// The peer has closed it.
    Peer,
    /// The peer has violated the protocol or a limit.
    Violation(&'static str),
    /// The association has ended, or the peer has restarted it.
    AssociationEnded,
}

/// Event of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// The peer has accepted a channel of this side.
    Opened(ChannelId),
    /// The peer has opened a channel.
    Incoming {
        /// Channel of the peer.
        id: ChannelId,
        /// Settings that the peer has chosen.
        settings: Settings,
    },
    /// A message has arrived.
    Message {
        /// Channel of the message.
        id: ChannelId,
        /// Kind of the message.
        kind: MessageKind,
        /// Content, which may be empty.
        payload: Vec<u8>,
    },
    /// The channel has ended, and its identifier is free.
    Closed {
        /// Channel that has ended.
        id: ChannelId,
        /// Cause of the end.
        cause: CloseCause,
    },
}

/// Data channels of one association. See the [crate's documentation](crate) for an example.
#[derive(Debug)]
pub struct DataChannels {
    role: Role,
    limits: Limits,
    channels: BTreeMap<ChannelId, Channel>,
    causes: BTreeMap<ChannelId, CloseCause>,
    resets: Resets,
    /// Number of resets by the peer on streams whose next channel is not read yet. Events precede the messages before them.
    early_resets: BTreeMap<ChannelId, u32>,
    /// Channels of the peer that are not acknowledged yet, because the send buffer is full.
    unacknowledged: BTreeSet<ChannelId>,
    events: VecDeque<ChannelEvent>,
    /// Bytes of all messages of which only a part has arrived.
    partial_bytes: usize,
    discarded_messages: u64,
}

impl DataChannels {
    /// Returns no channels, for an association on which this side has that role.
    pub fn new(role: Role, limits: Limits) -> Self {
        DataChannels {
            role,
            limits,
            channels: BTreeMap::new(),
            causes: BTreeMap::new(),
            resets: Resets::default(),
            early_resets: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            events: VecDeque::new(),
            partial_bytes: 0,
            discarded_messages: 0,
        }
    }

    /// Returns the settings of a channel, also while it ends.
    pub fn settings(&self, id: ChannelId) -> Option<&Settings> {
        self.channels.get(&id).map(|channel| &channel.settings)
    }

    /// Returns the number of messages on streams without a channel, on channels that end, and of unknown kinds.
    pub fn discarded_messages(&self) -> u64 {
        self.discarded_messages
    }

    /// Opens a channel on the lowest free stream of this side's role. The application may send at once;
    /// [`ChannelEvent::Opened`] reports that the peer has accepted.
    ///
    /// # Errors
    /// Returns [`ChannelError`]; no channel is opened then. [`SendError::BufferFull`] passes.
    pub fn open(
        &mut self,
        now: Time,
        association: &mut Association,
        settings: Settings,
    ) -> Result<ChannelId, ChannelError> {
        self.admits_another()?;
        if settings.label.len().max(settings.protocol.len()) > usize::from(u16::MAX) {
            return Err(ChannelError::NameTooLong);
        }
        let streams = association.outbound_streams().min(association.inbound_streams());
        let mut ids = (self.role.first_id()..streams).step_by(2);
        let id = ids.find(|id| !self.channels.contains_key(id));
        let id = id.ok_or(ChannelError::NoStream { streams: streams / 2 })?;
        let opening = Control::Open(settings.clone()).encode();
        association.send_at(now, opening.into(), control_options(id))?;
        self.insert(association, id, settings, Phase::Opening);
        Ok(id)
    }

    /// Adds a channel that both sides have agreed on otherwise, such as by SDP (RFC 8864). No message is sent for it.
    ///
    /// # Errors
    /// Returns [`ChannelError::InUse`], [`ChannelError::TooManyChannels`] or [`ChannelError::Unnegotiable`].
    pub fn add_negotiated(
        &mut self,
        association: &mut Association,
        id: ChannelId,
        settings: Settings,
    ) -> Result<(), ChannelError> {
        self.admits_another()?;
        let streams = association.outbound_streams().min(association.inbound_streams());
        if id >= streams {
            return Err(ChannelError::Unnegotiable { id, streams });
        }
        if self.channels.contains_key(&id) {
            return Err(ChannelError::InUse { id });
        }
        self.insert(association, id, settings, Phase::Open);
        Ok(())
    }

    /// Adds a channel. Its priority is the weight of its stream (RFC 8831 section 6.4); the protocol permits zero, which is no weight.
    fn insert(&mut self, association: &mut Association, id: ChannelId, settings: Settings, phase: Phase) {
        let weight = NonZeroU16::new(settings.priority).unwrap_or(NonZeroU16::MIN);
        let set = association.set_stream_priority(id, weight);
        debug_assert!(set.is_ok(), "channels have streams of the association");
        self.channels.insert(id, Channel::new(settings, phase));
    }

    fn admits_another(&self) -> Result<(), ChannelError> {
        let limit = self.limits.channels;
        if self.channels.len() < limit { Ok(()) } else { Err(ChannelError::TooManyChannels { limit }) }
    }

    /// Sends a message, with the order and reliability of the channel.
    ///
    /// # Errors
    /// Returns [`ChannelError`]. After [`SendError::BufferFull`], [`AssociationEvent::Writable`] reports room.
    pub fn send(
        &mut self,
        now: Time,
        association: &mut Association,
        id: ChannelId,
        (kind, payload): (MessageKind, Bytes),
    ) -> Result<(), ChannelError> {
        let channel = self.channels.get(&id).filter(|channel| channel.is_usable());
        let channel = channel.ok_or(ChannelError::NoChannel { id })?;
        let (bytes, limit) = (payload.len(), self.limits.sent_bytes);
        if bytes > limit {
            return Err(ChannelError::TooLarge { bytes, limit });
        }
        let (ppid, payload) = match (kind, payload.is_empty()) {
            (MessageKind::Text, false) => (TEXT, payload),
            (MessageKind::Binary, false) => (BINARY, payload),
            (MessageKind::Text, true) => (EMPTY_TEXT, Bytes::from_static(EMPTY)),
            (MessageKind::Binary, true) => (EMPTY_BINARY, Bytes::from_static(EMPTY)),
        };
        Ok(association.send_at(now, payload, channel.send_options(id, ppid))?)
    }

    /// Ends a channel after the messages that were sent, by a reset of its streams (RFC 8831 section 6.7). Messages that still arrive
    /// are discarded, and [`ChannelEvent::Closed`] reports the end. A peer that does not support RFC 6525 does not see it.
    ///
    /// # Errors
    /// Returns [`ChannelError::NoChannel`] if the channel has ended.
    pub fn close(
        &mut self,
        now: Time,
        association: &mut Association,
        id: ChannelId,
    ) -> Result<(), ChannelError> {
        if !self.channels.get(&id).is_some_and(Channel::is_usable) {
            return Err(ChannelError::NoChannel { id });
        }
        self.begin_close(id, CloseCause::Local);
        self.request_resets(now, association);
        Ok(())
    }

    fn begin_close(&mut self, id: ChannelId, cause: CloseCause) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.phase = Phase::Closing;
        self.partial_bytes -= std::mem::take(&mut channel.partial).len();
        self.unacknowledged.remove(&id);
        self.causes.entry(id).or_insert(cause);
        self.resets.add(id);
    }

    /// Processes an event of the association. The caller passes every event, in order, up to the end of the association, for which
    /// there is [`finish`](Self::finish).
    pub fn handle_event(&mut self, now: Time, association: &mut Association, event: &AssociationEvent) {
        match event {
            AssociationEvent::StreamsReset { direction, streams } => {
                self.on_reset(*direction, streams);
            }
            // A stream that the peer does not reset cannot carry another channel; the end is reported all the same.
            AssociationEvent::StreamRequestFailed {
                request: StreamRequest::Reset { direction: StreamDirection::Outgoing, streams },
                ..
            } => {
                for id in self.affected(streams) {
                    self.on_outgoing_reset(id);
                }
            }
            AssociationEvent::Restarted => self.end_all(),
            _ => {}
        }
        self.request_resets(now, association);
    }

    fn on_reset(&mut self, direction: StreamDirection, streams: &[u16]) {
        for id in self.affected(streams) {
            match direction {
                StreamDirection::Incoming => self.on_incoming_reset(id),
                StreamDirection::Outgoing => self.on_outgoing_reset(id),
            }
        }
        if direction == StreamDirection::Incoming {
            for id in streams.iter().filter(|id| !self.channels.contains_key(id)) {
                *self.early_resets.entry(*id).or_default() += 1;
            }
        }
    }

    /// Returns the channels that an event about these streams affects; no stream means all.
    fn affected(&self, streams: &[u16]) -> Vec<ChannelId> {
        let ids = self.channels.keys().copied();
        ids.filter(|id| streams.is_empty() || streams.binary_search(id).is_ok()).collect()
    }

    /// An endpoint that sees the reset of an incoming stream also resets its outgoing stream (RFC 8831 section 6.7).
    fn on_incoming_reset(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if std::mem::replace(&mut channel.incoming_reset, true) {
            *self.early_resets.entry(id).or_default() += 1;
        }
        if channel.is_usable() {
            channel.phase = Phase::PeerClosed;
            self.causes.entry(id).or_insert(CloseCause::Peer);
            self.resets.add(id);
        }
        self.end_if_done(id);
    }

    fn on_outgoing_reset(&mut self, id: ChannelId) {
        let channel = self.channels.get_mut(&id);
        if let Some(channel) = channel.filter(|channel| channel.outgoing_reset == OutgoingReset::Requested) {
            channel.outgoing_reset = OutgoingReset::Done;
        }
        self.end_if_done(id);
    }

    /// Ends a channel if both directions are reset, and if no message of it can be unread.
    fn end_if_done(&mut self, id: ChannelId) {
        let closing = |channel: &Channel| {
            channel.phase == Phase::Closing
                && channel.incoming_reset
                && channel.outgoing_reset == OutgoingReset::Done
        };
        if self.channels.get(&id).is_some_and(closing) {
            self.end(id);
        }
    }

    fn end(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.remove(&id) else { return };
        self.partial_bytes -= channel.partial.len();
        self.unacknowledged.remove(&id);
        let cause = self.causes.remove(&id).unwrap_or(CloseCause::AssociationEnded);
        self.events.push_back(ChannelEvent::Closed { id, cause });
    }

    /// Returns the remaining events of an association that has ended. All messages were [read](Self::poll) before.
    pub fn finish(mut self) -> impl Iterator<Item = ChannelEvent> {
        self.end_all();
        self.events.into_iter()
    }

    fn end_all(&mut self) {
        self.resets.clear();
        self.early_resets.clear();
        let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
        ids.into_iter().for_each(|id| self.end(id));
    }

    /// Requests waiting resets. A channel whose reset cannot be requested has no direction to wait for.
    fn request_resets(&mut self, now: Time, association: &mut Association) {
        for (id, requested) in self.resets.request(now, association) {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.outgoing_reset = OutgoingReset::Requested;
            }
            if requested == Requested::Impossible {
                self.on_incoming_reset(id);
                self.on_outgoing_reset(id);
            }
        }
    }

    /// Returns the next event. It reads messages of the association one at a time, so that an application that does not call it stops
    /// the peer. `None` means that all messages are read.
    pub fn poll(&mut self, now: Time, association: &mut Association) -> Option<ChannelEvent> {
        self.send_acknowledgements(now, association);
        self.request_resets(now, association);
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let mut payload = Vec::new();
            let Some(piece) = association.recv(&mut payload) else {
                self.early_resets.clear();
                self.end_read_channels();
                return self.events.pop_front();
            };
            self.receive(now, association, &piece, payload);
        }
    }

    /// Ends the channels that the peer has closed, since all their messages are read.
    fn end_read_channels(&mut self) {
        let channels = self.channels.iter_mut();
        let closed: Vec<ChannelId> = channels
            .filter(|(_, channel)| channel.phase == Phase::PeerClosed)
            .map(|(id, channel)| {
                channel.phase = Phase::Closing;
                *id
            })
            .collect();
        closed.into_iter().for_each(|id| self.end_if_done(id));
    }

    fn receive(
        &mut self,
        now: Time,
        association: &mut Association,
        piece: &ReceivedMessage,
        payload: Vec<u8>,
    ) {
        let id = piece.stream;
        match piece.ppid {
            CONTROL if piece.beginning && piece.ending => self.on_control(now, association, id, &payload),
            CONTROL => self.reject(id, "a control message is larger than the receive buffer"),
            TEXT => self.on_data(piece, MessageKind::Text, payload),
            BINARY => self.on_data(piece, MessageKind::Binary, payload),
            EMPTY_TEXT => self.on_data(piece, MessageKind::Text, Vec::new()),
            EMPTY_BINARY => self.on_data(piece, MessageKind::Binary, Vec::new()),
            _ => self.discarded_messages += 1,
        }
        self.request_resets(now, association);
    }

    fn on_control(&mut self, now: Time, association: &mut Association, id: ChannelId, bytes: &[u8]) {
        match Control::decode(bytes) {
            Ok(Control::Ack) => self.on_acknowledgement(id),
            Ok(Control::Open(_)) if bytes.len() - OPEN_HEADER_BYTES > self.limits.name_bytes => {
                self.reject(id, "the label and protocol of a channel are too long");
            }
            Ok(Control::Open(settings)) => self.on_open(now, association, id, settings),
            Err(_) => self.reject(id, "a control message is malformed"),
        }
    }

    fn on_acknowledgement(&mut self, id: ChannelId) {
        match self.channels.get_mut(&id) {
            Some(channel) if channel.phase == Phase::Opening => {
                channel.phase = Phase::Open;
                self.events.push_back(ChannelEvent::Opened(id));
            }
            _ => self.discarded_messages += 1,
        }
    }

    fn on_open(&mut self, now: Time, association: &mut Association, id: ChannelId, settings: Settings) {
        // The peer uses the stream again, so it has seen the reset of its earlier channel; our view of the other direction may lag.
        if self.channels.get(&id).is_some_and(|channel| channel.incoming_reset) {
            self.end(id);
        }
        // RFC 8832 section 6: a channel on a used stream, or on one that the other role chooses, is closed.
        if self.channels.contains_key(&id) {
            return self.reject(id, "a channel was opened on a stream in use");
        }
        if self.role.chooses(id) || self.admits_another().is_err() || id >= association.outbound_streams() {
            return self.reject(id, "a channel was opened on a stream of this side, or there are too many");
        }
        self.insert(association, id, settings.clone(), Phase::Open);
        self.unacknowledged.insert(id);
        self.events.push_back(ChannelEvent::Incoming { id, settings });
        self.send_acknowledgements(now, association);
        if let Some(resets) = self.early_resets.get_mut(&id).filter(|resets| **resets > 0) {
            *resets -= 1;
            self.on_incoming_reset(id);
        }
    }

    fn send_acknowledgements(&mut self, now: Time, association: &mut Association) {
        self.unacknowledged.retain(|&id| {
            let sent = association.send_at(now, Control::Ack.encode().into(), control_options(id));
            matches!(sent, Err(SendError::BufferFull { .. } | SendError::NotProtected))
        });
    }

    /// Closes the channel of a stream, or resets a stream without one.
    fn reject(&mut self, id: ChannelId, violation: &'static str) {
        self.discarded_messages += 1;
        if self.channels.get(&id).is_some_and(Channel::is_usable) {
            self.begin_close(id, CloseCause::Violation(violation));
        } else if !self.channels.contains_key(&id) {
            self.resets.add(id);
        }
    }

    fn on_data(&mut self, piece: &ReceivedMessage, kind: MessageKind, payload: Vec<u8>) {
        let id = piece.stream;
        let channel = self.channels.get_mut(&id).filter(|channel| channel.phase != Phase::Closing);
        let Some(channel) = channel else {
            self.discarded_messages += 1;
            return;
        };
        // RFC 8832 section 6: data on the stream implies that the peer has accepted the channel.
        if channel.phase == Phase::Opening {
            channel.phase = Phase::Open;
            self.events.push_back(ChannelEvent::Opened(id));
        }
        if piece.beginning {
            self.partial_bytes -= std::mem::take(&mut channel.partial).len();
        }
        if self.partial_bytes + payload.len() > self.limits.received_bytes {
            return self.reject(id, "a message is larger than the limit");
        }
        if piece.beginning && piece.ending {
            self.events.push_back(ChannelEvent::Message { id, kind, payload });
            return;
        }
        channel.partial.extend_from_slice(&payload);
        self.partial_bytes += payload.len();
        if piece.ending {
            let payload = std::mem::take(&mut channel.partial);
            self.partial_bytes -= payload.len();
            self.events.push_back(ChannelEvent::Message { id, kind, payload });
        }
    }
}

/// Returns the options of control messages, which are in order and reliable.
fn control_options(id: ChannelId) -> SendOptions {
    SendOptions { stream: id, ppid: CONTROL, ..SendOptions::default() }
}
