//! Links with a cost or a limit: the use of their local addresses, also of later ones, and the bytes that they carried.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use anabranch_core::PathCost;

use crate::interface::local_addresses;
use crate::socket::Socket;

/// Link of this machine, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkName {
    /// All addresses of this interface.
    Interface(String),
    /// One address, on any interface.
    Address(IpAddr),
}

impl LinkName {
    /// Returns `true` if a socket with this address belongs to the link. `device` is the interface to which it is bound.
    fn has(&self, address: IpAddr, device: Option<&str>) -> bool {
        match (self, device) {
            (LinkName::Address(named), _) => *named == address,
            (LinkName::Interface(named), Some(device)) => named == device,
            (LinkName::Interface(named), None) => {
                local_addresses().iter().any(|local| local.address == address && local.interface == *named)
            }
        }
    }
}

/// Use of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkUse {
    /// Paths at this cost, which the peer learns too. Both sides send on them as their schemes decide.
    At(PathCost),
    /// No paths: every association retires those that begin here and reports this to its peer, and an association without other
    /// paths is aborted ([`CloseReason::Barred`](crate::CloseReason::Barred)).
    Barred,
}

/// Bytes that a link has carried for an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Link, as the user has named it.
    pub name: LinkName,
    /// Current use.
    pub usage: LinkUse,
    /// Bytes of sent IP packets.
    pub sent_bytes: u64,
    /// Bytes of received IP packets.
    pub received_bytes: u64,
}

/// Links whose use is set, in the order in which they were named. The first one that has a socket determines its use.
#[derive(Debug, Default)]
pub(crate) struct LinkUses {
    links: Vec<LinkReport>,
    /// Final bytes, for readers after the end of the endpoint.
    ended: LastLinks,
}

/// Bytes of links at the end of an endpoint.
pub(crate) type LastLinks = Arc<OnceLock<Vec<LinkReport>>>;

impl LinkUses {
    pub(crate) fn new(uses: Vec<(LinkName, LinkUse)>, ended: LastLinks) -> Self {
        let link = |(name, usage)| LinkReport { name, usage, sent_bytes: 0, received_bytes: 0 };
        LinkUses { links: uses.into_iter().map(link).collect(), ended }
    }

    /// Stores the final bytes, given the open sockets.
    pub(crate) fn end(&self, sockets: &[Socket]) {
        let _ = self.ended.set(self.report(sockets));
    }

    /// Changes the use of a link. Returns `false` if it is unknown, or has this use already.
    pub(crate) fn set(&mut self, name: &LinkName, usage: LinkUse) -> bool {
        let link = self.links.iter_mut().find(|link| link.name == *name);
        link.is_some_and(|link| std::mem::replace(&mut link.usage, usage) != usage)
    }

    /// Returns the use of a socket.
    pub(crate) fn use_of(&self, socket: &Socket) -> LinkUse {
        index_of(&self.links, socket).map_or(LinkUse::At(PathCost::Free), |index| self.links[index].usage)
    }

    /// Counts the bytes of a socket that is closed.
    pub(crate) fn close(&mut self, socket: &Socket) {
        if let Some(index) = index_of(&self.links, socket) {
            self.links[index].count(socket);
        }
    }

    /// Returns the links with the bytes of closed and of these open sockets.
    pub(crate) fn report(&self, sockets: &[Socket]) -> Vec<LinkReport> {
        let mut links = self.links.clone();
        for socket in sockets {
            if let Some(index) = index_of(&links, socket) {
                links[index].count(socket);
            }
        }
        links
    }
}

/// Returns the link to which a socket belongs.
fn index_of(links: &[LinkReport], socket: &Socket) -> Option<usize> {
    let (address, device) = (socket.local().ip(), socket.device_name());
    links.iter().position(|link| link.name.has(address, device))
}

impl LinkReport {
    fn count(&mut self, socket: &Socket) {
        let header_bytes = if socket.local().is_ipv4() { 20 + 8 } else { 40 + 8 };
        let counters = &socket.counters;
        self.sent_bytes += counters.sent_bytes + header_bytes * counters.sent;
        self.received_bytes += counters.received_bytes + header_bytes * counters.received;
    }
}
