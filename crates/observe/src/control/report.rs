//! Reports of endpoints for clients of a control socket.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_net::interface::{LocalAddress, local_addresses};
use anabranch_net::{AssociationReport, LocalEnd, PathSnapshot};

use super::message::{AssociationState, Link, PathReport};

/// Maximum number of known names of interfaces.
const MAX_NAMES: usize = 256;

/// Names of the interfaces with local addresses. The system is asked once for each local end.
#[derive(Debug, Default)]
pub(super) struct InterfaceNames {
    names: BTreeMap<(IpAddr, u32), Option<String>>,
}

impl InterfaceNames {
    fn of(&mut self, end: LocalEnd) -> Option<String> {
        let LocalEnd { address, interface } = end;
        if let Some(name) = self.names.get(&(address, interface)) {
            return name.clone();
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        let fits = |local: &LocalAddress| local.address == address && [0, local.index].contains(&interface);
        let name = local_addresses().into_iter().find(fits).map(|local| local.interface);
        self.names.insert((address, interface), name.clone());
        name
    }

    /// Describes a local end.
    pub(super) fn link(&mut self, end: LocalEnd) -> Link {
        Link { local: end.address, interface: self.of(end), interface_index: end.interface }
    }

    /// Describes an association of this endpoint.
    pub(super) fn association(&mut self, endpoint: u64, report: AssociationReport) -> AssociationState {
        let AssociationReport { number, established, snapshot } = report;
        AssociationState {
            endpoint,
            number,
            established,
            send_buffered_bytes: snapshot.send_buffered_bytes,
            recv_buffered_bytes: snapshot.recv_buffered_bytes,
            copies_sent: snapshot.statistics.copies_sent,
            paths: snapshot.paths.into_iter().map(|path| self.path(path)).collect(),
        }
    }

    fn path(&mut self, path: PathSnapshot) -> PathReport {
        let end = LocalEnd { address: path.local, interface: path.interface };
        PathReport {
            path: format!("path-{}", path.id.index() + 1),
            local: path.local,
            interface: self.of(end),
            interface_index: path.interface,
            remote: path.remote,
            state: path.state.into(),
            primary: path.primary,
            cost: path.cost.into(),
            waits_for: path.limiter.into(),
            srtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.cwnd_bytes,
            in_flight_bytes: path.in_flight_bytes,
            sent_bytes: path.sent_bytes,
            delivered_bytes: path.delivered_bytes,
            lost_bytes: path.lost_bytes,
            received_bytes: path.received_bytes,
            errors: path.errors,
        }
    }
}
