//! What a relay is told before it starts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_sim::{ConfigError, LinkChange, LinkConfig, Seeds};

use crate::impairment::Direction;

/// What a relay is told before it starts.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Where clients send to.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The local address that the target sees them come from, on a port for each client.
    pub from: Option<IpAddr>,
    /// The link from clients to the target.
    pub forward: LinkConfig,
    /// The link from the target to clients.
    pub reverse: LinkConfig,
    /// Whose packets the links lose, as in a scenario.
    pub source: String,
    /// Where the randomness of the links comes from.
    pub seeds: Seeds,
    /// The largest IP packet that goes through; larger ones are dropped, as where the DF bit is set (RFC 791 section 3.2).
    pub mtu_bytes: u64,
    /// What changes by itself, counted from the start.
    pub changes: Vec<(Direction, Time, LinkChange)>,
    /// How many clients at a time.
    pub max_clients: usize,
    /// How long a client is remembered that nothing comes from or goes to.
    pub idle: Duration,
}

impl RelayConfig {
    /// Whose packets the links lose, unless a relay is told otherwise: a scenario's first flow that has no name.
    pub const SOURCE: &str = "flow-1";
    /// The largest IP packet, unless a relay is told otherwise: that of Ethernet.
    pub const MTU_BYTES: u64 = 1500;
    /// No packet is larger than that.
    pub const ANY_SIZE: u64 = 65_575;
    /// Clients that a relay has room for, unless it is told otherwise.
    pub const MAX_CLIENTS: usize = 64;
    /// How long a client is remembered, unless the relay is told otherwise. NATs keep UDP bindings for two
    /// minutes at least (RFC 4787, section 4.3).
    pub const IDLE: Duration = Duration::from_secs(120);

    /// A relay over these two links.
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

    /// Headers of a datagram on a link: 20 bytes of IPv4 or 40 of IPv6 as the target has it, and 8 of UDP. It is
    /// what a simulated run with UDP encapsulation counts.
    pub(crate) fn overhead(&self) -> WireBytes {
        WireBytes::new(if self.to.is_ipv4() { 28 } else { 48 })
    }

    /// What the socket of a client is bound to. From a loopback address the system would take 127.0.0.1 for all
    /// relays, so that a target with several addresses could not tell one way from another; there the address
    /// that the relay listens on is taken.
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

/// Why a relay did not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// A link cannot be like this.
    #[error("the link cannot be like this: {0}")]
    Link(#[from] ConfigError),
    /// There is nowhere to send to.
    #[error("{0} is nowhere to send to: name the target's address and port")]
    NoTarget(SocketAddr),
    /// Everything would go round for ever.
    #[error("{0} is the relay's own address: name the target's")]
    Loop(SocketAddr),
    /// A socket has one address family.
    #[error("nothing can be sent from {from} to {to}: take two addresses of one family")]
    MixedFamilies {
        /// The local address.
        from: IpAddr,
        /// The target.
        to: SocketAddr,
    },
    /// Nobody could use it.
    #[error("a relay has room for one client at least")]
    NoClients,
    /// Every client would be forgotten at once.
    #[error("clients have to be remembered for longer than no time at all")]
    NoMemory,
    /// The address to listen on cannot be had.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// The target cannot be reached from here.
    #[error("cannot send from {from} to {to}: {cause}")]
    Upstream {
        /// The local address.
        from: IpAddr,
        /// The target.
        to: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// There is no thread to be had that wakes the relay in time.
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
    fn what_makes_no_sense_is_refused_with_a_remedy() {
        let refused = |change: fn(&mut RelayConfig)| {
            let mut config = config("127.0.0.1:0", "127.0.0.1:9");
            change(&mut config);
            config.check().expect_err("it makes no sense").to_string()
        };
        assert!(refused(|c| c.to.set_port(0)).contains("name the target's address and port"));
        assert!(refused(|c| c.to.set_ip([0, 0, 0, 0].into())).contains("0.0.0.0:9"));
        assert!(refused(|c| c.listen = c.to).contains("own address"));
        assert!(refused(|c| c.from = Some("::1".parse().expect("an address"))).contains("one family"));
        assert!(refused(|c| c.max_clients = 0).contains("one client"));
        assert!(refused(|c| c.idle = Duration::ZERO).contains("remembered"));
    }
}
