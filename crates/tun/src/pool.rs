//! Addresses of the users of a gateway.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;

use crate::ip::Fnv;

/// Addresses of a network. The first one is that of the gateway.
#[derive(Debug)]
pub(crate) struct Pool {
    network: Ipv4Net,
    assigned: BTreeMap<Ipv4Addr, String>,
}

impl Pool {
    pub(crate) fn new(network: Ipv4Net) -> Self {
        Pool { network, assigned: BTreeMap::new() }
    }

    /// Returns the address of the gateway.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        self.at(1)
    }

    /// Returns `true` for an address of the network other than the gateway's.
    pub(crate) fn is_user(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.network.contains(&address) && address != self.gateway(),
            IpAddr::V6(_) => false,
        }
    }

    /// Assigns an address to a user, or returns the one that the user has. The search begins at a hash of the name, so that a user
    /// usually has the same address after a restart of the gateway. Returns `None` if all addresses are assigned.
    pub(crate) fn assign(&mut self, user: &str) -> Option<Ipv4Addr> {
        if let Some((address, _)) = self.assigned.iter().find(|(_, other)| *other == user) {
            return Some(*address);
        }
        let mut hash = Fnv(0xCBF2_9CE4_8422_2325);
        hash.add(user.as_bytes());
        // Without the addresses of network, gateway and broadcast.
        let places = (1_u64 << (32 - self.network.prefix_len())).saturating_sub(3);
        let begin = hash.0 % places.max(1);
        let candidates = 0..places.min(self.assigned.len() as u64 + 1);
        let mut addresses = candidates.map(|step| self.at(2 + ((begin + step) % places) as u32));
        let found = addresses.find(|address| !self.assigned.contains_key(address))?;
        self.assigned.insert(found, user.to_owned());
        Some(found)
    }

    pub(crate) fn release(&mut self, address: Ipv4Addr) {
        self.assigned.remove(&address);
    }

    fn at(&self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network.network()) + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(network: &str) -> Pool {
        Pool::new(network.parse().expect("a network"))
    }

    #[test]
    fn users_have_different_addresses_of_the_network_until_all_are_assigned() {
        let mut pool = pool("10.1.2.0/29");
        assert_eq!(pool.gateway(), Ipv4Addr::new(10, 1, 2, 1));
        let mut addresses: Vec<Ipv4Addr> =
            (0..5).map(|user| pool.assign(&user.to_string()).expect("an address")).collect();
        assert_eq!(pool.assign("other"), None);
        pool.release(addresses[3]);
        assert_eq!(pool.assign("other"), Some(addresses[3]));
        addresses.sort_unstable();
        assert_eq!(addresses, (2..7).map(|host| Ipv4Addr::new(10, 1, 2, host)).collect::<Vec<_>>());
    }

    #[test]
    fn addresses_of_the_network_other_than_the_gateway_are_users() {
        let pool = pool("10.1.2.0/29");
        let is_user = |text: &str| pool.is_user(text.parse().expect(text));
        assert!(is_user("10.1.2.2") && is_user("10.1.2.7") && is_user("10.1.2.0"));
        assert!(!is_user("10.1.2.1") && !is_user("10.1.2.8") && !is_user("::1"));
    }

    #[test]
    fn user_has_the_same_address_again() {
        let (mut pool, mut other) = (pool("10.1.0.0/16"), pool("10.1.0.0/16"));
        let address = pool.assign("a").expect("an address");
        assert_eq!((pool.assign("a"), other.assign("a")), (Some(address), Some(address)));
    }
}
