//! Errors of selected routes, in the words of the program that asked for them.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use crate::config::DEFAULT_UDP_PORT;

/// Maximum number of paths of an association.
pub(crate) const MOST_PATHS: usize = 8;

/// Names of the inputs of a selection in messages, such as options of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputNames {
    /// Local addresses and interfaces of paths.
    pub local: &'static str,
    /// Remote addresses of paths.
    pub remote: &'static str,
    /// Addresses to listen on.
    pub listen: &'static str,
    /// Hint where the addresses of this machine are listed, as in "see `ip address`".
    pub lists: &'static str,
}

/// Names for an error without those of a program.
const NEUTRAL: InputNames = InputNames {
    local: "the local address",
    remote: "the remote address",
    listen: "the listening address",
    lists: "see the addresses of this machine's interfaces",
};

/// Reason for which no paths or sockets fit what the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// No local address has a route to the peer.
    NoRoute {
        /// Addresses of the peer.
        remotes: Vec<SocketAddr>,
        /// Local addresses, each with its interface and the obstacle.
        locals: Vec<(String, IpAddr, String)>,
    },
    /// No path can begin at a named address.
    CannotBegin {
        /// Address as named.
        local: IpAddr,
        /// Error of the system.
        why: String,
    },
    /// Two interfaces have the named address.
    Ambiguous {
        /// Address as named.
        local: IpAddr,
        /// Names of the interfaces.
        interfaces: [String; 2],
    },
    /// The name is neither an address nor that of an interface with one.
    NoSuchInterface {
        /// Name as written.
        local: String,
        /// Interfaces with addresses.
        known: Vec<String>,
    },
    /// The named interface is down.
    InterfaceDown {
        /// Name of the interface.
        local: String,
    },
    /// No address of the named interface can be used.
    NoAddressOfInterface {
        /// Name of the interface.
        local: String,
        /// First of its addresses.
        address: IpAddr,
        /// Obstacle to the use of this address.
        why: String,
    },
    /// A named local address and the peer have different IP versions.
    Family {
        /// Local address or interface as written.
        local: String,
        /// First address of it, if it has any.
        address: Option<IpAddr>,
        /// Name of the peer, unless its addresses were named.
        host: Option<String>,
        /// First address of the peer.
        remote: Option<SocketAddr>,
    },
    /// No local address has the IP version of a named remote address.
    NoLocalOfFamily {
        /// Remote address.
        remote: SocketAddr,
    },
    /// An association has fewer paths than were named.
    TooManyPaths {
        /// Number of named paths.
        named: usize,
    },
    /// Several local and several remote addresses were named, but not the same number.
    Counts {
        /// Number of local addresses.
        locals: usize,
        /// Number of remote addresses.
        remotes: usize,
    },
    /// No local address can be listened on.
    NothingToListenOn {
        /// Unspecified address that stands for all of its IP version; `None` if no address was named.
        all: Option<SocketAddr>,
    },
}

impl RouteError {
    /// Returns the message with the program's names of the inputs.
    pub fn named(&self, names: InputNames) -> impl Display + '_ {
        Named { error: self, names }
    }
}

impl Display for RouteError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.named(NEUTRAL).fmt(f)
    }
}

impl std::error::Error for RouteError {}

struct Named<'a> {
    error: &'a RouteError,
    names: InputNames,
}

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let InputNames { local: path, remote: to, listen, lists } = self.names;
        match self.error {
            RouteError::NoRoute { remotes, locals } => {
                let ends: Vec<_> = remotes.iter().map(SocketAddr::to_string).collect();
                write!(f, "no local address has a way to {}:", ends.join(", "))?;
                for (interface, address, why) in locals {
                    write!(f, "\n  {interface} {address}: {why}")?;
                }
                write!(f, "\nconnect an interface, or name one of these with {path}")
            }
            RouteError::CannotBegin { local, why } => {
                write!(f, "{path} {local}: no path can begin at this address ({why}); {lists}")
            }
            RouteError::Ambiguous { local, interfaces: [first, second] } => write!(
                f,
                "{path} {local}: {first} and {second} have this address; name the interface instead"
            ),
            RouteError::NoSuchInterface { local, known } => write!(
                f,
                "{path} {local}: neither an address nor an interface with one; there are {}; {lists}",
                known.join(", ")
            ),
            RouteError::InterfaceDown { local } => {
                write!(f, "{path} {local}: the interface is down; switch it on, or omit it")
            }
            RouteError::NoAddressOfInterface { local, address, why } => write!(
                f,
                "{path} {local}: none of its addresses can be used: {address} ({why}); give it another one, or omit it"
            ),
            RouteError::Family { local, address, host, remote } => {
                let wanted = remote.map_or("other", family);
                let given = address.map_or("no address", |address| family(SocketAddr::new(address, 0)));
                let whose = host.as_deref().unwrap_or(to);
                write!(
                    f,
                    "{path} {local}: it has {given} only and {whose} has {wanted} only; both ends of a path need the same version; omit it or name another address"
                )
            }
            RouteError::NoLocalOfFamily { remote } => write!(
                f,
                "{to} {remote}: no usable {} address leads there; {lists}, or name one with {path}",
                family(*remote)
            ),
            RouteError::TooManyPaths { named } => write!(
                f,
                "{path}: {named} paths are more than the {MOST_PATHS} of an association; leave some out"
            ),
            RouteError::Counts { locals, remotes } => write!(
                f,
                "{remotes} times {to} for {locals} times {path}: give one for all, or one for each in their order"
            ),
            RouteError::NothingToListenOn { all } => {
                if let Some(all) = all {
                    write!(f, "{listen} {all}: ")?;
                }
                write!(f, "no local address is usable; {lists}, and name one with {listen}")
            }
        }
    }
}

#[cfg(test)]
impl RouteError {
    /// Returns the message of a program with the options `--path`, `--to` and `--listen`.
    pub(crate) fn with_options(&self) -> String {
        let lists = "see `list`";
        self.named(InputNames { local: "--path", remote: "--to", listen: "--listen", lists }).to_string()
    }
}

pub(crate) fn family(address: SocketAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// Reason for which a text names no peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text is neither a name nor an address.
    #[error(
        "`{0}` is not a host: write a name or an address, such as example.org, 192.0.2.1:9899 or [2001:db8::1]:9899"
    )]
    NoHost(String),
    /// The text is not an address.
    #[error("expected an address with or without a port, such as 192.0.2.1:9899 or [2001:db8::1]")]
    NoAddress,
    /// The port is no valid destination.
    #[error(
        "`{text}`: `{port}` is not a valid destination port; choose one from 1 to 65535, or omit it for {DEFAULT_UDP_PORT}"
    )]
    Port {
        /// Text as written.
        text: String,
        /// Port in it.
        port: String,
    },
    /// The address is link-local.
    #[error(
        "`{0}` is a link-local address, which no path can have; give the interfaces of both hosts addresses such as \
         10.0.0.1/24 or fd00::1/64, and name one of those"
    )]
    LinkLocal(String),
    /// The address is unspecified.
    #[error("{0} is the address of no host; name the one to send to")]
    Unspecified(IpAddr),
    /// The name has no address.
    #[error(
        "{host}: no address is known for this name ({why}); check the spelling and the name server, or give an address"
    )]
    Unknown {
        /// Name that was looked up.
        host: String,
        /// Error of the resolver.
        why: String,
    },
}
