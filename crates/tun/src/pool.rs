//! Addresses of the users of a gateway.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::ip::Fnv;
use crate::message::Addresses;

/// Networks of a gateway. In each, the first address is that of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    /// IPv4 network, with a prefix of at most 30 bits.
    pub v4: Ipv4Net,
    /// IPv6 network, with at least as many addresses as the IPv4 network.
    pub v6: Option<Ipv6Net>,
}

/// Number of a user's addresses in the networks, from 2.
pub(crate) type Place = u32;

/// Number of the gateway's addresses in the networks.
const GATEWAY: Place = 1;

impl Networks {
    /// Returns the addresses of the gateway.
    pub fn gateway(&self) -> Addresses {
        self.at(GATEWAY)
    }

    /// Returns the addresses of a place.
    pub(crate) fn at(&self, place: Place) -> Addresses {
        Addresses {
            v4: Ipv4Addr::from(u32::from(self.v4.network()) + place),
            v6: self.v6.map(|network| Ipv6Addr::from(u128::from(network.network()) + u128::from(place))),
        }
    }

    /// Returns the place of an address of the networks.
    pub(crate) fn place_of(&self, address: IpAddr) -> Option<Place> {
        match address {
            IpAddr::V4(address) => {
                self.v4.contains(&address).then(|| u32::from(address) - u32::from(self.v4.network()))
            }
            IpAddr::V6(address) => {
                let network = self.v6.filter(|network| network.contains(&address))?;
                (u128::from(address) - u128::from(network.network())).try_into().ok()
            }
        }
    }

    /// Returns `true` for an address of the networks other than the gateway's.
    pub(crate) fn is_user(&self, address: IpAddr) -> bool {
        let is_inside = match address {
            IpAddr::V4(address) => self.v4.contains(&address),
            IpAddr::V6(address) => self.v6.is_some_and(|network| network.contains(&address)),
        };
        is_inside && self.place_of(address) != Some(GATEWAY)
    }
}

/// Places of users in the networks of a gateway.
#[derive(Debug)]
pub(crate) struct Pool {
    networks: Networks,
    assigned: BTreeMap<Place, String>,
}

impl Pool {
    pub(crate) fn new(networks: Networks) -> Self {
        Pool { networks, assigned: BTreeMap::new() }
    }

    /// Assigns a place to a user, or returns the one that the user has. The search begins at a hash of the name, so that a user
    /// usually has the same addresses after a restart of the gateway. Returns `None` if all places are assigned.
    pub(crate) fn assign(&mut self, user: &str) -> Option<Place> {
        if let Some((place, _)) = self.assigned.iter().find(|(_, other)| *other == user) {
            return Some(*place);
        }
        let mut hash = Fnv(0xCBF2_9CE4_8422_2325);
        hash.add(user.as_bytes());
        // Without the IPv4 addresses of network, gateway and broadcast.
        let places = (1_u64 << (32 - self.networks.v4.prefix_len())).saturating_sub(3);
        let begin = hash.0 % places.max(1);
        let candidates = 0..places.min(self.assigned.len() as u64 + 1);
        let mut candidates = candidates.map(|step| GATEWAY + 1 + ((begin + step) % places) as Place);
        let found = candidates.find(|place| !self.assigned.contains_key(place))?;
        self.assigned.insert(found, user.to_owned());
        Some(found)
    }

    pub(crate) fn release(&mut self, place: Place) {
        self.assigned.remove(&place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(v4: &str, v6: Option<&str>) -> Networks {
        Networks { v4: v4.parse().expect(v4), v6: v6.map(|text| text.parse().expect(text)) }
    }

    fn pool(network: &str) -> Pool {
        Pool::new(networks(network, Some("fd00:1::/64")))
    }

    #[test]
    fn users_have_different_places_until_all_are_assigned() {
        let mut pool = pool("10.1.2.0/29");
        let mut places: Vec<Place> =
            (0..5).map(|user| pool.assign(&user.to_string()).expect("a place")).collect();
        assert_eq!(pool.assign("other"), None);
        pool.release(places[3]);
        assert_eq!(pool.assign("other"), Some(places[3]));
        places.sort_unstable();
        assert_eq!(places, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn user_has_the_same_place_again() {
        let (mut pool, mut other) = (pool("10.1.0.0/16"), pool("10.1.0.0/16"));
        let place = pool.assign("a").expect("a place");
        assert_eq!((pool.assign("a"), other.assign("a")), (Some(place), Some(place)));
    }

    #[test]
    fn places_have_an_address_in_each_network() {
        let both = networks("10.1.2.0/29", Some("fd00:1::/96"));
        let address = |text: &str| text.parse::<IpAddr>().expect(text);
        let gateway = both.gateway();
        assert_eq!(
            (gateway.v4.into(), gateway.v6.map(Into::into)),
            (address("10.1.2.1"), Some(address("fd00:1::1")))
        );
        for (text, place) in [("10.1.2.6", 6), ("fd00:1::6", 6), ("fd00:1::ffff:ffff", u32::MAX)] {
            assert_eq!(both.place_of(address(text)), Some(place), "{text}");
        }
        for text in ["10.1.2.8", "10.1.1.255", "fd00:1:0:0:0:1::", "::1"] {
            assert_eq!(both.place_of(address(text)), None, "{text}");
        }
        assert_eq!(networks("10.1.2.0/29", None).place_of(address("fd00:1::6")), None);
    }

    #[test]
    fn addresses_of_the_networks_other_than_the_gateway_are_users() {
        let networks = networks("10.1.2.0/29", Some("fd00:1::/64"));
        let is_user = |text: &str| networks.is_user(text.parse().expect(text));
        for user in ["10.1.2.2", "10.1.2.7", "10.1.2.0", "fd00:1::", "fd00:1::2", "fd00:1::1:0:0:1"] {
            assert!(is_user(user), "{user}");
        }
        for other in ["10.1.2.1", "10.1.2.8", "::1", "fd00:1::1", "fd00:1:0:1::2"] {
            assert!(!is_user(other), "{other}");
        }
    }
}
