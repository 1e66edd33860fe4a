//! Host names with ports, as in `known_hosts`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Maximum length of a host name, in bytes (RFC 1035 section 2.3.4).
const LONGEST: usize = 253;

/// Host name or address, and a UDP port. Names are in lower case, as DNS compares them (RFC 4343), and without the final dot. Every
/// text that the system's resolver accepts as an IPv4 address becomes that address, so that a known host has one entry.
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

/// Error: the text is not a host with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an address with a port, such as example.org:9899 or [2001:db8::1]:9899")]
pub struct WrongHostName;

impl HostName {
    /// Creates a host name from a host without brackets and a port.
    ///
    /// # Errors
    /// Returns [`WrongHostName`] if `host` is neither a name nor an address, or the port is zero.
    pub fn new(host: &str, port: u16) -> Result<Self, WrongHostName> {
        // The final dot of a fully qualified name does not make it another host.
        let bare = host.strip_suffix('.').unwrap_or(host);
        let host = match host.parse::<IpAddr>() {
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) if is_numeric(bare) => Host::Address(numeric(bare).ok_or(WrongHostName)?.into()),
            Err(_) => Host::Name(name(bare)?),
        };
        if port == 0 { Err(WrongHostName) } else { Ok(HostName { host, port }) }
    }

    /// Returns the host without port and brackets.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.clone(),
        }
    }
}

fn name(text: &str) -> Result<String, WrongHostName> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_name =
        text.len() <= LONGEST && text.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
    if is_name { Ok(text.to_ascii_lowercase()) } else { Err(WrongHostName) }
}

/// Returns `true` if the last label is a number. No top-level domain is numeric (RFC 3696 section 2), so the text must be an
/// address.
fn is_numeric(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

/// Parses an IPv4 address in the formats of `inet_aton`, which resolvers accept too: one to four decimal, octal or hexadecimal
/// numbers, the last of which fills the rest of the address.
fn numeric(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (&last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 0xff) {
        return None;
    }
    let rest_bits = 32 - 8 * first.len() as u32;
    if u64::from(last) >= 1 << rest_bits {
        return None;
    }
    let high = first.iter().fold(0_u64, |high, part| high << 8 | u64::from(*part));
    Some(Ipv4Addr::from_bits((high << rest_bits) as u32 | last))
}

fn number(digits: &str) -> Option<u32> {
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
}

/// Parses `NAME:PORT`, `ADDR:PORT` or `[ADDR]:PORT`.
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
            ("[::FFFF:c000:0201]:9899", "192.0.2.1:9899"),
            ("[2001:db8:0:0:0:0:0:1]:9899", "[2001:db8::1]:9899"),
            ("127.0.0.1.:9899", "127.0.0.1:9899"),
            ("127.1:9899", "127.0.0.1:9899"),
            ("127.1.:9899", "127.0.0.1:9899"),
            ("0177.0.0.01:9899", "127.0.0.1:9899"),
            ("0x7f.0.0.1:9899", "127.0.0.1:9899"),
            ("0X7F000001:9899", "127.0.0.1:9899"),
            ("2130706433:9899", "127.0.0.1:9899"),
            ("192.0.513:9899", "192.0.2.1:9899"),
            ("EXAMPLE.org.:09899", "example.org:9899"),
        ] {
            assert_eq!(text.parse::<HostName>().expect(text).to_string(), shown);
        }
    }

    #[test]
    fn invalid_host_is_refused() {
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
            "127.0.0.1..:7",
            "256.0.0.1:7",
            "1.2.3.4.5:7",
            "1.2.3.256:7",
            "4294967296:7",
            "08.0.0.1:7",
            "127.0.0.0x:7",
            "host.1:7",
            "[127.0.0.1%lo]:7",
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
