//! Listening addresses and forwardings in the syntax of ssh.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::target::{Target, TargetError, TargetHost, read_port};

/// Error in the text of a forwarding.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ForwardingError {
    /// The number of fields is wrong.
    #[error(
        "expected [BIND:]PORT:HOST:HOSTPORT, such as 8080:example.org:80; put IPv6 addresses in brackets"
    )]
    Fields,
    /// The listening port cannot be read.
    #[error(
        "expected [BIND:]PORT with a port from 0 to 65535, such as 1080 or 127.0.0.1:1080; 0 takes a free port"
    )]
    Port,
    /// The listening address cannot be read.
    #[error("expected an address of this machine, localhost, or * for all addresses")]
    Bind,
    /// The target cannot be read.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Local addresses of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// Loopback, IPv4 and IPv6.
    #[default]
    Loopback,
    /// All addresses.
    All,
    /// One address.
    Address(IpAddr),
}

/// Local addresses and port of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Addresses to bind.
    pub bind: Bind,
    /// Port; 0 selects a free one.
    pub port: u16,
}

impl Listen {
    /// Returns the addresses to bind. Only the first one has to exist.
    pub(crate) fn addresses(self) -> Vec<SocketAddr> {
        let both = |v4: Ipv4Addr, v6: Ipv6Addr| vec![v4.into(), v6.into()];
        let addresses = match self.bind {
            Bind::Loopback => both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
            Bind::All => both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
            Bind::Address(address) => vec![address],
        };
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }

    /// Returns `true` if only programs of this machine can connect.
    pub fn is_loopback(self) -> bool {
        match self.bind {
            Bind::Loopback => true,
            Bind::All => false,
            Bind::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

impl FromStr for Listen {
    type Err = ForwardingError;

    /// Reads `[BIND:]PORT`.
    fn from_str(text: &str) -> Result<Self, ForwardingError> {
        match fields(text).as_slice() {
            [port] => Listen::of("localhost", port),
            [bind, port] => Listen::of(bind, port),
            _ => Err(ForwardingError::Port),
        }
    }
}

impl Listen {
    fn of(bind: &str, port: &str) -> Result<Self, ForwardingError> {
        let bind = match bind {
            "" | "*" => Bind::All,
            "localhost" => Bind::Loopback,
            text => match text.parse() {
                Ok(TargetHost::Address(address)) => Bind::Address(address),
                _ => return Err(ForwardingError::Bind),
            },
        };
        Ok(Listen { bind, port: read_port(port).ok_or(ForwardingError::Port)? })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bind {
            Bind::Loopback => write!(f, "localhost:{}", self.port),
            Bind::All => write!(f, "*:{}", self.port),
            Bind::Address(address) => SocketAddr::new(address, self.port).fmt(f),
        }
    }
}

/// Listener whose connections all lead to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Listener, at the side that forwards or at the gateway.
    pub listen: Listen,
    /// Target that the other side connects to.
    pub target: Target,
}

impl FromStr for Forwarding {
    type Err = ForwardingError;

    /// Reads `[BIND:]PORT:HOST:HOSTPORT`.
    fn from_str(text: &str) -> Result<Self, ForwardingError> {
        let fields = fields(text);
        let (listen, host, port) = match fields.as_slice() {
            [port, host, host_port] => (Listen::of("localhost", port)?, host, host_port),
            [bind, port, host, host_port] => (Listen::of(bind, port)?, host, host_port),
            _ => return Err(ForwardingError::Fields),
        };
        Ok(Forwarding { listen, target: format!("{host}:{port}").parse()? })
    }
}

impl fmt::Display for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.listen, self.target)
    }
}

/// Divides a text at the colons outside brackets.
fn fields(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|character| {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        character == ':' && !inside
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<Forwarding>().expect(text).to_string()
    }

    #[test]
    fn forwardings_are_read_in_the_syntax_of_ssh() {
        assert_eq!(shown("8080:example.org:80"), "localhost:8080:example.org:80");
        assert_eq!(shown("localhost:0:a:1"), "localhost:0:a:1");
        assert_eq!(shown(":8080:a:80"), "*:8080:a:80");
        assert_eq!(shown("*:8080:a:80"), "*:8080:a:80");
        assert_eq!(shown("192.0.2.1:8080:[::1]:80"), "192.0.2.1:8080:[::1]:80");
        assert_eq!(shown("[2001:db8::1]:8080:[2001:db8::2]:80"), "[2001:db8::1]:8080:[2001:db8::2]:80");
    }

    #[test]
    fn invalid_forwardings_name_the_wrong_part() {
        let error = |text: &str| text.parse::<Forwarding>().expect_err(text);
        for text in ["", "80", "80:a", "a:b:c:d:e", "::1:80:a:80"] {
            assert_eq!(error(text), ForwardingError::Fields, "{text}");
        }
        assert_eq!(error("x:a:80"), ForwardingError::Port);
        assert_eq!(error("65536:a:80"), ForwardingError::Port);
        assert_eq!(error("example.org:1:a:80"), ForwardingError::Bind);
        assert_eq!(error("1:a:0"), ForwardingError::Target(TargetError::Port));
        assert_eq!(error("1::80"), ForwardingError::Target(TargetError::Host));
    }

    #[test]
    fn listener_of_a_port_alone_is_on_loopback() {
        let listen: Listen = "1080".parse().expect("a port");
        assert_eq!((listen.bind, listen.port, listen.is_loopback()), (Bind::Loopback, 1080, true));
        assert!(!"*:1080".parse::<Listen>().expect("all").is_loopback());
        assert!("[::1]:1080".parse::<Listen>().expect("an address").is_loopback());
        for text in ["", "a", "1:2:3", "-1"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_accepted_forwarding_is_equal_after_printing(text in "[a-z0-9.:*\\[\\]]{1,40}") {
            if let Ok(forwarding) = text.parse::<Forwarding>() {
                prop_assert_eq!(forwarding.to_string().parse::<Forwarding>(), Ok(forwarding));
            }
        }
    }
}
