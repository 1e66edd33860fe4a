//! Errors of channels.

use anabranch_core::SendError;
use thiserror::Error;

/// Reason for which a channel cannot be opened or used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelError {
    /// All stream identifiers of this side are in use.
    #[error("all {streams} streams of this role carry channels; close one, or configure more streams")]
    NoStream {
        /// Number of identifiers of this side.
        streams: u16,
    },
    /// The identifier of a negotiated channel is in use.
    #[error("stream {id} carries a channel; take another one")]
    InUse {
        /// Identifier of the channel.
        id: u16,
    },
    /// The association has no such stream in both directions.
    #[error("the association has {streams} streams, so channel {id} cannot exist; agree on a lower one")]
    Unnegotiable {
        /// Identifier of the channel.
        id: u16,
        /// Number of streams in each direction.
        streams: u16,
    },
    /// There are as many channels as the limits permit.
    #[error("there are {limit} channels, the limit; close one")]
    TooManyChannels {
        /// Maximum number of channels.
        limit: usize,
    },
    /// Label or protocol are longer than the format permits.
    #[error("a label and a protocol have at most 65535 bytes each")]
    NameTooLong,
    /// The channel does not exist or has ended.
    #[error("channel {id} does not exist or has ended")]
    NoChannel {
        /// Identifier of the channel.
        id: u16,
    },
    /// The message is larger than the peer accepts.
    #[error("the message has {bytes} B, and the peer accepts {limit} B")]
    TooLarge {
        /// Size of the message.
        bytes: usize,
        /// Maximum size of a message to the peer.
        limit: usize,
    },
    /// The association does not accept the message now, or at all.
    #[error(transparent)]
    Association(#[from] SendError),
}

/// Reason for which a control message is malformed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The message ends within its fields.
    #[error("the control message is shorter than its fields")]
    Short,
    /// The message is longer than its fields.
    #[error("the control message is longer than its fields")]
    Long,
    /// The type of the message is unknown.
    #[error("the type of the control message is unknown")]
    UnknownType,
    /// The channel type is unknown.
    #[error("the channel type is unknown")]
    UnknownChannelType,
    /// Label or protocol are no UTF-8.
    #[error("label or protocol are no UTF-8")]
    NoText,
}
