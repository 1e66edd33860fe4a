//! Errors, each with what can be done about it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::AbortReason;
use anabranch_keying::PeerIdentity;
use thiserror::Error;

use crate::refusals::RefusedPath;

/// Why a host could not be set up.
#[derive(Debug, Error)]
pub enum BindError {
    /// No address was given.
    #[error("give at least one local address")]
    NoAddress,
    /// An address that stands for all addresses.
    #[error(
        "{0} stands for every address of the machine; name those that are to be used, one socket is bound to each"
    )]
    Unspecified(SocketAddr),
    /// An IP address given twice.
    #[error("{0} was given twice; a host has one socket for each address of an interface")]
    Twice(IpAddr),
    /// Several interfaces have the address, and the system does not bind the socket to one of them.
    #[error(
        "{address} is an address of {interface} and of {other}, and the system does not bind the socket to {interface}: {why}; give one of the two another address"
    )]
    Ambiguous {
        /// The address.
        address: IpAddr,
        /// The interface that the socket is for.
        interface: String,
        /// Another interface with the address.
        other: String,
        /// The system's error.
        why: String,
    },
    /// SCTP has no port 0.
    #[error("0 is no SCTP port; take one from 1 to 65535, or leave it out")]
    PortZero,
    /// The system refused the socket.
    #[error(
        "cannot bind {address}: {source}; check that the address is this machine's and that no other program has the port"
    )]
    Socket {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes ({0}); without them tags and cookies could be guessed")]
    Entropy(String),
    /// There is no runtime to run the host's task.
    #[error("there is no tokio runtime here; call this from a task, or enter a runtime first")]
    NoRuntime,
}

/// Why a local address could not be added or removed.
#[derive(Debug, Error)]
pub enum LocalError {
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The address is none of the host's.
    #[error("{address} is none of the host's addresses ({known:?}); there is nothing to remove")]
    Unknown {
        /// The address.
        address: IpAddr,
        /// Those there are.
        known: Vec<IpAddr>,
    },
    /// The host's task is gone.
    #[error("the host is gone: its runtime has stopped; bind a new one")]
    HostGone,
}

/// Why a path could not be added or removed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// It begins at an address that the host has no socket for.
    #[error("{local} is none of the host's addresses ({known:?}); bind it, or leave the path out")]
    NoSuchLocal {
        /// The address.
        local: IpAddr,
        /// Those there are.
        known: Vec<IpAddr>,
    },
    /// IPv4 on one side, IPv6 on the other.
    #[error("{local} and {remote} are of different IP versions; both ends of a path need the same")]
    Family {
        /// Our address.
        local: IpAddr,
        /// The peer's.
        remote: IpAddr,
    },
    /// The peer's UDP port is 0.
    #[error("a peer has no port 0; name its UDP port")]
    PortZero,
    /// Another association has a path to this address and port, and to the same SCTP port.
    #[error("{0} belongs to another association with this SCTP port; end that one first")]
    Taken(SocketAddr),
    /// The association refused.
    #[error(transparent)]
    Refused(#[from] anabranch_core::PathError),
    /// The association is closed, or the host's task is gone.
    #[error("the association is over; open a new one with the paths it is to have")]
    Closed,
}

/// Why an association could not be opened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// One of the paths cannot be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The peer's SCTP port is 0.
    #[error("a peer has no SCTP port 0; name one from 1 to 65535")]
    PortZero,
    /// One of the addresses belongs to a peer that the host is associated with.
    #[error(
        "there is an association with {0} and this SCTP port already; a second one would replace it, use another host"
    )]
    Exists(SocketAddr),
    /// The endpoint refused.
    #[error(transparent)]
    Refused(#[from] anabranch_core::ConnectError),
    /// Nobody answered on any path.
    #[error(
        "nobody answered on any path; check addresses, UDP ports and firewalls, and that the peer is listening and accepts this host"
    )]
    NoAnswer,
    /// The system or the network refused the first packet of the handshake on every path.
    #[error("{}", each(.0))]
    Unreachable(Vec<RefusedPath>),
    /// The handshake was answered with an ABORT. Anyone on the way can have sent it.
    #[error("the peer refuses associations; check its SCTP port, and whether it accepts any or is full")]
    RefusedByPeer,
    /// The sides have no protection in common, as far as packets in the clear show. Anyone on the path can have sent them.
    #[error("the association could not be protected: {0}")]
    NotProtected(&'static str),
    /// This side does not accept the identity that the peer has proved, or cannot agree on keys with its own settings.
    #[error("the association could not be protected: {0}")]
    NotAccepted(&'static str),
    /// The peer has proved its identity, and does not accept this side's. This is its verdict: another attempt gets the same.
    #[error("{why}")]
    Denied {
        /// The alert.
        why: &'static str,
        /// The identity that the peer has proved.
        by: Option<Box<PeerIdentity>>,
    },
    /// The association ended while keys were agreed on, and it is not proved who has ended it, or why.
    #[error("the connection ended while keys were agreed on; possibly {0}; try again")]
    KeysInterrupted(&'static str),
    /// The handshake broke off.
    #[error("the handshake broke off: {0}; try again")]
    Failed(CloseReason),
    /// The host's task is gone.
    #[error("the host is gone: its runtime has stopped; bind a new one")]
    HostGone,
}

/// Lists the reasons, each once.
fn each(refused: &[RefusedPath]) -> String {
    let mut reasons: Vec<String> = refused.iter().map(RefusedPath::to_string).collect();
    reasons.dedup();
    reasons.join("; ")
}

impl ConnectError {
    /// Returns `true` if another attempt may succeed although nothing is changed: the peer was restarted, is busy, or an attacker on the
    /// path has ended the attempt. A peer that has not answered at all is no such case.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RefusedByPeer | Self::KeysInterrupted(_) | Self::Failed(_) => true,
            Self::Path(_)
            | Self::PortZero
            | Self::Exists(_)
            | Self::Refused(_)
            | Self::NoAnswer
            | Self::Unreachable(_)
            | Self::NotProtected(_)
            | Self::NotAccepted(_)
            | Self::Denied { .. }
            | Self::HostGone => false,
        }
    }

    /// Returns `true` if the answer that ended the attempt is most likely the peer's, but can be forged by anyone on the path. A few
    /// further attempts tell both apart.
    pub fn is_unproven(&self) -> bool {
        matches!(self, Self::NotProtected(_))
    }
}

/// Why an association was closed, if not gracefully.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CloseReason {
    /// It was aborted.
    #[error(
        "the association ended early: {0}; what was not delivered by then is lost, open a new one to go on"
    )]
    Aborted(AbortReason),
    /// The peer shut down before the last messages could be handed over.
    #[error(
        "the peer shut down first and {messages} accepted messages were not sent; agree with the peer on who ends"
    )]
    Undelivered {
        /// Messages that were accepted and not sent.
        messages: usize,
    },
    /// The peer restarted during the shutdown.
    #[error(
        "the peer restarted during the shutdown; what was queued is lost, open a new association to send it again"
    )]
    Restarted,
    /// The host's task is gone.
    #[error("the host is gone: its runtime has stopped; bind a new one and connect again")]
    HostGone,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// The message cannot be sent on this association, or it is closing.
    #[error(transparent)]
    Refused(#[from] anabranch_core::SendError),
    /// The association is closed.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

/// Why there is no message, though the association was not closed gracefully.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RecvError {
    /// The peer restarted. Said once, between the last message of its previous incarnation and the first of the new one.
    #[error(
        "the peer restarted: what was queued or unread is lost, and the association is up again; begin anew"
    )]
    Restarted,
    /// The association is closed.
    #[error(transparent)]
    Closed(#[from] CloseReason),
}

/// No further association will come.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AcceptError {
    /// The host does not accept, or was told to stop.
    #[error("this host accepts no associations, or no more: bind it with `HostBuilder::accept`")]
    NotAccepting,
    /// The host's task is gone.
    #[error("the host is gone: its runtime has stopped; bind a new one")]
    HostGone,
}
