//! Peers and the addresses that lead to them.

use std::net::{IpAddr, SocketAddr};

use crate::config::DEFAULT_SCTP_PORT;

/// A pair of addresses that an association is to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// One of the host's addresses.
    pub local: IpAddr,
    /// An address of the peer's, and its UDP port there.
    pub remote: SocketAddr,
}

/// Whom to connect to, and how to get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub(crate) routes: Vec<Route>,
    pub(crate) sctp_port: u16,
}

impl Peer {
    /// A peer at the default SCTP port. The first route is the primary path; the handshake tries all of them in turn.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        Peer { routes: routes.into_iter().collect(), sctp_port: DEFAULT_SCTP_PORT }
    }

    /// With another SCTP port.
    pub fn sctp_port(self, port: u16) -> Self {
        Peer { sctp_port: port, ..self }
    }
}
