//! Settings and state of one channel.

use anabranch_core::time::Span;
use anabranch_core::{Reliability, SendOptions};

/// Identifier of a channel: that of its streams in both directions.
pub type ChannelId = u16;

/// Side of the DTLS handshake below the association, which determines the identifiers that a side may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// DTLS client: it opens channels with even identifiers (RFC 8832 section 6).
    DtlsClient,
    /// DTLS server: it opens channels with odd identifiers.
    DtlsServer,
}

impl Role {
    pub(crate) fn first_id(self) -> ChannelId {
        match self {
            Role::DtlsClient => 0,
            Role::DtlsServer => 1,
        }
    }

    /// Returns `true` if this side chooses the identifier.
    pub(crate) fn chooses(self, id: ChannelId) -> bool {
        id % 2 == self.first_id()
    }
}

/// Reliability of the messages of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelReliability {
    /// Messages are delivered unless the association ends.
    #[default]
    Full,
    /// Maximum number of retransmissions of a message.
    MaxRetransmissions(u32),
    /// Milliseconds after which a message is given up.
    LifetimeMs(u32),
}

impl ChannelReliability {
    fn of_messages(self) -> Reliability {
        match self {
            ChannelReliability::Full => Reliability::Full,
            ChannelReliability::MaxRetransmissions(count) => Reliability::MaxRetransmissions(count),
            ChannelReliability::LifetimeMs(ms) => Reliability::Lifetime(Span::from_millis(u64::from(ms))),
        }
    }
}

/// Settings of a channel, which its opener chooses and both sides use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of the channel; need not be unique.
    pub label: String,
    /// Name of the protocol in the channel, such as one of the WebSocket registry; may be empty.
    pub protocol: String,
    /// `true` if messages arrive in the order in which they were sent.
    pub ordered: bool,
    /// Reliability of the messages.
    pub reliability: ChannelReliability,
    /// Weight of the channel where channels share the rate (RFC 8831 section 6.4); 256 is normal, and 0 counts as 1.
    pub priority: u16,
}

impl Settings {
    /// Returns settings of an ordered and reliable channel with this label.
    pub fn new(label: impl Into<String>) -> Self {
        Settings {
            label: label.into(),
            protocol: String::new(),
            ordered: true,
            reliability: ChannelReliability::Full,
            priority: 256,
        }
    }
}

/// Phase of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// This side has opened the channel, and the peer has not answered.
    Opening,
    Open,
    /// Both directions are under reset, and messages that still arrive are discarded.
    Closing,
    /// The peer has reset its direction, and its earlier messages may be unread.
    PeerClosed,
}

/// Reset of the direction towards the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutgoingReset {
    No,
    /// It is requested. Only then does a reset belong to this channel, and not to an earlier one on the stream.
    Requested,
    Done,
}

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) settings: Settings,
    pub(crate) phase: Phase,
    /// Set once the peer has reset the direction towards this side.
    pub(crate) incoming_reset: bool,
    /// Reset of the direction towards the peer.
    pub(crate) outgoing_reset: OutgoingReset,
    /// Beginning of a message of which the rest has not arrived.
    pub(crate) partial: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(settings: Settings, phase: Phase) -> Self {
        Channel {
            settings,
            phase,
            incoming_reset: false,
            outgoing_reset: OutgoingReset::No,
            partial: Vec::new(),
        }
    }

    /// Returns `true` if the application may send.
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.phase, Phase::Opening | Phase::Open)
    }

    /// Returns the options of a message. Until the peer has answered, messages are in order, so that none arrives before the message
    /// that opens the channel (RFC 8832 section 6).
    pub(crate) fn send_options(&self, id: ChannelId, ppid: u32) -> SendOptions {
        SendOptions {
            stream: id,
            ppid,
            unordered: !self.settings.ordered && self.phase == Phase::Open,
            reliability: self.settings.reliability.of_messages(),
            ..SendOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_in_order_until_the_channel_is_open() {
        let settings = Settings { ordered: false, ..Settings::new("moves") };
        let unordered = |phase| Channel::new(settings.clone(), phase).send_options(4, 53).unordered;
        assert!(!unordered(Phase::Opening));
        assert!(unordered(Phase::Open));
    }

    #[test]
    fn each_role_chooses_every_second_identifier() {
        assert!(Role::DtlsClient.chooses(0) && Role::DtlsClient.chooses(65_534));
        assert!(Role::DtlsServer.chooses(1) && !Role::DtlsServer.chooses(2));
    }
}
