//! Scope of an IP address: the networks in which it names one host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks in which an address names one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// One link or host: loopback, link-local, multicast, broadcast, unspecified and reserved addresses, and IPv6 addresses that
    /// contain IPv4 ones.
    Unusable,
    /// Private network: RFC 1918, RFC 6598 (shared by customers of a provider), RFC 2544 (benchmarks), RFC 4193 (unique local).
    Private,
    /// Public address of the Internet.
    Global,
}

impl Scope {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => of_v6(v6),
        }
    }
}

/// Returns `true` if an address that `source` reports may identify another host here, or none: its scope is one link or host, or it
/// is private and `source` is not.
pub(crate) fn is_foreign(source: IpAddr, address: IpAddr) -> bool {
    match Scope::of(address) {
        Scope::Unusable => true,
        Scope::Private => Scope::of(source) == Scope::Global,
        Scope::Global => false,
    }
}

fn of_v4(v4: Ipv4Addr) -> Scope {
    match v4.octets() {
        [0 | 127 | 224..=255, ..] | [169, 254, ..] => Scope::Unusable,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => {
            Scope::Private
        }
        _ => Scope::Global,
    }
}

fn of_v6(v6: Ipv6Addr) -> Scope {
    match v6.segments() {
        // ::/96 and ::ffff:0:0/96: unspecified, loopback, and IPv4 addresses in IPv6 form.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0xfe80..=0xfebf | 0xff00..=0xffff, ..] => Scope::Unusable,
        // Unique local addresses, and site-local ones of RFC 3513.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Scope::Private,
        _ => Scope::Global,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn all_are(scope: Scope, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(Scope::of(text.parse().expect("an address")), scope, "{text}");
        }
    }

    #[test]
    fn addresses_of_one_link_or_host_are_unusable() {
        all_are(
            Scope::Unusable,
            &["0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.1", "239.1.1.1", "255.255.255.255"],
        );
        all_are(
            Scope::Unusable,
            &["::", "::1", "fe80::1", "febf::1", "ff02::1", "::ffff:192.0.2.1", "::10.0.0.1"],
        );
    }

    #[test]
    fn private_address_is_foreign_where_the_source_is_global() {
        let foreign = |source: &str, address: &str| {
            is_foreign(source.parse().expect("an address"), address.parse().expect("an address"))
        };
        assert!(foreign("203.0.113.1", "192.168.0.1") && foreign("2001:db8::1", "fd00::1"));
        assert!(!foreign("192.168.0.1", "10.0.0.1") && !foreign("fd00::1", "10.0.0.1"));
        assert!(!foreign("192.168.0.1", "203.0.113.1") && !foreign("203.0.113.1", "203.0.113.2"));
        assert!(foreign("192.168.0.1", "127.0.0.1") && foreign("203.0.113.1", "fe80::1"));
    }

    #[test]
    fn private_networks_end_at_their_prefixes() {
        all_are(Scope::Private, &["10.255.0.1", "172.16.0.1", "172.31.255.1", "192.168.9.1", "100.64.0.1"]);
        all_are(
            Scope::Private,
            &["100.127.0.1", "198.18.0.1", "198.19.0.1", "fc00::1", "fdff::1", "fec0::1"],
        );
        all_are(
            Scope::Global,
            &["9.255.0.1", "11.0.0.1", "172.15.0.1", "172.32.0.1", "192.167.0.1", "100.63.0.1"],
        );
        all_are(
            Scope::Global,
            &["100.128.0.1", "198.20.0.1", "192.0.2.1", "2001:db8::1", "2a00::1", "fbff::1"],
        );
    }
}
