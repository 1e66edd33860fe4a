//! Peers and the addresses of their paths.

use std::net::SocketAddr;

use anabranch_core::PathAddress;

use crate::config::{DEFAULT_SCTP_PORT, DEFAULT_UDP_PORT};
use crate::protection::Protection;

/// Returns the peer's address and UDP port on a path.
pub fn udp_address(path: PathAddress) -> SocketAddr {
    SocketAddr::new(path.remote, path.udp_port.unwrap_or(DEFAULT_UDP_PORT))
}

/// Peer: the paths to it, and its SCTP port.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) paths: Vec<PathAddress>,
    pub(crate) sctp_port: u16,
    pub(crate) protection: Option<Protection>,
}

impl Peer {
    /// Creates a peer at the default SCTP port. The first path is the primary one; the handshake tries all of them in turn. The
    /// default UDP port of a path is [`DEFAULT_UDP_PORT`].
    pub fn new(paths: impl IntoIterator<Item = PathAddress>) -> Self {
        Peer { paths: paths.into_iter().collect(), sctp_port: DEFAULT_SCTP_PORT, protection: None }
    }

    /// Sets another SCTP port.
    pub fn sctp_port(self, port: u16) -> Self {
        Peer { sctp_port: port, ..self }
    }

    /// Sets a protection in place of the endpoint's, with credentials for the expected peer.
    pub fn protection(self, protection: Protection) -> Self {
        Peer { protection: Some(protection), ..self }
    }
}
