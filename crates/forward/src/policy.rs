//! Targets that a gateway permits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use anabranch_net::Network;
use thiserror::Error;

use crate::failure::Failure;
use crate::target::{HostName, TargetHost, read_port};

/// Error in the text of a rule.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// The ports cannot be read.
    #[error("expected HOST:PORTS, where PORTS is a port, a range such as 8000-8999, or * for all")]
    Ports,
    /// The hosts cannot be read.
    #[error(
        "expected a host name, *.DOMAIN, an address, a network such as 10.0.0.0/8 or [fd00::]/8, or * for all public hosts"
    )]
    Hosts,
}

/// Hosts of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// Every public address.
    Public,
    /// The public addresses of this name.
    Name(HostName),
    /// The public addresses of all names below this domain.
    Below(HostName),
    /// One address.
    Address(IpAddr),
    /// A network.
    Network(Network),
}

/// Rule that permits targets: hosts and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

impl Rule {
    fn has_port(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// Returns `true` if the rule names this address, by itself or by its network.
    fn names_address(&self, address: IpAddr) -> bool {
        match &self.hosts {
            Hosts::Address(own) => *own == address,
            Hosts::Network(network) => network.contains(address),
            Hosts::Public | Hosts::Name(_) | Hosts::Below(_) => false,
        }
    }

    /// Returns `true` if the rule permits public addresses of this host.
    fn permits_public(&self, host: &TargetHost) -> bool {
        match (&self.hosts, host) {
            (Hosts::Public, _) => true,
            (Hosts::Name(own), TargetHost::Name(name)) => own == name,
            (Hosts::Below(domain), TargetHost::Name(name)) => {
                name.as_str().strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            _ => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    /// Reads `HOSTS:PORTS`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (hosts, ports) = text.rsplit_once(':').ok_or(RuleError::Ports)?;
        Ok(Rule { ports: read_ports(ports).ok_or(RuleError::Ports)?, hosts: read_hosts(hosts)? })
    }
}

/// Reads a port, a range, or `*`.
pub(crate) fn read_ports(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(1..=u16::MAX);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = read_port(first)?..=read_port(last)?;
    (*ports.start() > 0 && !ports.is_empty()).then_some(ports)
}

fn read_hosts(text: &str) -> Result<Hosts, RuleError> {
    if text == "*" {
        return Ok(Hosts::Public);
    }
    if let Some((address, bits)) = text.split_once('/') {
        let bare = address.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(address);
        let network = format!("{bare}/{bits}").parse().map_err(|_| RuleError::Hosts)?;
        return Ok(Hosts::Network(network));
    }
    if let Some(domain) = text.strip_prefix("*.") {
        return domain.parse().map(Hosts::Below).map_err(|_| RuleError::Hosts);
    }
    match text.parse().map_err(|_| RuleError::Hosts)? {
        TargetHost::Address(address) => Ok(Hosts::Address(address)),
        TargetHost::Name(name) => Ok(Hosts::Name(name)),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Public => f.write_str("*")?,
            Hosts::Name(name) => name.fmt(f)?,
            Hosts::Below(domain) => write!(f, "*.{domain}")?,
            Hosts::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Hosts::Address(IpAddr::V4(address)) => address.fmt(f)?,
            Hosts::Network(network) => match network.to_string().split_once('/') {
                Some((address, bits)) if address.contains(':') => write!(f, "[{address}]/{bits}")?,
                _ => network.fmt(f)?,
            },
        }
        match (self.ports.start(), self.ports.end()) {
            (1, &u16::MAX) => f.write_str(":*"),
            (first, last) if first == last => write!(f, ":{first}"),
            (first, last) => write!(f, ":{first}-{last}"),
        }
    }
}

/// Targets that a gateway permits. The default permits all ports of all public addresses.
///
/// An address that is not public, such as a private or loopback address, needs a rule that names the address or its network. A rule
/// with a host name does not suffice, because the owner of the name chooses its addresses.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

impl Policy {
    /// Returns the policy that permits the targets of any of these rules; without a rule, the default.
    pub fn new(rules: Vec<Rule>) -> Self {
        Policy { rules }
    }

    /// Checks a target before its name is resolved, so that the gateway resolves no name that no rule can permit.
    ///
    /// # Errors
    /// Returns [`Failure::Forbidden`].
    pub fn check_host(&self, host: &TargetHost, port: u16) -> Result<(), Failure> {
        let may_match = |rule: &Rule| match host {
            TargetHost::Address(address) => rule.names_address(*address) || rule.permits_public(host),
            TargetHost::Name(_) => {
                rule.permits_public(host) || matches!(rule.hosts, Hosts::Address(_) | Hosts::Network(_))
            }
        };
        let permitted =
            self.rules.is_empty() || self.rules.iter().any(|rule| rule.has_port(port) && may_match(rule));
        if permitted { Ok(()) } else { Err(Failure::Forbidden) }
    }

    /// Returns `true` if the gateway may connect to this address for a target with this host and port.
    pub fn permits(&self, host: &TargetHost, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        let mut rules = self.rules.iter().filter(|rule| rule.has_port(port));
        match reach_of(address) {
            Reach::Never => false,
            Reach::Special => rules.any(|rule| rule.names_address(address)),
            Reach::Public => {
                self.rules.is_empty()
                    || rules.any(|rule| rule.names_address(address) || rule.permits_public(host))
            }
        }
    }

    /// Returns the policy for packets without ports: that of the rules with all ports.
    pub fn without_ports(&self) -> Self {
        let permits_none = Rule { hosts: Hosts::Address(Ipv4Addr::UNSPECIFIED.into()), ports: 1..=u16::MAX };
        let mut rules: Vec<Rule> = self.rules.clone();
        rules.retain(|rule| rule.ports == (1..=u16::MAX));
        if rules.is_empty() && !self.rules.is_empty() {
            rules.push(permits_none);
        }
        Policy { rules }
    }
}

/// Kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Hosts of the Internet.
    Public,
    /// Hosts of this machine or of its networks, and addresses with a special purpose (RFC 6890).
    Special,
    /// No host: no connection leads to such an address.
    Never,
}

/// Returns the kind of an address. An IPv6 address that contains an IPv4 address has the kind of that one, because a translator
/// connects to it.
fn reach_of(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_of_v4(address),
        IpAddr::V6(address) if address.is_unspecified() || address.is_multicast() => Reach::Never,
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => reach_of_v4(inner),
            None => reach_of_v6(address),
        },
    }
}

fn reach_of_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    if address.is_multicast() || address.is_broadcast() || a == 0 {
        return Reach::Never;
    }
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        // Shared address space of carriers (RFC 6598), protocol assignments (RFC 6890), benchmarks (RFC 2544), reserved (RFC 1112).
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
        // Addresses with metadata of machines that are not link-local.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    if special { Reach::Special } else { Reach::Public }
}

fn reach_of_v6(address: Ipv6Addr) -> Reach {
    // Global unicast addresses are in 2000::/3. Documentation, benchmarks, Teredo and ORCHID are parts of it.
    let [a, b, ..] = address.segments();
    let is_global = a & 0xE000 == 0x2000;
    let special = !is_global || (a == 0x2001 && (b < 0x200 || b == 0x0DB8)) || (a == 0x3FFF && b < 0x1000);
    if special { Reach::Special } else { Reach::Public }
}

/// Returns the IPv4 address in an address for NAT64 (RFC 6052) or 6to4 (RFC 3056), or in an IPv4-compatible address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xFF9B, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high @ 1..=u16::MAX, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(rules: &[&str]) -> Policy {
        Policy::new(rules.iter().map(|text| text.parse().expect(text)).collect())
    }

    fn permits(policy: &Policy, host: &str, address: &str, port: u16) -> bool {
        let (host, address) = (host.parse().expect(host), address.parse().expect(address));
        let permitted = policy.permits(&host, address, port);
        assert!(!permitted || policy.check_host(&host, port).is_ok(), "both checks agree");
        permitted
    }

    /// Addresses that need a rule of their own.
    const SPECIAL: [&str; 19] = [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.192",
        "198.18.0.1",
        "240.0.0.1",
        "168.63.129.16",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "fc00::1",
        "64:ff9b::a00:1",
        "2002:7f00:1::1",
        "2001:db8::1",
        "::ffff:10.0.0.1",
    ];

    #[test]
    fn special_addresses_need_a_rule_that_names_them() {
        let (default, all) = (Policy::default(), policy(&["*:*", "*.example.org:*"]));
        for address in SPECIAL {
            let host = format!("[{address}]");
            let host = if address.contains(':') { &host } else { address };
            for host in [host, "a.example.org"] {
                assert!(!permits(&default, host, address, 80), "{address}");
                assert!(!permits(&all, host, address, 80), "{address}");
            }
            let named = policy(&[&format!("{host}:80")]);
            assert!(permits(&named, host, address, 80) && permits(&named, "a.example.org", address, 80));
            assert!(!permits(&named, host, address, 81));
        }
    }

    #[test]
    fn addresses_without_a_host_are_never_permitted() {
        let all = policy(&["0.0.0.0/1:*", "128.0.0.0/1:*", "[::]/1:*", "[8000::]/1:*"]);
        for address in ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1"] {
            assert!(!permits(&all, "a", address, 80), "{address}");
        }
        assert!(permits(&all, "a", "10.0.0.1", 80) && permits(&all, "a", "fe80::1", 80));
    }

    #[test]
    fn public_addresses_are_permitted_by_name_network_and_port() {
        let public = "93.184.215.14";
        assert!(permits(&Policy::default(), "example.org", public, 1));
        let rules = policy(&["example.org:443", "*.example.net:80-90", "93.184.0.0/16:22", "*:53"]);
        for (host, port, expected) in [
            ("example.org", 443, true),
            ("example.org", 80, false),
            ("a.example.org", 443, false),
            ("a.example.net", 85, true),
            ("example.net", 85, false),
            ("badexample.net", 85, false),
            ("anything", 22, true),
            (public, 22, true),
            (public, 443, false),
            (public, 53, true),
        ] {
            assert_eq!(permits(&rules, host, public, port), expected, "{host}:{port}");
        }
        assert_eq!(rules.check_host(&"other".parse().expect("a name"), 443), Err(Failure::Forbidden));
    }

    #[test]
    fn packets_without_ports_need_a_rule_for_all_ports() {
        let public = "93.184.215.14";
        let permitted = |rules: &[&str]| permits(&policy(rules).without_ports(), public, public, 1);
        assert!(permitted(&[]) && permitted(&["*:*"]) && permitted(&["*:80", "93.184.0.0/16:*"]));
        assert!(!permitted(&["*:80"]) && !permitted(&["*:1-65534", "10.0.0.0/8:*"]));
    }

    #[test]
    fn rules_are_read_and_printed_in_one_form() {
        for (text, shown) in [
            ("*:*", "*:*"),
            ("*:1-65535", "*:*"),
            ("Example.org:80-80", "example.org:80"),
            ("*.example.org:1-2", "*.example.org:1-2"),
            ("10.0.0.0/8:*", "10.0.0.0/8:*"),
            ("[fd00::]/8:22", "[fd00::]/8:22"),
            ("fd00::/8:22", "[fd00::]/8:22"),
            ("[::1]:22", "[::1]:22"),
        ] {
            assert_eq!(text.parse::<Rule>().expect(text).to_string(), shown);
        }
        for text in ["*", "a", "a:0", "a:2-1", "a:1-", "a:x", "a:1-70000"] {
            assert_eq!(text.parse::<Rule>(), Err(RuleError::Ports), "{text}");
        }
        for text in ["10.0.0.0/33:1", "a b:1", "*.:1", "a*:1", "/8:1"] {
            assert_eq!(text.parse::<Rule>(), Err(RuleError::Hosts), "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_accepted_rule_is_equal_after_printing(text in "[a-z0-9.:*/\\[\\]-]{1,30}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }

        #[test]
        fn no_special_ipv4_address_is_permitted_in_any_ipv6_form(bits: u32) {
            let inner = Ipv4Addr::from(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            let forms = [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ];
            let host: TargetHost = "a".parse().expect("a name");
            let plain = Policy::default().permits(&host, inner.into(), 80);
            for form in forms {
                prop_assert_eq!(Policy::default().permits(&host, form.into(), 80), plain);
            }
        }
    }
}
