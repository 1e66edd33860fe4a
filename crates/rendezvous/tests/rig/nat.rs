//! Network address and port translator, with the behaviours of RFC 4787 and RFC 3489.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Type of a NAT, in the terms of RFC 3489 section 5. RFC 4787 names mapping and filtering separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NatType {
    /// Endpoint-independent mapping and filtering.
    FullCone,
    /// Endpoint-independent mapping, address-dependent filtering.
    Restricted,
    /// Endpoint-independent mapping, address- and port-dependent filtering.
    PortRestricted,
    /// Address- and port-dependent mapping and filtering.
    Symmetric,
}

impl NatType {
    pub(crate) const ALL: [NatType; 4] =
        [NatType::FullCone, NatType::Restricted, NatType::PortRestricted, NatType::Symmetric];
}

/// NAT with one public address.
#[derive(Debug)]
pub(crate) struct Nat {
    kind: NatType,
    public: IpAddr,
    /// Public ports by internal source, and by destination if the mapping depends on it.
    ports: BTreeMap<(SocketAddr, Option<SocketAddr>), u16>,
    sources: BTreeMap<u16, SocketAddr>,
    /// Destinations of each public port.
    sent: BTreeSet<(u16, SocketAddr)>,
    next: u16,
}

impl Nat {
    pub(crate) fn new(kind: NatType, public: IpAddr) -> Self {
        Nat {
            kind,
            public,
            ports: BTreeMap::new(),
            sources: BTreeMap::new(),
            sent: BTreeSet::new(),
            next: 20_011,
        }
    }

    pub(crate) fn public(&self) -> IpAddr {
        self.public
    }

    /// Returns the source of an outgoing packet as the outside sees it.
    pub(crate) fn outgoing(&mut self, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        let key = (from, (self.kind == NatType::Symmetric).then_some(to));
        let next = &mut self.next;
        let port = *self.ports.entry(key).or_insert_with(|| {
            *next += 37;
            *next
        });
        self.sources.insert(port, from);
        self.sent.insert((port, to));
        SocketAddr::new(self.public, port)
    }

    /// Returns the internal destination of an incoming packet. Returns `None` if the NAT drops it.
    pub(crate) fn incoming(&self, from: SocketAddr, port: u16) -> Option<SocketAddr> {
        let mut sent = self.sent.iter().filter(|(sender, _)| *sender == port).map(|(_, to)| *to);
        let passes = match self.kind {
            NatType::FullCone => true,
            NatType::Restricted => sent.any(|to| to.ip() == from.ip()),
            NatType::PortRestricted | NatType::Symmetric => sent.any(|to| to == from),
        };
        self.sources.get(&port).copied().filter(|_| passes)
    }

    /// Forgets all mappings, as after a restart of the router. Later mappings have other ports.
    pub(crate) fn restart(&mut self) {
        self.ports.clear();
        self.sources.clear();
        self.sent.clear();
    }
}
