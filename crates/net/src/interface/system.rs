//! Addresses and interfaces that the system reports.

use std::net::IpAddr;

use netdev::Interface;

#[cfg(target_os = "linux")]
use super::linux;
use super::{LinkKind, LocalAddress, Obstacle};

/// Returns all current addresses of this machine, by interface in the system's order.
pub fn local_addresses() -> Vec<LocalAddress> {
    let mut interfaces = netdev::get_interfaces();
    interfaces.sort_by_key(|interface| interface.index);
    let kinds = Kinds::read();
    interfaces.iter().flat_map(|interface| of_interface(interface, kinds.of(interface))).collect()
}

fn of_interface(interface: &Interface, kind: LinkKind) -> Vec<LocalAddress> {
    let v4 =
        interface.ipv4.iter().map(|net| (IpAddr::V4(net.addr()), net.prefix_len(), AddressState::default()));
    let v6 = interface.ipv6.iter().enumerate().map(|(at, net)| {
        let flags = interface.ipv6_addr_flags.get(at).copied().unwrap_or_default();
        let state = AddressState {
            temporary: flags.temporary,
            deprecated: flags.deprecated,
            tentative: flags.tentative || flags.duplicated,
        };
        (IpAddr::V6(net.addr()), net.prefix_len(), state)
    });
    let link = LinkState { up: interface.is_up(), running: interface.is_running() };
    v4.chain(v6)
        .map(|(address, prefix_bits, state)| LocalAddress {
            address,
            prefix_bits,
            interface: interface.name.clone(),
            index: interface.index,
            mtu_bytes: interface.mtu,
            up: link.up,
            obstacle: obstacle(address, state, link, &kind),
            kind: kind.clone(),
        })
        .collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct AddressState {
    temporary: bool,
    deprecated: bool,
    tentative: bool,
}

#[derive(Clone, Copy, Debug)]
struct LinkState {
    up: bool,
    running: bool,
}

fn obstacle(address: IpAddr, state: AddressState, link: LinkState, kind: &LinkKind) -> Option<Obstacle> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    match kind {
        _ if !link.up => Some(Obstacle::Down),
        LinkKind::Loopback => Some(Obstacle::Loopback),
        LinkKind::Virtual(kind) => Some(Obstacle::Virtual(kind.clone())),
        LinkKind::Outside(_) if address.is_loopback() => Some(Obstacle::Loopback),
        LinkKind::Outside(_) if link_local => Some(Obstacle::LinkLocal),
        LinkKind::Outside(_) if state.tentative => Some(Obstacle::Tentative),
        LinkKind::Outside(_) if state.deprecated => Some(Obstacle::Deprecated),
        LinkKind::Outside(_) if state.temporary => Some(Obstacle::Temporary),
        // The carrier is checked last, because it may return: an address without other obstacles keeps its socket.
        LinkKind::Outside(_) if !link.running => Some(Obstacle::NoCarrier),
        LinkKind::Outside(_) => None,
    }
}

/// Returns the index of an interface.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    netdev::get_interfaces().into_iter().find(|interface| interface.name == name).map(|found| found.index)
}

/// Returns the name of an interface, such as that of [`PathSnapshot::interface`](crate::PathSnapshot::interface).
pub fn interface_name(index: u32) -> Option<String> {
    netdev::get_interfaces().into_iter().find(|interface| interface.index == index).map(|found| found.name)
}

/// Kinds of interfaces, on systems that report more than `netdev` does.
struct Kinds {
    #[cfg(target_os = "linux")]
    links: Vec<linux::Link>,
}

impl Kinds {
    #[cfg(target_os = "linux")]
    fn read() -> Self {
        // If the list is not available, the properties of the interfaces decide.
        Kinds { links: linux::links().unwrap_or_default() }
    }

    #[cfg(not(target_os = "linux"))]
    fn read() -> Self {
        Kinds {}
    }

    fn of(&self, interface: &Interface) -> LinkKind {
        if interface.is_loopback() {
            return LinkKind::Loopback;
        }
        #[cfg(target_os = "linux")]
        if let Some(kind) = linux::kind_of(&self.links, interface.index) {
            return kind;
        }
        let name = interface.if_type.name().to_lowercase();
        if interface.is_tun() || !interface.is_physical() {
            LinkKind::Virtual(name)
        } else {
            LinkKind::Outside(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::interface::check_route;

    const RUNNING: LinkState = LinkState { up: true, running: true };

    fn found(address: &str, state: AddressState) -> Option<Obstacle> {
        let address = address.parse().expect("an address");
        obstacle(address, state, RUNNING, &LinkKind::Outside("ethernet".to_owned()))
    }

    #[test]
    fn an_ordinary_address_of_a_running_interface_may_be_used() {
        assert_eq!(found("192.0.2.7", AddressState::default()), None);
        assert_eq!(found("2001:db8::7", AddressState::default()), None);
        assert_eq!(found("fd00::7", AddressState::default()), None);
    }

    #[test]
    fn addresses_that_mean_something_on_one_link_only_are_refused() {
        assert_eq!(found("169.254.3.4", AddressState::default()), Some(Obstacle::LinkLocal));
        assert_eq!(found("fe80::1", AddressState::default()), Some(Obstacle::LinkLocal));
        assert_eq!(found("127.0.0.2", AddressState::default()), Some(Obstacle::Loopback));
    }

    #[test]
    fn addresses_that_will_not_last_are_refused() {
        let none = AddressState::default();
        for (state, obstacle) in [
            (AddressState { temporary: true, ..none }, Obstacle::Temporary),
            (AddressState { deprecated: true, ..none }, Obstacle::Deprecated),
            (AddressState { temporary: true, deprecated: true, ..none }, Obstacle::Deprecated),
            (AddressState { tentative: true, ..none }, Obstacle::Tentative),
        ] {
            assert_eq!(found("2001:db8::7", state), Some(obstacle));
        }
    }

    #[test]
    fn an_interface_that_is_off_unplugged_or_made_by_software_is_refused() {
        let address = IpAddr::from([192, 0, 2, 7]);
        let of = |link, kind: &LinkKind| obstacle(address, AddressState::default(), link, kind);
        let card = LinkKind::Outside("ethernet".to_owned());
        assert_eq!(of(LinkState { up: false, running: false }, &card), Some(Obstacle::Down));
        assert_eq!(of(LinkState { up: true, running: false }, &card), Some(Obstacle::NoCarrier));
        let tunnel = LinkKind::Virtual("wireguard".to_owned());
        assert_eq!(of(RUNNING, &tunnel), Some(Obstacle::Virtual("wireguard".to_owned())));
        assert_eq!(of(RUNNING, &LinkKind::Loopback), Some(Obstacle::Loopback));
    }

    #[test]
    fn loopback_is_found_and_reaches_itself() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let addresses = local_addresses();
        let found = addresses.iter().find(|found| found.address == loopback).expect("127.0.0.1");
        assert_eq!((&found.kind, &found.obstacle), (&LinkKind::Loopback, &Some(Obstacle::Loopback)));
        assert_eq!(found.prefix_bits, 8);
        assert!(found.mtu_bytes.is_some_and(|mtu| mtu >= 1280));
        assert!(check_route(loopback, None, SocketAddr::from(([127, 0, 0, 2], 9))).is_ok());
        // No machine has an address for documentation (RFC 5737), so packets cannot be sent from it.
        let foreign = IpAddr::from([203, 0, 113, 77]);
        assert!(check_route(loopback, Some("lo"), SocketAddr::from(([127, 0, 0, 2], 9))).is_ok());
        assert!(check_route(foreign, None, SocketAddr::from(([127, 0, 0, 2], 9))).is_err());
    }
}
