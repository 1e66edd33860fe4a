//! Errors, each with a remedy.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::keying::PeerIdentity;
use anabranch_core::AbortReason;
use thiserror::Error;

use crate::refusals::RefusedPath;
use crate::route_error::{RouteError, TargetError};

/// Reason for which an endpoint could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// No address was given.
    #[error("give at least one local address")]
    NoAddress,
    /// The address is unspecified (all addresses).
    #[error(
        "{0} is the wildcard address; name the local addresses to use, because a socket is bound to each"
    )]
    Unspecified(SocketAddr),
    /// No address of this machine is usable.
    #[error(transparent)]
    NoUsableAddress(RouteError),
    /// An IP address was given twice.
    #[error("{0} was given twice; an endpoint has one socket for each address of an interface")]
    Twice(IpAddr),
    /// Several interfaces have the address, and the system does not bind the socket to one of them.
    #[error(
        "{address} is an address of {interface} and of {other}, and the system does not bind the socket to {interface}: {why}; give one of the two another address"
    )]
    Ambiguous {
        /// Address of the socket.
        address: IpAddr,
        /// Interface of the socket.
        interface: String,
        /// Other interface with the address.
        other: String,
        /// Error of the system.
        why: String,
    },
    /// SCTP does not permit port 0.
    #[error("0 is not an SCTP port; choose one from 1 to 65535, or omit it")]
    PortZero,
    /// The system refused the socket.
    #[error(
        "cannot bind {address}: {source}; check that the address is this machine's and that no other program has the port"
    )]
    Socket {
        /// Address of the socket.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The system provided no random bytes.
    #[error("the system gave no random bytes ({0}); without them tags and cookies could be guessed")]
    Entropy(String),
    /// There is no runtime for the endpoint's task.
    #[error("no tokio runtime is active; call this from a task, or enter a runtime first")]
    NoRuntime,
}

/// Reason for which a local address could not be added, removed or withheld.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The endpoint does not have the address.
    #[error("{address} is not among the endpoint's addresses ({known:?}); name one of them")]
    Unknown {
        /// Requested address.
        address: IpAddr,
        /// Addresses of the endpoint.
        known: Vec<IpAddr>,
    },
    /// An association has no other active path than those of the address, or no new one could begin.
    #[error("{0} has the only usable path; restore another one first, or end the association")]
    LastUsable(IpAddr),
    /// The endpoint's task has ended.
    #[error("the endpoint has ended: its runtime has stopped; bind a new one")]
    EndpointGone,
}

/// Reason for which a path could not be added or removed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// The endpoint has no socket for the local address of the path.
    #[error("{local} is none of the endpoint's addresses ({known:?}); bind it, or leave the path out")]
    NoSuchLocal {
        /// Requested address.
        local: IpAddr,
        /// Addresses of the endpoint.
        known: Vec<IpAddr>,
    },
    /// The local and remote address have different IP versions.
    #[error("{local} and {remote} are of different IP versions; both ends of a path need the same")]
    Family {
        /// Local address.
        local: IpAddr,
        /// Address of the peer.
        remote: IpAddr,
    },
    /// The peer's UDP port is 0.
    #[error("a peer has no port 0; name its UDP port")]
    PortZero,
    /// Another association has a path to this address and port, and to the same SCTP port.
    #[error("{0} belongs to another association with this SCTP port; end that one first")]
    Taken(SocketAddr),
    /// The association refused the path.
    #[error(transparent)]
    Refused(#[from] anabranch_core::PathError),
    /// The association is closed, or the endpoint's task has ended.
    #[error("the association is over; open a new one with the paths it is to have")]
    Closed,
}

/// Reason for which an association could not be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The peer's name cannot be read or resolved.
    #[error(transparent)]
    Target(TargetError),
    /// No path leads to the peer.
    #[error(transparent)]
    Route(RouteError),
    /// One of the paths cannot be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The peer's SCTP port is 0.
    #[error("a peer has no SCTP port 0; name one from 1 to 65535")]
    PortZero,
    /// One of the addresses belongs to a peer that is already associated with the endpoint.
    #[error(
        "there is an association with {0} and this SCTP port already; a second one would replace it, use another endpoint"
    )]
    Exists(SocketAddr),
    /// The endpoint refused the association.
    #[error(transparent)]
    Refused(#[from] anabranch_core::ConnectError),
    /// All paths begin at links that are [barred](crate::LinkUse::Barred).
    #[error(
        "every path begins at a link that has reached its limit, or whose bytes cannot be counted ({}); use another link, or wait for its next period",
        .0.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
    )]
    Barred(Vec<IpAddr>),
    /// The peer did not answer on any path.
    #[error(
        "no answer arrived on any path; check addresses, UDP ports and firewalls, and that the peer is listening and accepts this endpoint"
    )]
    NoAnswer,
    /// The system or the network refused the first packet of the handshake on every path.
    #[error("{}", each(.0))]
    Unreachable(Vec<RefusedPath>),
    /// The handshake was answered with an ABORT. Any host on the path may have sent it.
    #[error("the peer refuses associations; check its SCTP port, and whether it accepts any or is full")]
    RefusedByPeer,
    /// The endpoints have no protection in common, according to plaintext packets. Any host on the path may have sent them.
    #[error("the association could not be protected: {0}")]
    NotProtected(&'static str),
    /// The local endpoint rejects the peer's proved identity, or its own settings rule out keys.
    #[error("the association could not be protected: {0}")]
    NotAccepted(&'static str),
    /// The peer has proved its identity and rejects that of this endpoint. The result is final: another attempt fails too.
    #[error("{why}")]
    Denied {
        /// Message about the alert.
        why: &'static str,
        /// Proved identity of the peer.
        by: Option<Box<PeerIdentity>>,
    },
    /// The association ended during the key exchange, without a proof of the cause.
    #[error("the connection ended while keys were agreed on; possibly {0}; try again")]
    KeysInterrupted(&'static str),
    /// The handshake was interrupted.
    #[error("the handshake broke off: {0}; try again")]
    Failed(CloseReason),
    /// The endpoint's task has ended.
    #[error("the endpoint has ended: its runtime has stopped; bind a new one")]
    EndpointGone,
}

/// Lists the reasons, each once.
fn each(refused: &[RefusedPath]) -> String {
    let mut reasons: Vec<String> = refused.iter().map(RefusedPath::to_string).collect();
    reasons.dedup();
    reasons.join("; ")
}

impl ConnectError {
    /// Returns `true` if an unchanged attempt may succeed: the peer was restarted, is busy, or an attacker on the path has ended
    /// the attempt. Returns `false` for a peer that has not answered at all.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RefusedByPeer | Self::KeysInterrupted(_) | Self::Failed(_) => true,
            Self::Target(_)
            | Self::Route(_)
            | Self::Path(_)
            | Self::PortZero
            | Self::Exists(_)
            | Self::Refused(_)
            | Self::Barred(_)
            | Self::NoAnswer
            | Self::Unreachable(_)
            | Self::NotProtected(_)
            | Self::NotAccepted(_)
            | Self::Denied { .. }
            | Self::EndpointGone => false,
        }
    }

    /// Returns `true` if the answer that ended the attempt is probably the peer's, but any host on the path could have forged it. A
    /// few further attempts distinguish the two cases.
    pub fn is_unproven(&self) -> bool {
        matches!(self, Self::NotProtected(_))
    }
}

/// Reason for which an association was closed other than gracefully.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CloseReason {
    /// The association was aborted.
    #[error(
        "the association ended early: {0}; undelivered messages are lost, open a new association to continue"
    )]
    Aborted(AbortReason),
    /// The last path began at a link that became [barred](crate::LinkUse::Barred).
    #[error(
        "the limit of the last usable link is used up, or its bytes cannot be counted; use another link, or wait for its next period"
    )]
    Barred,
    /// The peer shut down before the last accepted messages were sent.
    #[error(
        "the peer shut down first and {messages} accepted messages were not sent; agree with the peer on who ends"
    )]
    Undelivered {
        /// Number of accepted messages that were not sent.
        messages: usize,
    },
    /// The peer restarted during the shutdown.
    #[error(
        "the peer restarted during the shutdown; what was queued is lost, open a new association to send it again"
    )]
    Restarted,
    /// The endpoint's task has ended.
    #[error("the endpoint has ended: its runtime has stopped; bind a new one and connect again")]
    EndpointGone,
}

/// Reason for which a message was not accepted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The message cannot be sent on this association, or the association is closing.
    #[error(transparent)]
    Refused(#[from] anabranch_core::SendError),
    /// The application uses streams, so ordered messages belong to them.
    #[error(
        "ordered messages belong to streams on this association; open a stream, or send the message unordered"
    )]
    BelongsToStreams,
    /// The payload protocol identifier is that of the messages that control streams.
    #[error("the payload protocol identifier is reserved for the control of streams; choose another")]
    ReservedProtocol,
    /// The association is closed.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

/// Reason for which no message follows, other than a graceful end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvError {
    /// The peer restarted. Reported once, between the last message of its previous incarnation and the first of the new one.
    #[error(
        "the peer restarted: queued and unread messages are lost, and the association is up again; send them again"
    )]
    Restarted,
    /// The association is closed.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

/// Reason for which no further association follows.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint does not accept associations, or was stopped.
    #[error(
        "this endpoint does not accept associations, or stopped accepting them: bind it with `EndpointBuilder::accept`"
    )]
    NotAccepting,
    /// The endpoint's task has ended.
    #[error("the endpoint has ended: its runtime has stopped; bind a new one")]
    EndpointGone,
}
