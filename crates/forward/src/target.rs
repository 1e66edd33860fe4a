//! Targets: the host and port to which a forwarded connection leads.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// Maximum length of a host name, in bytes (RFC 1035 section 2.3.4).
pub const MAX_NAME_BYTES: usize = 253;
/// Maximum length of a label of a host name, in bytes.
const MAX_LABEL_BYTES: usize = 63;

/// Error in the text of a target, a host or a listening address.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// The port is missing, 0 or above 65535.
    #[error("expected HOST:PORT with a port from 1 to 65535, such as example.org:443 or [2001:db8::1]:443")]
    Port,
    /// The host is neither an address nor a name.
    #[error(
        "expected an address or a host name of ASCII letters, digits, hyphens and dots; put IPv6 addresses in brackets"
    )]
    Host,
}

/// Host name: at most [`MAX_NAME_BYTES`] bytes in lower case, with labels of letters, digits, hyphens and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Returns the name without a final dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_name = name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label);
        if is_name { Ok(HostName(name.to_ascii_lowercase())) } else { Err(TargetError::Host) }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Host of a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetHost {
    /// Address, in its IPv4 form if it is an IPv4-mapped IPv6 address.
    Address(IpAddr),
    /// Name, which the side that connects resolves.
    Name(HostName),
}

impl TargetHost {
    /// Returns the host for an address.
    pub fn address(address: IpAddr) -> Self {
        TargetHost::Address(address.to_canonical())
    }
}

impl FromStr for TargetHost {
    type Err = TargetError;

    /// Reads an address, an IPv6 address in brackets, or a name.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        match (bracketed, text.parse::<IpAddr>()) {
            (Some(inner), _) => match inner.parse() {
                Ok(address) => Ok(TargetHost::address(IpAddr::V6(address))),
                Err(_) => Err(TargetError::Host),
            },
            (None, Ok(address)) => Ok(TargetHost::address(address)),
            (None, Err(_)) => Ok(TargetHost::Name(text.parse()?)),
        }
    }
}

/// Host and port to which a forwarded connection leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Host, by address or name.
    pub host: TargetHost,
    /// Port, never 0.
    pub port: u16,
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Target { host: TargetHost::address(address.ip()), port: address.port() }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::Port)?;
        let port = read_port(port).filter(|port| *port > 0).ok_or(TargetError::Port)?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(TargetError::Host);
        }
        Ok(Target { host: host.parse()?, port })
    }
}

/// Reads a port of decimal digits.
pub(crate) fn read_port(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            TargetHost::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            TargetHost::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_read_and_printed_in_one_form() {
        for (text, shown) in [
            ("example.org:443", "example.org:443"),
            ("Example.ORG.:80", "example.org:80"),
            ("192.0.2.1:1", "192.0.2.1:1"),
            ("[2001:DB8::1]:65535", "[2001:db8::1]:65535"),
            ("[::ffff:127.0.0.1]:22", "127.0.0.1:22"),
            ("_ldap._tcp.x-1:389", "_ldap._tcp.x-1:389"),
        ] {
            assert_eq!(text.parse::<Target>().expect(text).to_string(), shown);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "a", "a:", ":1", "a:0", "a:65536", "a:+1", "a:1 ", "2001:db8::1:443", "[a]:1"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        for host in ["a..b", "a b", "ü", "a/b", "[::1", "a\0", &"a".repeat(64), &"a.".repeat(130)] {
            assert_eq!(format!("{host}:1").parse::<Target>(), Err(TargetError::Host), "{host}");
        }
    }

    proptest! {
        #[test]
        fn each_accepted_text_is_equal_after_printing(text in "[a-zA-Z0-9.:_\\[\\]-]{1,40}") {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
            }
        }
    }
}
