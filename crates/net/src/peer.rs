//! Peers and the addresses that lead to them.

use std::net::SocketAddr;

use anabranch_core::PathAddress;

use crate::config::{DEFAULT_SCTP_PORT, DEFAULT_UDP_PORT};
use crate::protection::Protection;

/// The peer's address on a path with its UDP port there.
pub fn udp_address(path: PathAddress) -> SocketAddr {
    SocketAddr::new(path.remote, path.udp_port.unwrap_or(DEFAULT_UDP_PORT))
}

/// A peer: the paths to it, and its SCTP port.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) paths: Vec<PathAddress>,
    pub(crate) sctp_port: u16,
    pub(crate) protection: Option<Protection>,
}

impl Peer {
    /// A peer at the default SCTP port. The first path is the primary one; the handshake tries all of them in turn. Where a path
    /// names no UDP port, it is [`DEFAULT_UDP_PORT`].
    pub fn new(paths: impl IntoIterator<Item = PathAddress>) -> Self {
        Peer { paths: paths.into_iter().collect(), sctp_port: DEFAULT_SCTP_PORT, protection: None }
    }

    /// With another SCTP port.
    pub fn sctp_port(self, port: u16) -> Self {
        Peer { sctp_port: port, ..self }
    }

    /// Protected in this way rather than in the host's: with credentials that say who is expected there.
    pub fn protection(self, protection: Protection) -> Self {
        Peer { protection: Some(protection), ..self }
    }
}
