//! Networks over which two processes transfer data.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use anabranch_tests::namespace::Namespace;

use crate::Failure;

/// Port of the receiver.
const PORT: u16 = 29_899;

/// Kind of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    /// Loopback addresses, with packets of 64 KiB.
    Loopback,
    /// A pair of virtual Ethernet interfaces for each path, with an MTU of 1500 bytes.
    Veth,
}

/// Process of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

/// A network that exists until it is dropped.
#[derive(Debug)]
pub(crate) enum Network {
    Loopback,
    // The namespaces are dropped in this order, because the first was created from within the second.
    Veth { receiver: Namespace, sender: Namespace },
}

impl Network {
    pub(crate) fn new(site: Site, paths: u8) -> Result<Self, Failure> {
        if site == Site::Loopback {
            return Ok(Network::Loopback);
        }
        let refused = "network namespaces need root, or user namespaces for everybody";
        let sender = Namespace::create().ok_or(refused)?;
        let receiver = sender.nested().ok_or(refused)?;
        for path in 1..=paths {
            let there = receiver.id();
            sender.run(&format!(
                "ip link add v{path} mtu 1500 type veth peer name v{path} mtu 1500 netns {there}"
            ));
            for (namespace, host) in [(&sender, 1), (&receiver, 2)] {
                namespace.run(&format!(
                    "ip link set lo up; ip addr add 10.88.{path}.{host}/24 dev v{path}; ip link set v{path} up"
                ));
            }
        }
        Ok(Network::Veth { receiver, sender })
    }

    /// Returns the address of a path, counted from 1.
    pub(crate) fn address(&self, side: Side, path: u8) -> IpAddr {
        let host = match side {
            Side::Sender => 1,
            Side::Receiver => 2,
        };
        match self {
            Network::Loopback => IpAddr::from([127, 0, 10 + path, host]),
            Network::Veth { .. } => IpAddr::from([10, 88, path, host]),
        }
    }

    /// Returns the address and port to which the receiver listens.
    pub(crate) fn receiver(&self, path: u8) -> SocketAddr {
        SocketAddr::new(self.address(Side::Receiver, path), PORT)
    }

    pub(crate) fn command(&self, side: Side, program: &Path) -> Command {
        let namespace = match (self, side) {
            (Network::Loopback, _) => return Command::new(program),
            (Network::Veth { sender, .. }, Side::Sender) => sender,
            (Network::Veth { receiver, .. }, Side::Receiver) => receiver,
        };
        let mut command = namespace.enter(&[]);
        command.arg(program);
        command
    }
}
