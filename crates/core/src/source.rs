//! Sources of packets for limits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefix length in bits of one IPv6 site (RFC 4291 section 2.5.4).
const SITE_BITS: u32 = 64;

/// Source that has one share of each limited pool: an IPv4 address, or the /64 of an IPv6 address, because a host can use every
/// address of that network. An IPv4-mapped IPv6 address is the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// IPv4 address.
    V4([u8; 4]),
    /// First eight bytes of an IPv6 address.
    V6([u8; 8]),
}

impl Source {
    /// Returns a number that is unique to the source.
    pub(crate) fn number(self) -> u128 {
        match self {
            Source::V4(octets) => u128::from(u32::from_be_bytes(octets)),
            Source::V6(prefix) => 1 << SITE_BITS | u128::from(u64::from_be_bytes(prefix)),
        }
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Source::V4(address.octets()),
            IpAddr::V6(address) => Source::V6(((address.to_bits() >> SITE_BITS) as u64).to_be_bytes()),
        }
    }
}

/// Writes the address, or the network with its prefix length.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Source::V4(octets) => Ipv4Addr::from(octets).fmt(f),
            Source::V6(prefix) => {
                let network = u128::from(u64::from_be_bytes(prefix)) << SITE_BITS;
                write!(f, "{}/{SITE_BITS}", Ipv6Addr::from_bits(network))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().expect("an address").into()
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn each_ipv4_address_is_a_source() {
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_eq!(source("192.0.2.1").to_string(), "192.0.2.1");
    }

    #[test]
    fn numbers_of_sources_differ() {
        assert_ne!(source("::1").number(), source("0.0.0.0").number());
        assert_ne!(source("::c000:201:0:0:0:0").number(), source("192.0.2.1").number());
    }
}
