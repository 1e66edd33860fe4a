//! Configuration of a relay.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_sim::{ConfigError, LinkChange, LinkConfig, Seeds};

use crate::impairment::Direction;

/// Configuration of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Address for datagrams of clients.
    pub listen: SocketAddr,
    /// Address of the target.
    pub to: SocketAddr,
    /// Local address for sockets towards the target, with one port per client.
    pub from: Option<IpAddr>,
    /// Link from clients to the target.
    pub forward: LinkConfig,
    /// Link from the target to clients.
    pub reverse: LinkConfig,
    /// Name of the source whose packets the links lose, as in a scenario.
    pub source: String,
    /// Seeds of the links' random streams.
    pub seeds: Seeds,
    /// MTU in bytes. Larger IP packets are dropped, as with the DF bit set (RFC 791 section 3.2).
    pub mtu_bytes: u64,
    /// Scheduled changes, with times counted from the start.
    pub changes: Vec<(Direction, Time, LinkChange)>,
    /// Maximum number of clients.
    pub max_clients: usize,
    /// Time after which an inactive client is removed.
    pub idle: Duration,
}

impl RelayConfig {
    /// Default source: the first unnamed flow of a scenario.
    pub const SOURCE: &str = "flow-1";
    /// Default MTU in bytes: that of Ethernet.
    pub const MTU_BYTES: u64 = 1500;
    /// MTU that no packet exceeds, in bytes.
    pub const ANY_SIZE: u64 = 65_575;
    /// Default maximum number of clients.
    pub const MAX_CLIENTS: usize = 64;
    /// Default time after which an inactive client is removed. NATs keep UDP mappings for at least two minutes (RFC 4787, section
    /// 4.3).
    pub const IDLE: Duration = Duration::from_secs(120);

    /// Creates the configuration of a relay over these two links.
    pub fn new(listen: SocketAddr, to: SocketAddr, forward: LinkConfig, reverse: LinkConfig) -> Self {
        RelayConfig {
            listen,
            to,
            from: None,
            forward,
            reverse,
            source: Self::SOURCE.to_owned(),
            seeds: Seeds::new(1, 0),
            mtu_bytes: Self::MTU_BYTES,
            changes: Vec::new(),
            max_clients: Self::MAX_CLIENTS,
            idle: Self::IDLE,
        }
    }

    /// Returns the size of a datagram's headers on a link: 20 bytes of IPv4 or 40 of IPv6, by the target's family, and 8 of UDP. A
    /// simulated run with UDP encapsulation counts the same.
    pub(crate) fn overhead(&self) -> WireBytes {
        WireBytes::new(if self.to.is_ipv4() { 28 } else { 48 })
    }

    /// Returns the address for a client's socket towards the target. For a loopback target the system would select 127.0.0.1 for
    /// all relays, and a target with several addresses could not distinguish the paths. In that case it is the relay's own
    /// listening address.
    pub(crate) fn upstream(&self) -> SocketAddr {
        let listen = self.listen.ip();
        let near = listen.is_loopback() && self.to.ip().is_loopback() && same_family(listen, self.to.ip());
        let any = if self.to.is_ipv4() {
            IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::from(std::net::Ipv6Addr::UNSPECIFIED)
        };
        SocketAddr::new(self.from.unwrap_or(if near { listen } else { any }), 0)
    }

    pub(crate) fn check(&self) -> Result<(), RelayError> {
        if self.to.port() == 0 || self.to.ip().is_unspecified() {
            return Err(RelayError::NoTarget(self.to));
        }
        if self.to == self.listen {
            return Err(RelayError::Loop(self.to));
        }
        if let Some(from) = self.from.filter(|from| !same_family(*from, self.to.ip())) {
            return Err(RelayError::MixedFamilies { from, to: self.to });
        }
        if self.max_clients == 0 {
            return Err(RelayError::NoClients);
        }
        if self.idle.is_zero() {
            return Err(RelayError::NoMemory);
        }
        Ok(())
    }
}

fn same_family(one: IpAddr, other: IpAddr) -> bool {
    one.is_ipv4() == other.is_ipv4()
}

/// Error that prevents a relay from starting.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The configuration of a link is invalid.
    #[error("the link cannot be like this: {0}")]
    Link(#[from] ConfigError),
    /// The address of the target is unusable.
    #[error("{0} is nowhere to send to: name the target's address and port")]
    NoTarget(SocketAddr),
    /// The target is the relay itself.
    #[error("{0} is the relay's own address: name the target's")]
    Loop(SocketAddr),
    /// The local address and the target have different families.
    #[error("{from} cannot send to {to}: use two addresses of one IP version")]
    MixedFamilies {
        /// Local address.
        from: IpAddr,
        /// Address of the target.
        to: SocketAddr,
    },
    /// The maximum number of clients is zero.
    #[error("a relay has room for one client at least")]
    NoClients,
    /// The time for which clients are kept is zero.
    #[error("clients have to be remembered for longer than no time at all")]
    NoMemory,
    /// The system refuses the address to listen on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the system.
        cause: io::Error,
    },
    /// The target cannot be reached from this machine.
    #[error("cannot send from {from} to {to}: {cause}")]
    Upstream {
        /// Local address.
        from: IpAddr,
        /// Address of the target.
        to: SocketAddr,
        /// Error of the system.
        cause: io::Error,
    },
    /// The timer thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Alarm(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::time::{Rate, Span};
    use anabranch_sim::QueueConfig;

    fn config(listen: &str, to: &str) -> RelayConfig {
        let link = |name: &str| {
            LinkConfig::new(name, Rate::from_bps(1_000_000), Span::ZERO, QueueConfig::packets(5))
        };
        let address = |text: &str| text.parse().expect("an address");
        RelayConfig::new(address(listen), address(to), link("a"), link("b"))
    }

    #[test]
    fn headers_are_those_of_the_target() {
        assert_eq!(config("[::]:0", "192.0.2.1:9").overhead(), WireBytes::new(28));
        assert_eq!(config("127.0.0.1:0", "[2001:db8::1]:9").overhead(), WireBytes::new(48));
    }

    #[test]
    fn on_loopback_a_relay_has_one_address_on_both_sides() {
        let from = |listen, to| config(listen, to).upstream().to_string();
        assert_eq!(from("127.0.0.11:9899", "127.0.0.1:9899"), "127.0.0.11:0");
        assert_eq!(from("127.0.0.11:9899", "192.0.2.1:9899"), "0.0.0.0:0");
        assert_eq!(from("127.0.0.11:9899", "[::1]:9899"), "[::]:0");
        let mut told = config("127.0.0.11:9899", "127.0.0.1:9899");
        told.from = Some([127, 0, 0, 5].into());
        assert_eq!(told.upstream().to_string(), "127.0.0.5:0");
    }

    #[test]
    fn invalid_configuration_is_refused_with_the_remedy() {
        let refused = |change: fn(&mut RelayConfig)| {
            let mut config = config("127.0.0.1:0", "127.0.0.1:9");
            change(&mut config);
            config.check().expect_err("it makes no sense").to_string()
        };
        assert!(refused(|c| c.to.set_port(0)).contains("name the target's address and port"));
        assert!(refused(|c| c.to.set_ip([0, 0, 0, 0].into())).contains("0.0.0.0:9"));
        assert!(refused(|c| c.listen = c.to).contains("own address"));
        assert!(refused(|c| c.from = Some("::1".parse().expect("an address"))).contains("one IP version"));
        assert!(refused(|c| c.max_clients = 0).contains("one client"));
        assert!(refused(|c| c.idle = Duration::ZERO).contains("remembered"));
    }
}
