//! Hosts as `known_hosts` names them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Bytes of a host name (RFC 1035 section 2.3.4).
const LONGEST: usize = 253;

/// A host name or an address, and a UDP port. Names are kept in lower case, as DNS compares them (RFC 4343).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// A text names no host and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an address with a port, such as example.org:9899 or [2001:db8::1]:9899")]
pub struct WrongHostName;

impl HostName {
    /// A host, without brackets, and a port.
    ///
    /// # Errors
    /// [`WrongHostName`] for what is neither a name nor an address.
    pub fn new(host: &str, port: u16) -> Result<Self, WrongHostName> {
        let host = match host.parse::<IpAddr>() {
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) => Host::Name(name(host)?),
        };
        if port == 0 { Err(WrongHostName) } else { Ok(HostName { host, port }) }
    }

    /// Without the port, and without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.clone(),
        }
    }
}

fn name(text: &str) -> Result<String, WrongHostName> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    // The dot at the end of a name that is complete makes no other host of it.
    let bare = text.strip_suffix('.').unwrap_or(text);
    let is_name =
        bare.len() <= LONGEST && bare.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
    if is_name { Ok(bare.to_ascii_lowercase()) } else { Err(WrongHostName) }
}

/// `NAME:PORT`, `ADDR:PORT` or `[ADDR]:PORT`.
impl FromStr for HostName {
    type Err = WrongHostName;

    fn from_str(text: &str) -> Result<Self, WrongHostName> {
        let (host, port) = text.rsplit_once(':').ok_or(WrongHostName)?;
        if !port.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(WrongHostName);
        }
        let port = port.parse().map_err(|_| WrongHostName)?;
        match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) if address.contains(':') => Self::new(address, port),
            None if !host.contains(':') => Self::new(host, port),
            _ => Err(WrongHostName),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            Host::Address(address) => write!(f, "{address}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_host_has_one_text() {
        for (text, shown) in [
            ("Example.ORG:9899", "example.org:9899"),
            ("example.org.:7", "example.org:7"),
            ("192.0.2.1:9899", "192.0.2.1:9899"),
            ("[2001:DB8::0:1]:9899", "[2001:db8::1]:9899"),
            ("[::ffff:192.0.2.1]:9899", "192.0.2.1:9899"),
        ] {
            assert_eq!(text.parse::<HostName>().expect(text).to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}:1", "a".repeat(254));
        for text in [
            "",
            ":",
            "a",
            "a:",
            ":9",
            "a:0",
            "a:65536",
            "a:+7",
            "a b:7",
            "2001:db8::1:7",
            "[a]:7",
            "a*:7",
            "a\u{202e}:7",
            ".:7",
            "a..b:7",
            ".a:7",
            "[192.0.2.1]:7",
            &long,
        ] {
            assert_eq!(text.parse::<HostName>(), Err(WrongHostName), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_host_is_read_as_it_was_written(text in r"(\[[0-9a-f:.]{0,20}\]|[A-Za-z0-9._:-]{0,20}):[0-9]{0,6}") {
            if let Ok(host) = text.parse::<HostName>() {
                prop_assert_eq!(host.to_string().parse(), Ok(host));
            }
        }
    }
}
