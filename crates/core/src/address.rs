//! Where paths begin and end, and where packets come from.

use std::net::{IpAddr, SocketAddr};

/// The addresses of a path, or of a packet on it.
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
    /// Our address.
    pub local: IpAddr,
    /// Index of the interface that packets leave and arrive through; 0 where the routing table decides. Two interfaces may have the
    /// same address.
    pub interface: u32,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port if packets are encapsulated (RFC 6951). Where a path is opened, `None` takes the configured port.
    pub udp_port: Option<u16>,
}

impl PathAddress {
    /// A path whose packets are sent to a UDP port of its own.
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
    /// The address.
    pub address: IpAddr,
    /// Index of the interface; 0 where the routing table decides.
    pub interface: u32,
}

/// An address without an interface.
impl From<IpAddr> for LocalEnd {
    fn from(address: IpAddr) -> Self {
        LocalEnd { address, interface: 0 }
    }
}

/// A local and a remote address, without a UDP port.
impl From<(IpAddr, IpAddr)> for PathAddress {
    fn from((local, remote): (IpAddr, IpAddr)) -> Self {
        PathAddress { local, interface: 0, remote, udp_port: None }
    }
}

/// Where a packet came from and went to, and how long it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) address: PathAddress,
    /// The SCTP packet, which is what UDP carries.
    pub(crate) bytes: usize,
}

/// Whom an association is with, at one of its addresses. Two peers behind one translated address differ in the UDP port.
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
