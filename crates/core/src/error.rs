//! Errors of the interface, each with its remedy.

use thiserror::Error;

/// Reason for which a message was not accepted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// The message does not fit the send buffer now.
    #[error("the send buffer has {free_bytes} B free; wait for Writable and send again")]
    BufferFull {
        /// Free user bytes.
        free_bytes: u64,
    },
    /// The stream does not exist.
    #[error("stream {stream} does not exist; the association has {streams}, numbered from 0")]
    NoSuchStream {
        /// Requested stream.
        stream: u16,
        /// Number of streams.
        streams: u16,
    },
    /// SCTP cannot carry an empty message.
    #[error("a message must have at least one byte")]
    Empty,
    /// The peer does not support FORWARD-TSN (RFC 3758), so no message can be abandoned.
    #[error("the peer does not support partial reliability; send the message with full reliability")]
    NoPartialReliability,
    /// Packets must be protected, and there are no keys yet.
    #[error("the association is not protected yet; send once it is")]
    NotProtected,
    /// The messages of this payload protocol belong to the key management of a protected association.
    #[error(
        "payload protocol {} is the key management's on a protected association; take another",
        crate::protection::KEY_MANAGEMENT_PPID
    )]
    KeyManagementOnly,
    /// A shutdown has begun or the association has ended.
    #[error("the association is closing or closed and accepts no more messages")]
    Closing,
}

/// Reason for which a path could not be added or removed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// All ids are in use.
    #[error("an association has at most {} paths; remove one first", crate::path_id::MAX_PATHS)]
    TooMany,
    /// The pair of addresses is a path already.
    #[error("this pair of addresses is a path already")]
    Exists,
    /// There is no such path.
    #[error("the association has no such path")]
    Unknown,
    /// The peer has no known address of this IP version.
    #[error("no address of the peer's of this IP version is known; give the pair of addresses to use")]
    Family,
    /// The last path cannot be removed.
    #[error("the only path cannot be removed; shut the association down instead")]
    Last,
    /// The association has ended.
    #[error("the association is over; open a new one with the paths it is to have")]
    Closed,
}

/// Reason for which a change of streams was not requested.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum StreamsError {
    /// The handshake has not ended, so that the peer's support and its streams are unknown.
    #[error("the association is not established yet; wait for Connected")]
    NotEstablished,
    /// A shutdown has begun or the association has ended.
    #[error("the association is closing or closed; open a new one")]
    Closing,
    /// One of both sides does not support RE-CONFIG (RFC 6525).
    #[error("the streams are fixed; set stream_changes in the configuration of both sides")]
    Unsupported,
    /// The stream does not exist.
    #[error("stream {stream} does not exist; the association has {streams}, numbered from 0")]
    NoSuchStream {
        /// Requested stream.
        stream: u16,
        /// Number of streams of the direction.
        streams: u16,
    },
    /// A reset of the stream was requested before, and the peer has not answered.
    #[error("stream {stream} is under reset; wait for StreamsReset")]
    InProgress {
        /// Requested stream.
        stream: u16,
    },
    /// Too many requests wait.
    #[error("too many changes of streams wait for the peer; wait for an answer")]
    TooManyRequests,
    /// There would be more streams than the configuration permits.
    #[error("a direction has at most {limit} streams; raise max_streams of stream_changes")]
    TooManyStreams {
        /// Maximum number of streams of a direction.
        limit: u16,
    },
    /// The key management of a protected association uses the stream.
    #[error("the key management uses stream 0 of a protected association; list the other streams")]
    KeyManagement,
}

/// Reason for which an association could not be opened.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// No address pair was given.
    #[error("give at least one pair of a local and a remote address")]
    NoPath,
    /// There are more pairs than paths of an association.
    #[error("an association has at most {} paths", crate::path_id::MAX_PATHS)]
    TooManyPaths,
    /// The endpoint has the maximum number of associations.
    #[error("the endpoint already has {limit} associations, as many as it may")]
    Full {
        /// Maximum number.
        limit: usize,
    },
    /// A restart was requested, and the configuration does not offer it.
    #[error(
        "a restart needs an association that offers protection and restarts; set both in its configuration"
    )]
    NoRestart,
}

/// Reason for which an INIT did not reach the peer, the most informative one first.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No program receives at the UDP port.
    #[error("the port is closed")]
    PortClosed,
    /// A firewall or a routing rule forbids the packet.
    #[error("a firewall or a routing rule forbids packets to the host")]
    Prohibited,
    /// The last router gets no answer from the peer, or this host gets none from a peer in the same network.
    #[error("the host is unreachable")]
    HostUnreachable,
    /// No route leads to the network of the peer.
    #[error("no route to the host")]
    NoRoute,
}

/// Reason for which an association ended without a shutdown.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AbortReason {
    /// The application aborted the association.
    #[error("aborted by this application")]
    ByApplication,
    /// The peer sent an ABORT.
    #[error("aborted by the peer")]
    ByPeer,
    /// The peer never answered the handshake.
    #[error("the peer did not answer the handshake")]
    NoAnswer,
    /// The network or the operating system has refused INIT on every path.
    #[error("the first packet could not be delivered on any path: {0}")]
    Refused(Refusal),
    /// There were too many consecutive errors, or silence on every path.
    #[error("the peer stopped answering on every path")]
    PeerUnreachable,
    /// The sides do not agree on the protection of packets.
    #[error("no protection was agreed on: {0}")]
    NotProtected(&'static str),
    /// The key that protects packets has reached its limit, and no other was installed.
    #[error("the key that protects packets is used up; agree on keys more often")]
    KeySpent,
    /// The cipher could not protect a packet.
    #[error("the cipher failed to protect a packet; open a new association")]
    CipherFailed,
    /// Protected packets contradict plain packets, which an attacker on the network path has changed.
    #[error(
        "packets were changed on their way before protection began: {0}; try again, over another network if it repeats"
    )]
    Tampered(&'static str),
    /// The agreement on keys failed, or new keys were not agreed on in time.
    #[error("the key management ended it: {0}")]
    KeyManagement(&'static str),
    /// The peer violated the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(&'static str),
}
