//! Next hops of IPv4 destinations according to Linux.
//!
//! The kernel does not report unreachable destinations to a socket that is bound to an interface. If the interface has no route,
//! the kernel treats the destination as a neighbour. If the destination answers no ARP request, the kernel sends an ICMP message to
//! itself over loopback. A socket that is bound to another interface does not receive this message.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::linux::request;

/// Returns `true` if a routing table has a route from this address through the interface.
pub(super) fn has_route(local: Ipv4Addr, interface: u32, remote: Ipv4Addr) -> bool {
    route(local, interface, remote, RouteFlags::FibMatch).is_ok()
}

/// Returns `true` if the next hop to this destination does not answer ARP requests.
pub(super) fn is_silent(local: Ipv4Addr, interface: u32, remote: Ipv4Addr) -> bool {
    let Ok(route) = route(local, interface, remote, RouteFlags::empty()) else { return false };
    let next_hop = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => Some(Some(*gateway)),
        // IPv6 neighbour, whose silence the kernel reports.
        RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => Some(None),
        _ => None,
    });
    next_hop.unwrap_or(Some(remote)).is_some_and(|next_hop| has_failed(interface, next_hop))
}

fn route(local: Ipv4Addr, interface: u32, remote: Ipv4Addr, flags: RouteFlags) -> io::Result<RouteMessage> {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 32,
        source_prefix_length: 32,
        flags,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(IpAddr::from(remote).into()),
        RouteAttribute::Source(IpAddr::from(local).into()),
        RouteAttribute::Oif(interface),
    ];
    let answers = request(RouteNetlinkMessage::GetRoute(message), NLM_F_ACK)?;
    let mut routes = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewRoute(route) => Some(route),
        _ => None,
    });
    routes.next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn has_failed(interface: u32, neighbour: Ipv4Addr) -> bool {
    let mut message = NeighbourMessage::default();
    message.header =
        NeighbourHeader { family: AddressFamily::Inet, ifindex: interface, ..NeighbourHeader::default() };
    message.attributes = vec![NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbour))];
    // A neighbour that is not in the table causes an error, and has not failed.
    let answers = request(RouteNetlinkMessage::GetNeighbour(message), NLM_F_ACK).unwrap_or_default();
    answers.iter().any(|answer| match answer {
        RouteNetlinkMessage::NewNeighbour(found) => found.header.state == NeighbourState::Failed,
        _ => false,
    })
}
