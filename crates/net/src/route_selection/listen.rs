//! Listening addresses of an endpoint, as the user names them.

use std::net::{IpAddr, SocketAddr};

use super::local::{LocalAddresses, is_usable, may_listen};
use crate::endpoint::{Endpoint, EndpointBuilder};
use crate::interface::{LocalAddress, Watcher};
use crate::locals::Binding;
use crate::protection::Protection;
use crate::route_error::RouteError;

/// Listening addresses of an endpoint.
#[derive(Clone, Debug)]
pub struct ListenAddresses {
    listen: Vec<SocketAddr>,
    port: u16,
}

impl ListenAddresses {
    /// Creates the selection. An unspecified address selects the usable addresses of its IP version. An empty list selects all
    /// usable addresses, with this UDP port.
    pub fn new(listen: Vec<SocketAddr>, port: u16) -> Self {
        ListenAddresses { listen, port }
    }

    /// Returns the addresses to bind.
    ///
    /// # Errors
    /// Reports that no address is usable, with a remedy.
    pub fn addresses(&self, locals: &LocalAddresses) -> Result<Vec<SocketAddr>, RouteError> {
        addresses(&self.listen, self.port, locals)
    }

    /// Returns a builder of an endpoint with a socket at each address.
    ///
    /// # Errors
    /// Reports that no address is usable, with a remedy.
    pub fn endpoint(&self, protection: Protection) -> Result<EndpointBuilder, RouteError> {
        let locals = self.addresses(&LocalAddresses::read())?;
        Ok(locals.into_iter().fold(Endpoint::builder(protection), |builder, local| builder.local(local)))
    }

    /// Also listens on addresses added later, if all were selected.
    pub fn follow(&self, endpoint: &Endpoint) {
        let all = self.listen.iter().filter(|address| address.ip().is_unspecified());
        let all: Vec<SocketAddr> = all.copied().collect();
        if !self.listen.is_empty() && all.is_empty() {
            return;
        }
        let port = all.first().map_or(self.port, SocketAddr::port);
        let follow_filter = move |local: &LocalAddress| {
            let asked = all.is_empty() || all.iter().any(|all| all.is_ipv4() == local.address.is_ipv4());
            asked && may_listen(local)
        };
        endpoint.follow(Watcher::new(follow_filter).keeping(|_| true), Binding { port, to_interface: false });
    }
}

/// Returns the addresses to bind. An unspecified address selects the usable ones of its IP version, or loopback if none.
fn addresses(
    listen: &[SocketAddr],
    port: u16,
    locals: &LocalAddresses,
) -> Result<Vec<SocketAddr>, RouteError> {
    if listen.is_empty() {
        let all = usable(locals, |_| true, port);
        return if all.is_empty() { Err(RouteError::NothingToListenOn { all: None }) } else { Ok(all) };
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for wanted in listen {
        if wanted.ip().is_unspecified() {
            let v4 = wanted.is_ipv4();
            let found = usable(locals, |address| address.is_ipv4() == v4, wanted.port());
            if found.is_empty() {
                return Err(RouteError::NothingToListenOn { all: Some(*wanted) });
            }
            addresses.extend(found);
        } else {
            addresses.push(*wanted);
        }
    }
    Ok(addresses)
}

fn usable(locals: &LocalAddresses, fits: impl Fn(&IpAddr) -> bool, port: u16) -> Vec<SocketAddr> {
    let of = |wanted: &dyn Fn(&LocalAddress) -> bool| {
        let wanted = locals.all.iter().filter(|local| wanted(local) && fits(&local.address));
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for local in wanted {
            // Two interfaces may have the same address: one socket receives from both.
            let address = SocketAddr::new(local.address, port);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    };
    let outside = of(&may_listen);
    if outside.is_empty() { of(&|local| is_usable(local, true)) } else { outside }
}

#[cfg(test)]
mod tests {
    use super::super::target::read_address;
    use super::*;
    use crate::config::DEFAULT_UDP_PORT;
    use crate::interface::{LinkKind, Obstacle};

    fn locals(cards: &[&str]) -> LocalAddresses {
        let local = |address: &str, kind, obstacle| LocalAddress {
            address: address.parse().expect("an address"),
            prefix_bits: 24,
            interface: "any".to_owned(),
            index: 1,
            kind,
            mtu_bytes: None,
            up: true,
            obstacle,
        };
        let card = |address: &&str| local(address, LinkKind::Outside("hardware".to_owned()), None);
        let mut all = vec![local("127.0.0.1", LinkKind::Loopback, Some(Obstacle::Loopback))];
        all.extend(cards.iter().map(card));
        LocalAddresses { all }
    }

    fn bound(listen: &[&str], cards: &[&str]) -> Result<Vec<String>, RouteError> {
        let listen: Vec<_> = listen.iter().map(|text| read_address(text).expect("an address")).collect();
        addresses(&listen, DEFAULT_UDP_PORT, &locals(cards))
            .map(|all| all.iter().map(SocketAddr::to_string).collect())
    }

    #[test]
    fn all_usable_addresses_are_listened_on_at_the_usual_port() {
        assert_eq!(bound(&[], &["192.0.2.1", "fd00::1"]).unwrap(), ["192.0.2.1:9899", "[fd00::1]:9899"]);
        assert_eq!(bound(&[], &[]).unwrap(), ["127.0.0.1:9899"]);
    }

    #[test]
    fn an_address_for_all_stands_for_the_usable_ones_of_its_ip_version() {
        assert_eq!(bound(&["0.0.0.0:7"], &["192.0.2.1", "fd00::1"]).unwrap(), ["192.0.2.1:7"]);
        assert_eq!(bound(&["127.0.0.5", "127.0.0.6:7"], &[]).unwrap(), ["127.0.0.5:9899", "127.0.0.6:7"]);
        let all = "[::]:7".parse().ok();
        assert_eq!(bound(&["[::]:7"], &[]), Err(RouteError::NothingToListenOn { all }));
    }
}
