//! Addresses that peers report, and the report of our own ones.

use std::net::IpAddr;

use anabranch_core::{AssociationId, LocalEnd};

use crate::driver::Driver;
use crate::interface::{LocalAddress, local_addresses};
use crate::pairing::path_addresses;

impl Driver {
    /// The peer has reported addresses.
    pub(crate) fn reported(&mut self, id: AssociationId) {
        self.pairing.reported(self.clock.now(), id);
        self.pair(id);
    }

    /// The list of reported addresses has changed, or a path is gone.
    pub(crate) fn pair(&mut self, id: AssociationId) {
        let association = self.endpoint.association(id);
        if association.is_some_and(|association| association.reported_addresses().next().is_some()) {
            self.pairing.want(self.clock.now(), id);
        }
    }

    /// Interfaces, addresses or routes have changed: pairs that did not answer may do so now.
    pub(crate) fn pair_again(&mut self) {
        self.pairing.forget_tried();
        let ids: Vec<AssociationId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.pair(id));
    }

    /// Offers paths where it is time to.
    pub(crate) fn offer_paths(&mut self) {
        let now = self.clock.now();
        let due = self.pairing.take_due(now);
        if due.is_empty() {
            return;
        }
        let known = local_addresses();
        // An interface without a carrier has no way anywhere; when that is back, this is done again.
        let usable = |end: LocalEnd| {
            let is_here = |local: &LocalAddress| {
                local.address == end.address && [0, local.index].contains(&end.interface)
            };
            let found = known.iter().find(|local| is_here(local) && local.obstacle.is_none());
            found.map(|local| (end, local))
        };
        let locals: Vec<(LocalEnd, &LocalAddress)> =
            self.sockets.iter().filter_map(|socket| usable(socket.end())).collect();
        for id in due {
            if let Some(association) = self.endpoint.association_mut(id) {
                self.pairing.offer(now, id, association, &locals);
                self.watch.touch(id);
            }
        }
    }

    /// Reports our addresses to the peers that have opened associations.
    pub(crate) fn report_locals(&mut self) {
        let ids: Vec<AssociationId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.report_locals_to(id));
    }

    /// Reports our addresses with the UDP port that the peer knows: it assumes the same one everywhere (RFC 6951 section 5.4).
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

    /// The interface of a local address is connected again: its paths are probed at once, and the peer may offer new ones.
    pub(crate) fn reconnected(&mut self, local: LocalEnd) {
        self.look_at_interfaces();
        let bound = self.sockets.iter().any(|socket| socket.end() == local);
        let local = if bound { local } else { local.address.into() };
        self.for_each_association(|association, now| association.probe_local_address(now, local));
        self.report_locals();
        self.pair_again();
    }
}
