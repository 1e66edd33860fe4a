//! Addresses of paths and packets.

use std::net::{IpAddr, SocketAddr};

/// Addresses of a path, or of a packet on it.
///
/// ```
/// use anabranch_core::PathAddress;
/// use std::net::IpAddr;
///
/// let (local, remote) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 7]));
/// assert_eq!(PathAddress::from((local, remote)).udp_port, None);
/// assert_eq!(PathAddress::over_udp(local, (remote, 9899).into()).udp_port, Some(9899));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathAddress {
    /// Local address.
    pub local: IpAddr,
    /// Index of the interface that packets use; 0 for the one of the routing table. Two interfaces may have the same address.
    pub interface: u32,
    /// Address of the peer.
    pub remote: IpAddr,
    /// UDP port of the peer if packets are encapsulated (RFC 6951). For a new path, `None` means the configured port.
    pub udp_port: Option<u16>,
}

impl PathAddress {
    /// Returns a path whose packets are sent to this UDP port.
    pub const fn over_udp(local: IpAddr, remote: SocketAddr) -> Self {
        PathAddress { local, interface: 0, remote: remote.ip(), udp_port: Some(remote.port()) }
    }

    /// Returns the path that begins at this local end.
    pub const fn from_end(self, end: LocalEnd) -> Self {
        PathAddress { local: end.address, interface: end.interface, ..self }
    }

    /// Returns the local end.
    pub const fn local_end(&self) -> LocalEnd {
        LocalEnd { address: self.local, interface: self.interface }
    }

    /// Returns `true` if another path has the same ends. The UDP port may differ.
    pub(crate) fn same_hosts(&self, other: &PathAddress) -> bool {
        (self.local_end(), self.remote) == (other.local_end(), other.remote)
    }
}

/// Local end of a path: an address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalEnd {
    /// Address of the interface.
    pub address: IpAddr,
    /// Index of the interface; 0 for the one of the routing table.
    pub interface: u32,
}

/// Returns an address without an interface.
impl From<IpAddr> for LocalEnd {
    fn from(address: IpAddr) -> Self {
        LocalEnd { address, interface: 0 }
    }
}

/// Returns a local and a remote address, without a UDP port.
impl From<(IpAddr, IpAddr)> for PathAddress {
    fn from((local, remote): (IpAddr, IpAddr)) -> Self {
        PathAddress { local, interface: 0, remote, udp_port: None }
    }
}

/// Addresses and length of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) address: PathAddress,
    /// Length of the SCTP packet, which is the UDP payload.
    pub(crate) bytes: usize,
}

/// Key of a peer at one of its addresses. Two peers behind one NAT differ in the UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerKey {
    pub(crate) remote: IpAddr,
    pub(crate) udp_port: Option<u16>,
    pub(crate) sctp_port: u16,
}

impl PeerKey {
    pub(crate) fn new(address: &PathAddress, sctp_port: u16) -> Self {
        PeerKey { remote: address.remote, udp_port: address.udp_port, sctp_port }
    }
}
