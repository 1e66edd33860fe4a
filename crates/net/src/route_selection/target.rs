//! Hosts and addresses as written by users, with or without a port.

use std::net::{IpAddr, SocketAddr};

use crate::config::DEFAULT_UDP_PORT;
use crate::route_error::TargetError;

/// Host name or address, and a UDP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name or address, without brackets.
    host: String,
    port: u16,
}

impl Target {
    /// Parses `HOST`, `HOST:PORT`, `ADDR`, `ADDR:PORT` and `[ADDR]:PORT`. An IPv6 address without a port needs no brackets.
    ///
    /// # Errors
    /// Describes the error and the expected format.
    pub fn read(text: &str) -> Result<Self, TargetError> {
        refuse_link_local(text)?;
        if let Ok(address) = read_address(text) {
            return Target { host: address.ip().to_string(), port: address.port() }.checked(text);
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| bad_port(text, port))?),
            None => (text, DEFAULT_UDP_PORT),
        };
        let plain = !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']);
        if !plain {
            return Err(TargetError::NoHost(text.to_owned()));
        }
        Target { host: host.to_owned(), port }.checked(text)
    }

    fn checked(self, text: &str) -> Result<Self, TargetError> {
        if self.port == 0 { Err(bad_port(text, "0")) } else { Ok(self) }
    }

    /// Returns the name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the addresses of the host in the resolver's order, each once.
    ///
    /// # Errors
    /// Names the host without an address, with a remedy.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, TargetError> {
        let Target { host, port } = self;
        let found = tokio::net::lookup_host((host.as_str(), *port))
            .await
            .map_err(|error| TargetError::Unknown { host: host.clone(), why: error.to_string() })?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        match addresses.iter().find(|address| address.ip().is_unspecified()) {
            Some(address) => Err(TargetError::Unspecified(address.ip())),
            None => Ok(addresses),
        }
    }
}

fn bad_port(text: &str, port: &str) -> TargetError {
    TargetError::Port { text: text.to_owned(), port: port.to_owned() }
}

/// Parses an address. The default port is [`DEFAULT_UDP_PORT`].
///
/// # Errors
/// Describes the expected format.
pub fn read_address(text: &str) -> Result<SocketAddr, TargetError> {
    refuse_link_local(text)?;
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, DEFAULT_UDP_PORT))
        .map_err(|_| TargetError::NoAddress)
}

/// Rejects an IPv6 link-local address, with or without its interface (RFC 4007 section 11).
///
/// # Errors
/// Returns the error with a remedy.
pub fn refuse_link_local(text: &str) -> Result<(), TargetError> {
    let host = text.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(text);
    let address = host.split('%').next().unwrap_or(host);
    match address.parse::<std::net::Ipv6Addr>() {
        Ok(ip) if ip.is_unicast_link_local() => Err(TargetError::LinkLocal(text.to_owned())),
        _ => Ok(()),
    }
}

/// Adds this port to a target without one. Returns `None` if it has a port.
pub fn with_port(target: &str, port: u16) -> Option<String> {
    let bare = target.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(target);
    match bare.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, port).to_string()),
        Err(_) if target.contains(':') => None,
        Err(_) => Some(format!("{target}:{port}")),
    }
}

/// Like [`read_address`], for a destination address.
///
/// # Errors
/// Describes the expected format.
pub fn read_destination(text: &str) -> Result<SocketAddr, TargetError> {
    let address = read_address(text)?;
    match (address.ip().is_unspecified(), address.port()) {
        (true, _) => Err(TargetError::Unspecified(address.ip())),
        (_, 0) => Err(bad_port(text, "0")),
        _ => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_the_usual_port_unless_it_names_one() {
        for (text, host, port) in [
            ("example.org", "example.org", 9899),
            ("example.org:7", "example.org", 7),
            ("192.0.2.1", "192.0.2.1", 9899),
            ("192.0.2.1:7", "192.0.2.1", 7),
            ("2001:db8::1", "2001:db8::1", 9899),
            ("[2001:db8::1]", "2001:db8::1", 9899),
            ("[2001:db8::1]:7", "2001:db8::1", 7),
        ] {
            assert_eq!(Target::read(text), Ok(Target { host: host.to_owned(), port }), "{text}");
        }
    }

    #[test]
    fn link_local_address_is_refused_with_the_remedy() {
        for text in
            ["fe80::1", "fe80::1%eth0", "[fe80::1%eth0]", "[fe80::1%eth0]:9899", "[fe80::1%2]:7", "febf::1"]
        {
            for error in [Target::read(text).err(), read_address(text).err(), read_destination(text).err()] {
                let error = error.map(|error| error.to_string());
                assert!(
                    error.as_deref().is_some_and(|error| error.contains("fd00::1/64")),
                    "{text}: {error:?}"
                );
            }
        }
        assert!(Target::read("fe80.example.org").is_ok() && read_address("[fec0::1]:7").is_ok());
    }

    #[test]
    fn invalid_target_is_refused_with_an_example() {
        for (text, expected) in [
            ("", "is not a host"),
            (":9899", "is not a host"),
            ("a b", "is not a host"),
            ("sctp://host", "`//host` is not a valid destination port"),
            ("host:", "`` is not a valid destination port"),
            ("host:70000", "`70000` is not a valid destination port"),
            ("host:0", "from 1 to 65535"),
            ("192.0.2.1:0", "from 1 to 65535"),
        ] {
            let error = Target::read(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_port_is_put_behind_a_target_that_has_none() {
        for (target, expected) in [
            ("host", Some("host:7")),
            ("192.0.2.1", Some("192.0.2.1:7")),
            ("::1", Some("[::1]:7")),
            ("[::1]", Some("[::1]:7")),
            ("host:8", None),
            ("[::1]:8", None),
        ] {
            assert_eq!(with_port(target, 7).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn destination_must_be_the_address_of_a_host() {
        assert_eq!(read_destination("127.0.0.1"), Ok(SocketAddr::from(([127, 0, 0, 1], 9899))));
        let unspecified = TargetError::Unspecified(IpAddr::from([0, 0, 0, 0]));
        assert_eq!(read_destination("0.0.0.0:1"), Err(unspecified));
        assert_eq!(read_destination("127.0.0.1:0"), Err(bad_port("127.0.0.1:0", "0")));
        assert_eq!(read_destination("localhost"), Err(TargetError::NoAddress));
    }
}
