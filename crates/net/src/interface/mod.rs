//! Addresses of this machine, and the obstacles to using them without an explicit request.

#[cfg(not(feature = "interfaces"))]
mod absent;
#[cfg(all(target_os = "linux", feature = "interfaces"))]
mod linux;
#[cfg(all(target_os = "linux", feature = "interfaces"))]
mod next_hop;
#[cfg(feature = "interfaces")]
mod system;
mod watch;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::{InterfaceMtu, LocalEnd};
use socket2::{Domain, Protocol, Socket, Type};

#[cfg(not(feature = "interfaces"))]
pub(crate) use absent::interface_index;
#[cfg(not(feature = "interfaces"))]
pub use absent::{interface_name, local_addresses};
#[cfg(feature = "interfaces")]
pub(crate) use system::interface_index;
#[cfg(feature = "interfaces")]
pub use system::{interface_name, local_addresses};
pub use watch::{Change, Watcher};

/// Kind of network to which an interface leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Loopback link of this machine.
    Loopback,
    /// External network: hardware, links on top of hardware (a bond, a VLAN, a bridge with a network card as a port), or the way
    /// out of a container.
    Outside(String),
    /// Software link: a tunnel of a VPN, a bridge of containers, a pair of ends on this machine.
    Virtual(String),
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkKind::Loopback => f.write_str("loopback"),
            LinkKind::Outside(kind) | LinkKind::Virtual(kind) => f.write_str(kind),
        }
    }
}

/// Reason for which an address is used only on explicit request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The interface is down.
    Down,
    /// The interface has no carrier: no cable or access point is connected.
    NoCarrier,
    /// The interface leads to this machine only.
    Loopback,
    /// The address is valid only on its link.
    LinkLocal,
    /// IPv6 privacy address, which expires within days (RFC 8981).
    Temporary,
    /// IPv6 address that new communication must not use (RFC 4862 section 5.5.4).
    Deprecated,
    /// IPv6 address whose uniqueness is not verified yet, or was disproved (RFC 4862 section 5.4).
    Tentative,
    /// Software interface, such as a VPN: traffic is not routed there without a request.
    Virtual(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Down => f.write_str("the interface is down"),
            Obstacle::NoCarrier => f.write_str("nothing is connected to the interface"),
            Obstacle::Loopback => f.write_str("leads to this machine only"),
            Obstacle::LinkLocal => f.write_str("link-local"),
            Obstacle::Temporary => f.write_str("temporary"),
            Obstacle::Deprecated => f.write_str("deprecated"),
            Obstacle::Tentative => f.write_str("not known to be unique"),
            Obstacle::Virtual(kind) => write!(f, "virtual interface ({kind})"),
        }
    }
}

/// Address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// IP address.
    pub address: IpAddr,
    /// Prefix length of its network, in bits.
    pub prefix_bits: u8,
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface.
    pub index: u32,
    /// Kind of network to which the interface leads.
    pub kind: LinkKind,
    /// MTU of the interface in bytes, if the system reports it.
    pub mtu_bytes: Option<u32>,
    /// Set if the interface is up.
    pub up: bool,
    /// Reason for which paths begin here only on explicit request; the first one if there are several.
    pub obstacle: Option<Obstacle>,
}

impl LocalAddress {
    /// Returns the local end of paths that begin here.
    pub fn end(&self) -> LocalEnd {
        LocalEnd { address: self.address, interface: self.index }
    }
}

/// MTU of Ethernet, used if the system reports none for an interface.
const UNKNOWN_MTU: usize = 1500;

/// Returns the MTUs of local ends, each given with the interface to which it is bound, if any.
pub(crate) fn interface_mtus<'a>(
    locals: impl Iterator<Item = (LocalEnd, Option<&'a str>)>,
) -> Vec<InterfaceMtu> {
    let known = local_addresses();
    let of = |local: LocalEnd, bound| mtu_of(&known, local.address, bound);
    locals.map(|(local, bound)| InterfaceMtu { local, mtu_bytes: of(local, bound) }).collect()
}

fn mtu_of(known: &[LocalAddress], local: IpAddr, bound: Option<&str>) -> usize {
    let of_address = || known.iter().find(|found| found.address == local);
    // Linux treats every address of the loopback network as its own, and lists the first.
    let of_loopback =
        || known.iter().find(|found| found.kind == LinkKind::Loopback && is_in_network(local, found));
    let found = match bound {
        Some(name) => known.iter().find(|found| found.interface == name),
        None => of_address().or_else(of_loopback),
    };
    let mtu = found.and_then(|found| found.mtu_bytes).and_then(|mtu| usize::try_from(mtu).ok());
    mtu.unwrap_or(UNKNOWN_MTU)
}

/// Returns `true` if an address is in the network of a local one.
pub(crate) fn is_in_network(address: IpAddr, network: &LocalAddress) -> bool {
    let same = |ours: u128, theirs: u128, width: u32| {
        let host_bits = width.saturating_sub(u32::from(network.prefix_bits));
        (ours ^ theirs).checked_shr(host_bits).unwrap_or(0) == 0
    };
    match (address, network.address) {
        (IpAddr::V4(ours), IpAddr::V4(theirs)) => same(ours.to_bits().into(), theirs.to_bits().into(), 32),
        (IpAddr::V6(ours), IpAddr::V6(theirs)) => same(ours.to_bits(), theirs.to_bits(), 128),
        _ => false,
    }
}

/// Checks that the system has a route from a local address to one of the peer's, through the interface if one is named and the
/// system supports that. Sends no packets.
///
/// # Errors
/// Returns the error of the system, for example that the network is unreachable.
pub fn check_route(local: IpAddr, interface: Option<&str>, remote: SocketAddr) -> io::Result<()> {
    connect(local, interface, remote)?;
    let Some(interface) = interface else { return Ok(()) };
    // If an interface is given, the kernel treats a destination without a route as a neighbour. The destination can be a neighbour
    // although the route leads through another interface, because a host answers for all of its addresses.
    match connect(local, None, remote) {
        Err(error) if !has_route(local, interface, remote.ip()) => Err(error),
        _ => Ok(()),
    }
}

fn connect(local: IpAddr, interface: Option<&str>, remote: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(remote), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(interface) = interface {
        // The same binding and fall-back as for a socket of the host.
        let _ = bind_to_device(&socket, interface);
    }
    socket.bind(&SocketAddr::new(local, 0).into())?;
    socket.connect(&remote.into())
}

/// Returns `true` if a routing table has a route through the interface, or if the system does not report that.
#[cfg(all(target_os = "linux", feature = "interfaces"))]
fn has_route(local: IpAddr, interface: &str, remote: IpAddr) -> bool {
    match (local, remote) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            interface_index(interface).is_some_and(|index| next_hop::has_route(local, index, remote))
        }
        // The kernel does not treat IPv6 destinations as neighbours.
        _ => true,
    }
}

#[cfg(not(all(target_os = "linux", feature = "interfaces")))]
fn has_route(_local: IpAddr, _interface: &str, _remote: IpAddr) -> bool {
    true
}

/// Returns `true` if the next hop of this path does not answer, as far as the system reports that.
#[cfg(all(target_os = "linux", feature = "interfaces"))]
pub(crate) fn is_neighbour_silent(local: LocalEnd, remote: IpAddr) -> bool {
    match (local.address, remote) {
        (IpAddr::V4(address), IpAddr::V4(remote)) if local.interface != 0 => {
            next_hop::is_silent(address, local.interface, remote)
        }
        // The error queue of the socket reports all other unreachable destinations.
        _ => false,
    }
}

#[cfg(not(all(target_os = "linux", feature = "interfaces")))]
pub(crate) fn is_neighbour_silent(_local: LocalEnd, _remote: IpAddr) -> bool {
    false
}

/// Binds a socket to an interface, so that packets are sent only through it, regardless of the routing table.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn bind_to_device(socket: &Socket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

/// Binds a socket to an interface, so that packets are sent only through it, regardless of the routing table.
#[cfg(target_vendor = "apple")]
pub(crate) fn bind_to_device(socket: &Socket, interface: &str) -> io::Result<()> {
    let index =
        interface_index(interface).and_then(std::num::NonZeroU32::new).ok_or(io::ErrorKind::NotFound)?;
    if socket.domain()? == Domain::IPV6 {
        socket.bind_device_by_index_v6(Some(index))
    } else {
        socket.bind_device_by_index_v4(Some(index))
    }
}

/// Returns an error: this system has no safe call that binds a socket to an interface.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn bind_to_device(_socket: &Socket, _interface: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(interface: &str, address: &str, prefix_bits: u8, mtu_bytes: Option<u32>) -> LocalAddress {
        let address: IpAddr = address.parse().expect("an address");
        let kind = match interface {
            "lo" => LinkKind::Loopback,
            _ => LinkKind::Outside("hardware".to_owned()),
        };
        let interface = interface.to_owned();
        LocalAddress { address, prefix_bits, interface, index: 1, kind, mtu_bytes, up: true, obstacle: None }
    }

    #[test]
    fn packets_are_as_large_as_the_interface_of_their_address_takes() {
        let known = [
            on("lo", "127.0.0.1", 8, Some(65_536)),
            on("lo", "::1", 128, Some(65_536)),
            on("near", "192.0.2.7", 24, Some(1500)),
            on("far", "192.0.2.8", 24, Some(9000)),
            on("dumb", "198.51.100.1", 24, None),
        ];
        let of = |address: &str, bound| mtu_of(&known, address.parse().expect("an address"), bound);
        assert_eq!([of("192.0.2.7", None), of("192.0.2.8", None)], [1500, 9000]);
        assert_eq!(of("192.0.2.7", Some("far")), 9000, "it leaves there, whoever has the address");
        assert_eq!(["127.0.0.1", "127.0.10.2", "::1"].map(|address| of(address, None)), [65_536; 3]);
        let unknown = ["198.51.100.1", "192.0.2.9", "::2", "2001:db8::1"];
        assert_eq!(unknown.map(|address| of(address, None)), [1500; 4]);
        assert_eq!(of("127.0.0.1", Some("gone")), 1500);
    }
}
