//! Mapping from datagrams to associations.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::PathId;
use anabranch_net::DatagramOutcome;
use anabranch_trace::qlog::Subject;
use anabranch_wire::PacketView;

use crate::batch::Key;

/// Active association.
#[derive(Debug)]
pub(crate) struct AssociationInfo {
    /// Names of the association and its paths.
    pub(crate) subject: Subject,
    /// Addresses of the paths, as printed.
    pub(crate) addresses: Vec<String>,
    peer_port: u16,
    routes: Vec<Option<DatagramKey>>,
}

/// Key that identifies the association of a datagram. An endpoint has at most one association with a peer's address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DatagramKey {
    endpoint: usize,
    local: IpAddr,
    remote: SocketAddr,
    peer_port: u16,
}

/// Active associations, and the routes that identify their datagrams.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    known: BTreeMap<Key, AssociationInfo>,
    routes: BTreeMap<DatagramKey, (Key, PathId)>,
    /// Number of associations so far.
    count: u64,
}

impl Directory {
    pub(crate) fn open(&mut self, key: Key, peer_port: u16) {
        self.count += 1;
        let subject = Subject { name: format!("association-{}", self.count), paths: Vec::new() };
        self.known
            .insert(key, AssociationInfo { subject, addresses: Vec::new(), peer_port, routes: Vec::new() });
    }

    /// Records new addresses of a path.
    pub(crate) fn path_address(&mut self, key: Key, path: PathId, local: IpAddr, remote: SocketAddr) {
        let Some(known) = self.known.get_mut(&key) else { return };
        while known.subject.paths.len() <= path.index() {
            known.subject.paths.push(format!("path-{}", known.subject.paths.len() + 1));
            known.addresses.push(String::new());
            known.routes.push(None);
        }
        known.addresses[path.index()] = format!("{local} to {remote}");
        let route = DatagramKey { endpoint: key.endpoint, local, remote, peer_port: known.peer_port };
        if let Some(before) = known.routes[path.index()].replace(route) {
            self.routes.remove(&before);
        }
        self.routes.insert(route, (key, path));
    }

    pub(crate) fn get(&self, key: Key) -> Option<&AssociationInfo> {
        self.known.get(&key)
    }

    pub(crate) fn close(&mut self, key: Key) {
        if let Some(known) = self.known.remove(&key) {
            for route in known.routes.iter().flatten() {
                // The peer may already have a new association from the same address.
                if self.routes.get(route).is_some_and(|(owner, _)| *owner == key) {
                    self.routes.remove(route);
                }
            }
        }
    }

    /// Returns the association and the path of a datagram, or `None` if it belongs to no known association.
    pub(crate) fn find(
        &self,
        endpoint: usize,
        local: SocketAddr,
        remote: SocketAddr,
        outcome: DatagramOutcome,
        bytes: &[u8],
    ) -> Option<(Key, PathId)> {
        let header = PacketView::parse(bytes).ok()?.header();
        let peer_port = if is_inbound(outcome) { header.source_port } else { header.destination_port };
        self.routes.get(&DatagramKey { endpoint, local: local.ip(), remote, peer_port }).copied()
    }
}

/// Returns `true` for a datagram that arrived, whether or not it was discarded.
pub(crate) fn is_inbound(outcome: DatagramOutcome) -> bool {
    matches!(outcome, DatagramOutcome::Received | DatagramOutcome::Discarded(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source_port: u16, destination_port: u16) -> Vec<u8> {
        let ports = [source_port.to_be_bytes(), destination_port.to_be_bytes()];
        let mut bytes = ports.concat();
        bytes.resize(12, 0);
        bytes
    }

    #[test]
    fn datagram_is_matched_by_addresses_and_peer_port_after_rebinding() {
        let mut directory = Directory::default();
        let key = Key { endpoint: 0, number: 1 };
        let (local, path) = (SocketAddr::from(([127, 0, 0, 1], 9899)), PathId::new(0));
        let (remote, rebound) =
            (SocketAddr::from(([127, 0, 0, 2], 1)), SocketAddr::from(([127, 0, 0, 2], 2)));
        directory.open(key, 5000);
        directory.path_address(key, path, local.ip(), remote);
        let find = |directory: &Directory, remote, outcome, bytes: &[u8]| {
            directory.find(0, local, remote, outcome, bytes).is_some()
        };
        assert!(find(&directory, remote, DatagramOutcome::Received, &packet(5000, 9899)));
        assert!(find(&directory, remote, DatagramOutcome::Sent, &packet(9899, 5000)));
        assert!(!find(&directory, remote, DatagramOutcome::Sent, &packet(5000, 9899)));
        assert!(!find(&directory, rebound, DatagramOutcome::Received, &packet(5000, 9899)));
        directory.path_address(key, path, local.ip(), rebound);
        assert!(find(&directory, rebound, DatagramOutcome::Received, &packet(5000, 9899)));
        assert!(!find(&directory, remote, DatagramOutcome::Received, &packet(5000, 9899)));
        directory.close(key);
        assert!(!find(&directory, rebound, DatagramOutcome::Received, &packet(5000, 9899)));
    }
}
