//! Sources that may open associations with an endpoint.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use thiserror::Error;

/// Maximum number of networks in a list. Every INIT is compared with all of them, so the list is short.
pub const MAX_NETWORKS: usize = 256;

/// Sources that may open associations with an endpoint.
///
/// A packet from a source that is not admitted is dropped and counted ([`Discard::NotAdmitted`](crate::Discard::NotAdmitted))
/// unless it belongs to an existing association. It gets no answer, not even an ABORT: the port looks like one behind a firewall
/// that drops packets, and a forged source never makes the endpoint send a packet. The check precedes the limits of
/// [`Guard`](crate::Guard), so such packets use no share of them.
///
/// An association is judged by the sources of the INIT and of the COOKIE ECHO that open it (RFC 9260 section 5.1) or restart it
/// (section 5.2): a restart replaces the peer, so it is no exception. The cookie is sealed, so the sender of a COOKIE ECHO also had
/// an admitted INIT. Further paths of an accepted association are not judged. They need the same as without a list: the
/// association's verification tag (section 8.5), an answer to a HEARTBEAT with its nonce (section 5.4) before data is sent there,
/// and an authenticated ASCONF (RFC 5061) to be announced.
///
/// A check of further addresses would exclude no attacker. An admitted peer could forward data through its first address, and an
/// attacker who can read the tag on an admitted path could forge packets from an admitted address. The check would exclude
/// multihomed peers whose second address comes from another provider and is not known in advance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AcceptFrom {
    /// All sources.
    #[default]
    Everyone,
    /// Sources in these networks.
    Networks(Networks),
}

impl AcceptFrom {
    /// Returns `true` if a source may open associations.
    pub fn admits(&self, source: IpAddr) -> bool {
        match self {
            AcceptFrom::Everyone => true,
            AcceptFrom::Networks(networks) => networks.contains(source),
        }
    }
}

/// IP network that is smaller than the whole address space, without bits behind its prefix.
///
/// IPv4-mapped IPv6 addresses (RFC 4291 section 2.5.5.2) count as IPv4 addresses, in networks and in sources:
/// `::ffff:192.0.2.0/120` is `192.0.2.0/24`, and no IPv6 network with a prefix below 96 bits contains an IPv4 source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(IpNet);

impl Network {
    /// Returns the network of an address. Bits behind the prefix are ignored, so a host address with the prefix of its network is
    /// valid.
    ///
    /// # Errors
    /// Returns [`NetworkError`] if the prefix is too long for the address, or if the network would contain all addresses.
    pub fn new(address: IpAddr, prefix_bits: u8) -> Result<Self, NetworkError> {
        let most_bits = if address.is_ipv4() { 32 } else { 128 };
        let net = IpNet::new(address, prefix_bits).map_err(|_| NetworkError::Prefix { most_bits })?;
        match unmapped(net.trunc()) {
            net if net.prefix_len() == 0 => Err(NetworkError::Everyone),
            net => Ok(Network(net)),
        }
    }

    /// Returns `true` if an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Returns `true` if the network contains only one address.
    pub fn is_single(self) -> bool {
        self.0.prefix_len() == self.0.max_prefix_len()
    }
}

/// Returns the IPv4 network of an IPv6 network in `::ffff:0:0/96`, or the network itself.
fn unmapped(net: IpNet) -> IpNet {
    let mapped = match net {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => {
            v6.addr().to_ipv4_mapped().and_then(|v4| Ipv4Net::new(v4, v6.prefix_len() - 96).ok())
        }
        _ => None,
    };
    mapped.map_or(net, IpNet::V4)
}

/// Writes `192.0.2.0/24`, and `192.0.2.7` for a single address.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_single() { self.0.addr().fmt(f) } else { self.0.fmt(f) }
    }
}

/// Reads `ADDRESS` or `ADDRESS/PREFIX`.
impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address)?;
        let most_bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => most_bits,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| NetworkError::Prefix { most_bits })?
            }
            Some(_) => return Err(NetworkError::Prefix { most_bits }),
        };
        Network::new(address, prefix_bits)
    }
}

/// Reason for which a text or number is no valid network.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NetworkError {
    /// There is no address before the prefix.
    #[error(
        "expected an IP address with or without a prefix length, such as 192.0.2.0/24 or 2001:db8::7; names of hosts are not resolved"
    )]
    Address,
    /// The prefix length is invalid for this IP version.
    #[error("the prefix length has to be a number from 1 to {most_bits}")]
    Prefix {
        /// Maximum length.
        most_bits: u8,
    },
    /// The prefix length is 0.
    #[error("this network contains every address")]
    Everyone,
}

/// List of networks that together are smaller than the whole address space of either IP version. It is built from at least one and
/// at most [`MAX_NETWORKS`] networks; those that overlap or are adjacent are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Returns a list of networks. A network may be given twice.
    ///
    /// # Errors
    /// Returns [`NetworksError`] if the list is empty or too long, or if the networks together contain all addresses.
    pub fn new(networks: impl IntoIterator<Item = Network>) -> Result<Self, NetworksError> {
        let given: Vec<IpNet> =
            networks.into_iter().take(MAX_NETWORKS + 1).map(|network| network.0).collect();
        if given.is_empty() {
            return Err(NetworksError::Empty);
        }
        if given.len() > MAX_NETWORKS {
            return Err(NetworksError::TooMany);
        }
        let merged = IpNet::aggregate(&given);
        if merged.iter().any(|net| net.prefix_len() == 0) {
            return Err(NetworksError::Everyone);
        }
        Ok(Networks(merged.into_iter().map(Network).collect()))
    }

    /// Returns `true` if an address is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the networks, IPv4 before IPv6, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Network> + '_ {
        self.0.iter().copied()
    }
}

/// Reason for which networks are no valid list.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NetworksError {
    /// There is no network.
    #[error("name at least one network")]
    Empty,
    /// There are more than [`MAX_NETWORKS`].
    #[error("at most {MAX_NETWORKS} networks can be named; give shorter prefixes")]
    TooMany,
    /// The networks together contain all addresses of an IP version.
    #[error("these networks together contain every address of their IP version")]
    Everyone,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn from(networks: &[&str]) -> AcceptFrom {
        let networks = networks.iter().map(|text| network(text));
        AcceptFrom::Networks(Networks::new(networks).expect("a list"))
    }

    fn admitted<'a>(from: &AcceptFrom, sources: &[&'a str]) -> Vec<&'a str> {
        let admits = |source: &&&str| from.admits(source.parse().expect("an address"));
        sources.iter().filter(admits).copied().collect()
    }

    #[test]
    fn a_network_ends_where_its_prefix_says() {
        let v4 = from(&["192.0.2.64/26"]);
        let sources = ["192.0.2.63", "192.0.2.64", "192.0.2.127", "192.0.2.128", "2001:db8::1"];
        assert_eq!(admitted(&v4, &sources), ["192.0.2.64", "192.0.2.127"]);
        let v6 = from(&["2001:db8:0:8::/61"]);
        let sources =
            ["2001:db8:0:7::1", "2001:db8:0:8::", "2001:db8:0:f:ffff::1", "2001:db8:0:10::", "1.1.1.1"];
        assert_eq!(admitted(&v6, &sources), ["2001:db8:0:8::", "2001:db8:0:f:ffff::1"]);
    }

    #[test]
    fn a_single_address_admits_no_other() {
        assert_eq!(admitted(&from(&["192.0.2.7"]), &["192.0.2.6", "192.0.2.7", "192.0.2.8"]), ["192.0.2.7"]);
        assert_eq!(admitted(&from(&["::1"]), &["::", "::1", "::2"]), ["::1"]);
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address_it_maps() {
        let sources = ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.3.1", "::192.0.2.1"];
        let inside = ["192.0.2.1", "::ffff:192.0.2.1"];
        assert_eq!(admitted(&from(&["192.0.2.0/24"]), &sources), inside);
        assert_eq!(admitted(&from(&["::ffff:192.0.2.0/120"]), &sources), inside);
        // It contains ::ffff:0:0/96 as bits, but an IPv4 source is no IPv6 source.
        assert_eq!(admitted(&from(&["::/64"]), &sources), ["::192.0.2.1"]);
    }

    #[test]
    fn everyone_is_admitted_unless_networks_are_named() {
        let sources = ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"];
        assert_eq!(admitted(&AcceptFrom::default(), &sources), sources);
    }

    #[test]
    fn networks_are_read_and_written_without_bits_behind_the_prefix() {
        for (text, written) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.7/24", "192.0.2.0/24"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("2001:DB8::7/32", "2001:db8::/32"),
            ("::1", "::1"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ] {
            assert_eq!(network(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn invalid_network_is_refused() {
        use NetworkError::{Address, Everyone, Prefix};
        for (text, error) in [
            ("", Address),
            ("/24", Address),
            ("host", Address),
            ("example.org/24", Address),
            ("192.0.2", Address),
            ("192.0.2.1:9899", Address),
            ("[::1]", Address),
            ("fe80::1%eth0", Address),
            ("10.0.0.0/33", Prefix { most_bits: 32 }),
            ("10.0.0.0/256", Prefix { most_bits: 32 }),
            ("10.0.0.0/", Prefix { most_bits: 32 }),
            ("10.0.0.0/+8", Prefix { most_bits: 32 }),
            ("10.0.0.0/-1", Prefix { most_bits: 32 }),
            ("10.0.0.0/255.0.0.0", Prefix { most_bits: 32 }),
            ("10.0.0.0/8/8", Prefix { most_bits: 32 }),
            ("::/129", Prefix { most_bits: 128 }),
            ("0.0.0.0/0", Everyone),
            ("192.0.2.1/0", Everyone),
            ("::/0", Everyone),
            ("::ffff:0:0/96", Everyone),
        ] {
            assert_eq!(text.parse::<Network>(), Err(error), "{text}");
        }
    }

    #[test]
    fn list_has_each_network_once_and_never_all_addresses() {
        let list = |texts: &[&str]| Networks::new(texts.iter().map(|text| network(text)));
        let written = |texts: &[&str]| {
            list(texts).map(|list| list.iter().map(|network| network.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(
            written(&["::1", "10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/8", "192.0.2.0/25", "192.0.2.128/25"]),
            Ok(vec!["10.0.0.0/8".to_owned(), "192.0.2.0/24".to_owned(), "::1".to_owned()])
        );
        assert_eq!(list(&[]), Err(NetworksError::Empty));
        assert_eq!(list(&["0.0.0.0/1", "128.0.0.0/1"]), Err(NetworksError::Everyone));
        assert_eq!(list(&["::1", "::/1", "8000::/1"]), Err(NetworksError::Everyone));
        assert!(list(&["0.0.0.0/1", "8000::/1"]).is_ok());
        assert!(list(&["255.255.255.255", "255.255.255.254", "255.0.0.0/9"]).is_ok());
    }

    #[test]
    fn a_list_has_a_limit() {
        let some = |count: u32| (0..count).map(|n| Network::new(IpAddr::from((n * 2).to_be_bytes()), 32));
        assert!(Networks::new(some(256).flatten()).is_ok());
        assert_eq!(Networks::new(some(257).flatten()), Err(NetworksError::TooMany));
        assert_eq!(Networks::new((0..).flat_map(|_| some(1)).flatten()), Err(NetworksError::TooMany));
    }
}
