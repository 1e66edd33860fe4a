//! Local addresses at which paths begin.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anabranch_core::LocalEnd;

use super::pairing::{LocalChoice, NamedLocal, RemoteChoice};
use crate::interface::{LinkKind, LocalAddress, Obstacle, local_addresses};
use crate::reach::{Reach, leads_to};
use crate::route_error::RouteError;

/// Addresses of this machine.
#[derive(Clone, Debug)]
pub struct LocalAddresses {
    /// Addresses of all interfaces, usable or not.
    pub all: Vec<LocalAddress>,
}

/// Returns `true` if a path may begin there. Paths to this machine begin at loopback addresses only, all others do not.
pub fn is_usable(local: &LocalAddress, to_this_machine: bool) -> bool {
    match (&local.kind, &local.obstacle) {
        (LinkKind::Loopback, Some(Obstacle::Loopback)) => to_this_machine,
        (_, obstacle) => !to_this_machine && obstacle.is_none(),
    }
}

/// Returns `true` if an endpoint that listens on all addresses has a socket there. An interface without a carrier is included, since
/// packets to its address may arrive through another one.
pub(super) fn may_listen(local: &LocalAddress) -> bool {
    is_usable(local, false) || local.obstacle == Some(Obstacle::NoCarrier)
}

impl LocalAddresses {
    /// Reads the current addresses.
    pub fn read() -> Self {
        LocalAddresses { all: local_addresses() }
    }

    /// Selects the local ends of paths to these addresses: the requested ones, or else the usable ones with a route to one of them.
    pub(super) fn choose(&self, asked: &[String], ends: &RemoteChoice) -> Result<LocalChoice, RouteError> {
        if !asked.is_empty() {
            let starts = asked.iter().map(|text| self.start(text));
            return Ok(LocalChoice::Named(starts.collect::<Result<_, _>>()?));
        }
        let to_this_machine = ends.addresses().iter().all(|end| end.ip().is_loopback());
        let leads = |local: &&LocalAddress| ends.addresses().iter().any(|end| leads_to(local, *end));
        let usable = self.all.iter().filter(|local| is_usable(local, to_this_machine));
        let found: Vec<LocalEnd> = usable.filter(leads).map(LocalAddress::end).collect();
        if found.is_empty() {
            Err(self.no_route_error(ends, to_this_machine))
        } else {
            Ok(LocalChoice::Found(found))
        }
    }

    fn no_route_error(&self, remotes: &RemoteChoice, to_this_machine: bool) -> RouteError {
        let locals = self.all.iter().map(|local| {
            let same_version = remotes.addresses().iter().map(SocketAddr::ip);
            let same_version = same_version.filter(|end| end.is_ipv4() == local.address.is_ipv4());
            let why = match &local.obstacle {
                _ if is_usable(local, to_this_machine) => {
                    match same_version.map(|end| end.to_string()).collect::<Vec<_>>() {
                        hosts if hosts.is_empty() => "another IP version".to_owned(),
                        hosts => format!("no route to {}", hosts.join(", ")),
                    }
                }
                Some(obstacle) => obstacle.to_string(),
                None => "the peer is this machine's loopback".to_owned(),
            };
            (local.interface.clone(), local.address, why)
        });
        RouteError::NoRoute { remotes: remotes.addresses().to_vec(), locals: locals.collect() }
    }

    /// Returns the interface of a local end, through which a path to another machine sends.
    pub(super) fn interface_of(&self, end: LocalEnd) -> Option<&str> {
        let local = self.find(end)?;
        (local.kind != LinkKind::Loopback).then_some(local.interface.as_str())
    }

    /// Returns the address of a local end; the first one if the end names no interface.
    fn find(&self, end: LocalEnd) -> Option<&LocalAddress> {
        let mut of_address = self.all.iter().filter(|local| local.address == end.address);
        of_address.find(|local| [0, local.index].contains(&end.interface))
    }

    /// Returns the reach from a local end to a remote address.
    pub(super) fn reach(&self, local: LocalEnd, remote: SocketAddr) -> Reach {
        self.find(local).map_or(Reach::Unknown, |found| Reach::between(found, remote))
    }

    /// Returns `true` if this machine has the address. Packets to this machine pass no interface.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.all.iter().any(|local| local.address == address)
    }

    /// Returns the ends of paths for a named address or interface.
    fn start(&self, text: &str) -> Result<NamedLocal, RouteError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            can_bind(address).map_err(|why| RouteError::CannotBegin { local: address, why })?;
            return self.only_end(address).map(|end| NamedLocal { text: text.to_owned(), ends: vec![end] });
        }
        let of_it: Vec<&LocalAddress> = self.all.iter().filter(|local| local.interface == text).collect();
        let Some(first) = of_it.first() else {
            return Err(self.no_such_interface(text));
        };
        if !first.up {
            return Err(RouteError::InterfaceDown { local: text.to_owned() });
        }
        let ends: Vec<LocalEnd> =
            of_it.iter().filter(|local| may_be_named(local)).map(|local| local.end()).collect();
        match &first.obstacle {
            Some(obstacle) if ends.is_empty() => Err(RouteError::NoAddressOfInterface {
                local: text.to_owned(),
                address: first.address,
                why: obstacle.to_string(),
            }),
            _ => Ok(NamedLocal { text: text.to_owned(), ends }),
        }
    }

    /// Returns the end with an address that the user named. An address of several interfaces is ambiguous.
    fn only_end(&self, address: IpAddr) -> Result<LocalEnd, RouteError> {
        let mut of_address = self.all.iter().filter(|local| local.address == address);
        let Some(first) = of_address.next() else { return Ok(address.into()) };
        let Some(second) = of_address.next() else { return Ok(first.end()) };
        let interfaces = [first.interface.clone(), second.interface.clone()];
        Err(RouteError::Ambiguous { local: address, interfaces })
    }

    fn no_such_interface(&self, text: &str) -> RouteError {
        let mut known: Vec<String> = self.all.iter().map(|local| local.interface.clone()).collect();
        known.dedup();
        RouteError::NoSuchInterface { local: text.to_owned(), known }
    }
}

/// Filter of addresses found while a command runs, at which paths may begin.
pub(super) struct FollowFilter {
    names: Vec<String>,
    ends: Vec<SocketAddr>,
    /// Set if further addresses of the peer may become known, so that a route to the known ones is not required.
    open: bool,
}

impl FollowFilter {
    /// Creates the filter: addresses of the named interfaces, or the usable ones if none was named. Returns `None` if only
    /// addresses were named.
    pub(super) fn new(asked: &[String], ends: &RemoteChoice, open: bool) -> Option<Self> {
        let names: Vec<String> =
            asked.iter().filter(|text| text.parse::<IpAddr>().is_err()).cloned().collect();
        let follows = asked.is_empty() || !names.is_empty();
        follows.then(|| FollowFilter { names, ends: ends.addresses().to_vec(), open })
    }

    /// Returns `true` if a path may begin at a new address.
    pub(super) fn wants(&self, local: &LocalAddress) -> bool {
        let to_this_machine = self.to_this_machine();
        let chosen = match self.names.is_empty() {
            true => is_usable(local, to_this_machine),
            false => self.names.contains(&local.interface) && may_be_named(local),
        };
        chosen && (self.open && !to_this_machine || self.ends.iter().any(|end| leads_to(local, *end)))
    }

    fn to_this_machine(&self) -> bool {
        self.ends.iter().all(|end| end.ip().is_loopback())
    }
}

/// Returns `true` for an address of a named interface. Virtual interfaces and loopback are permitted, because the user named them.
fn may_be_named(local: &LocalAddress) -> bool {
    local.up
        && matches!(local.obstacle, None | Some(Obstacle::Virtual(_) | Obstacle::Loopback))
        && !is_link_local(local.address)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn can_bind(address: IpAddr) -> Result<(), String> {
    if address.is_unspecified() {
        return Err("it is the wildcard address; name an address of an interface".to_owned());
    }
    UdpSocket::bind(SocketAddr::new(address, 0)).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(interface: &str, address: &str, kind: LinkKind, obstacle: Option<Obstacle>) -> LocalAddress {
        let address = address.parse().expect("an address");
        let up = obstacle != Some(Obstacle::Down);
        LocalAddress {
            address,
            prefix_bits: 24,
            interface: interface.to_owned(),
            index: 0,
            kind,
            mtu_bytes: Some(1500),
            up,
            obstacle,
        }
    }

    fn machine() -> LocalAddresses {
        let card = || LinkKind::Outside("hardware".to_owned());
        let bridge = || LinkKind::Virtual("bridge".to_owned());
        LocalAddresses {
            all: vec![
                local("lo", "127.0.0.1", LinkKind::Loopback, Some(Obstacle::Loopback)),
                local("lo", "::1", LinkKind::Loopback, Some(Obstacle::Loopback)),
                local("card0", "198.51.100.3", card(), None),
                local("card0", "fe80::3", card(), Some(Obstacle::LinkLocal)),
                local("card1", "198.51.100.4", card(), Some(Obstacle::Down)),
                local("docker0", "172.17.0.1", bridge(), Some(Obstacle::Virtual("bridge".to_owned()))),
                local("bare", "fe80::4", card(), Some(Obstacle::LinkLocal)),
            ],
        }
    }

    fn resolved(text: &str) -> RemoteChoice {
        let addresses = vec![text.parse().expect("an address")];
        RemoteChoice::Resolved { host: "peer".to_owned(), addresses }
    }

    #[test]
    fn loopback_reaches_loopback_and_usable_addresses_the_rest() {
        let usable = |to_this_machine| {
            let all = machine().all.into_iter().filter(|local| is_usable(local, to_this_machine));
            all.map(|local| local.address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(usable(true), ["127.0.0.1", "::1"]);
        assert_eq!(usable(false), ["198.51.100.3"]);
    }

    #[test]
    fn a_virtual_interface_is_used_only_by_name() {
        let starts = machine().choose(&["docker0".to_owned()], &resolved("192.0.2.1:7"));
        let ends = vec![IpAddr::from([172, 17, 0, 1]).into()];
        assert_eq!(starts, Ok(LocalChoice::Named(vec![NamedLocal { text: "docker0".to_owned(), ends }])));
    }

    #[test]
    fn loopback_goes_to_loopback_of_its_ip_version() {
        let starts = machine().choose(&[], &resolved("127.0.0.9:7"));
        assert_eq!(starts, Ok(LocalChoice::Found(vec![IpAddr::from([127, 0, 0, 1]).into()])));
    }

    #[test]
    fn address_of_two_interfaces_begins_a_path_at_each_and_is_not_named_alone() {
        let stick = |interface: &str, index| {
            let kind = LinkKind::Outside("hardware".to_owned());
            LocalAddress { index, ..local(interface, "127.0.0.1", kind, None) }
        };
        let sticks = LocalAddresses { all: vec![stick("w1", 3), stick("w2", 4)] };
        let starts = sticks.choose(&["w2".to_owned()], &resolved("192.0.2.1:7"));
        let end = LocalEnd { address: IpAddr::from([127, 0, 0, 1]), interface: 4 };
        assert_eq!(
            starts,
            Ok(LocalChoice::Named(vec![NamedLocal { text: "w2".to_owned(), ends: vec![end] }]))
        );
        assert_eq!(sticks.interface_of(end), Some("w2"));
        let both = sticks.choose(&["127.0.0.1".to_owned()], &resolved("192.0.2.1:7"));
        assert_eq!(
            both.expect_err("two interfaces").with_options(),
            "--path 127.0.0.1: w1 and w2 have this address; name the interface instead"
        );
    }

    #[test]
    fn an_address_that_is_bindable_though_not_listed_may_be_named() {
        assert!(machine().choose(&["127.0.0.77".to_owned()], &resolved("127.0.0.9:7")).is_ok());
    }

    #[test]
    fn unusable_address_is_refused_with_the_reason() {
        let of = |path: &str| {
            let chosen = machine().choose(&[path.to_owned()], &resolved("192.0.2.1:7"));
            chosen.expect_err("an error").with_options()
        };
        assert!(of("card1").contains("--path card1: the interface is down"));
        assert!(of("bare").contains("fe80::4 (link-local)"));
        assert!(of("wlan7").contains("there are lo, card0, card1, docker0, bare"));
        assert!(of("203.0.113.77").contains("--path 203.0.113.77: no path can begin"));
        assert!(of("0.0.0.0").contains("it is the wildcard address"));
        // No machine has the usable address of this artificial machine, so it has no route.
        let none = machine().choose(&[], &resolved("192.0.2.1:7")).expect_err("no way").with_options();
        assert!(none.starts_with("no local address has a way to 192.0.2.1:7:"), "{none}");
        assert!(none.contains("card1 198.51.100.4: the interface is down"), "{none}");
        assert!(none.contains("docker0 172.17.0.1: virtual interface (bridge)"), "{none}");
        assert!(none.ends_with("--path"), "{none}");
    }
}
