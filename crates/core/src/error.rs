//! Errors, each with what can be done about it.

use thiserror::Error;

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// It does not fit now.
    #[error("the send buffer has {free_bytes} B free; wait for Writable and send again")]
    BufferFull {
        /// Free user bytes.
        free_bytes: u64,
    },
    /// The stream does not exist.
    #[error("stream {stream} does not exist; the association has {streams}, numbered from 0")]
    NoSuchStream {
        /// The one asked for.
        stream: u16,
        /// How many there are.
        streams: u16,
    },
    /// SCTP cannot carry an empty message.
    #[error("a message must hold at least one byte")]
    Empty,
    /// The peer does not take FORWARD-TSN (RFC 3758), so no message can be given up.
    #[error("the peer does not do partial reliability; send the message with full reliability")]
    NoPartialReliability,
    /// Packets are to be protected, and there are no keys yet.
    #[error("the association is not protected yet; send once it is")]
    NotProtected,
    /// The messages of this payload protocol belong to the key management, if packets are to be protected.
    #[error(
        "payload protocol {} is the key management's on a protected association; take another",
        crate::protection::KEY_MANAGEMENT_PPID
    )]
    KeyManagementOnly,
    /// A shutdown has begun or the association is over.
    #[error("the association is closing or closed and takes no more messages")]
    Closing,
}

/// Why a path could not be added or removed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// All ids are taken.
    #[error("an association has at most {} paths; remove one first", crate::path_id::MAX_PATHS)]
    TooMany,
    /// The pair is a path already.
    #[error("this pair of addresses is a path already")]
    Exists,
    /// No such path.
    #[error("there is no such path")]
    Unknown,
    /// The peer has no known address of this IP version.
    #[error("no address of the peer's of this IP version is known; give the pair of addresses to use")]
    Family,
    /// The last path cannot go.
    #[error("the only path cannot be removed; shut the association down instead")]
    Last,
    /// The association is over.
    #[error("the association is over; open a new one with the paths it is to have")]
    Closed,
}

/// Why an association could not be opened.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// No address pair was given.
    #[error("give at least one pair of a local and a remote address")]
    NoPath,
    /// More pairs than an association may have.
    #[error("an association has at most {} paths", crate::path_id::MAX_PATHS)]
    TooManyPaths,
    /// The endpoint is full.
    #[error("the endpoint already has {limit} associations, as many as it may")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// A restart was asked for, and the configuration does not offer it.
    #[error(
        "a restart needs an association that offers protection and restarts; set both in its configuration"
    )]
    NoRestart,
}

/// Reason why an INIT did not reach the peer, the most telling one first.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No program receives at the UDP port.
    #[error("the port is closed")]
    PortClosed,
    /// A firewall or a routing rule forbids the packet.
    #[error("a firewall or a routing rule forbids packets to the host")]
    Prohibited,
    /// The last router, or this host where the peer is in its network, gets no answer from the peer.
    #[error("the host is unreachable")]
    HostUnreachable,
    /// No route leads to the network of the peer.
    #[error("there is no route to the host")]
    NoRoute,
}

/// How an association ended before its time.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AbortReason {
    /// The application asked for it.
    #[error("aborted by this application")]
    ByApplication,
    /// The peer sent an ABORT.
    #[error("aborted by the peer")]
    ByPeer,
    /// The peer never answered the handshake.
    #[error("the peer did not answer the handshake")]
    NoAnswer,
    /// The network or the system has refused INIT on every path.
    #[error("the first packet could not be delivered on any path: {0}")]
    Refused(Refusal),
    /// Too many consecutive errors, or silence on every path.
    #[error("the peer stopped answering on every path")]
    PeerUnreachable,
    /// The sides do not agree on the protection of packets.
    #[error("no protection was agreed on: {0}")]
    NotProtected(&'static str),
    /// The key that protects packets has been used as often as it may, and no other followed.
    #[error("the key that protects packets is used up; agree on keys more often")]
    KeySpent,
    /// The cipher could not protect a packet.
    #[error("the cipher failed to protect a packet; open a new association")]
    CipherFailed,
    /// Protected packets contradict packets that came before protection: an attacker on the path has changed the latter.
    #[error(
        "packets were changed on their way before protection began: {0}; try again, over another network if it repeats"
    )]
    Tampered(&'static str),
    /// No keys could be agreed on, or no new ones in time.
    #[error("the key management ended it: {0}")]
    KeyManagement(&'static str),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(&'static str),
}
