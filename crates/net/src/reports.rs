//! Addresses reported by peers, and the report of local ones.

use std::net::IpAddr;

use anabranch_core::{AssociationId, LocalEnd};

use crate::driver::Driver;
use crate::interface::{LocalAddress, local_addresses};
use crate::pairing::path_addresses;

impl Driver {
    /// Handles a report of addresses by the peer.
    pub(crate) fn reported(&mut self, id: AssociationId) {
        self.pairing.reported(self.clock.now(), id);
        self.pair(id);
    }

    /// Requests pairing after a change of the reported addresses or the loss of a path.
    pub(crate) fn pair(&mut self, id: AssociationId) {
        let association = self.endpoint.association(id);
        if association.is_some_and(|association| association.reported_addresses().next().is_some()) {
            self.pairing.want(self.clock.now(), id);
        }
    }

    /// Requests pairing for all associations after a change of interfaces, addresses or routes. Unanswered pairs are tried again.
    pub(crate) fn pair_again(&mut self) {
        self.pairing.forget_tried();
        let ids: Vec<AssociationId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.pair(id));
    }

    /// Offers paths to the associations that are due.
    pub(crate) fn offer_paths(&mut self) {
        let now = self.clock.now();
        let due = self.pairing.take_due(now);
        if due.is_empty() {
            return;
        }
        let known = local_addresses();
        // An interface without a carrier has no routes; when the carrier returns, pairing is repeated.
        let usable = |end: LocalEnd| {
            let is_here = |local: &LocalAddress| {
                local.address == end.address && [0, local.index].contains(&end.interface)
            };
            let found = known.iter().find(|local| is_here(local) && local.obstacle.is_none());
            found.map(|local| (end, local))
        };
        let locals: Vec<(LocalEnd, &LocalAddress)> = self.used_ends().filter_map(usable).collect();
        for id in due {
            if let Some(association) = self.endpoint.association_mut(id) {
                self.pairing.offer(now, id, association, &locals);
                self.watch.touch(id);
            }
        }
    }

    /// Reports local addresses to all peers.
    pub(crate) fn report_locals(&mut self) {
        let ids: Vec<AssociationId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.report_locals_to(id));
    }

    /// Reports local addresses with the UDP port that the peer knows, which it assumes everywhere (RFC 6951 section 5.4).
    pub(crate) fn report_locals_to(&mut self, id: AssociationId) {
        let now = self.clock.now();
        let Some(association) = self.endpoint.association_mut(id) else { return };
        if !association.follows_addresses() {
            return;
        }
        let known = path_addresses(association).map(|path| path.local).next();
        let port = self.sockets.iter().find(|socket| Some(socket.local().ip()) == known);
        let Some(port) = port.map(|socket| socket.local().port()) else { return };
        let locals = self.sockets.iter().map(|socket| socket.local()).filter(|local| local.port() == port);
        let locals: Vec<IpAddr> = locals.map(|local| local.ip()).collect();
        association.report_addresses(now, &locals);
    }

    /// Handles the reconnection of a local address's interface: probes its paths at once, and lets the peer offer new ones.
    pub(crate) fn reconnected(&mut self, local: LocalEnd) {
        self.update_interface_mtus();
        let bound = self.sockets.iter().any(|socket| socket.end() == local);
        let local = if bound { local } else { local.address.into() };
        self.for_each_association(|association, now| association.probe_local_address(now, local));
        self.report_locals();
        self.pair_again();
    }
}
