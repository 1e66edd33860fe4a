//! Addresses that a protected peer reports, and reports of local addresses to it.
//!
//! Addresses in INIT and INIT ACK are in the clear. Once keys are in use the side that accepted the association reports its
//! addresses by ASCONF in protected packets. The side that opened it offers paths to them, and keeps those that answer a HEARTBEAT.

use std::net::IpAddr;

use crate::address::{LocalEnd, PathAddress};
use crate::association::asconf::Request;
use crate::association::{Association, AssociationEvent};
use crate::config::ListedAddresses;
use crate::error::PathError;
use crate::path_id::{MAX_PATHS, PathId, PathState};
use crate::paths::PathSource;
use crate::scope::{Scope, is_foreign};
use crate::time::Time;

/// Number of unanswered HEARTBEATs after which an offered path is removed. The wait doubles from RTO.Initial: 15 s in total.
const MOST_UNANSWERED: u32 = 4;

/// Side that reports.
impl Association {
    /// Reports these local addresses, at most eight, to the peer, which may then open paths to them. Has no effect unless packets
    /// are protected and both sides support ASCONF.
    pub fn report_addresses(&mut self, now: Time, addresses: &[IpAddr]) {
        self.clock(now);
        if self.is_closed() || self.identity.initiator || !self.requires_protection() {
            return;
        }
        let begins_path =
            |address: &IpAddr| self.paths.live().any(|id| self.paths[id].address.local == *address);
        // The peer uses a report only once it contains the address that the peer has connected to.
        let (first, rest): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.iter().partition(|address| begins_path(address));
        let usable = |address: &IpAddr| Scope::of(*address) != Scope::Unusable;
        let all: Vec<IpAddr> = first.into_iter().chain(rest).filter(usable).take(MAX_PATHS).collect();
        for &address in &all {
            self.addresses.note_advertised(address);
        }
        self.ask_all(all.into_iter().map(|local| Request::Report { local }));
    }

    /// Withdraws the report of an address at which no path begins.
    pub(super) fn withdraw_advertised(&mut self, local: LocalEnd) -> Result<(), PathError> {
        if !self.addresses.is_advertised(local.address) {
            return Err(PathError::Unknown);
        }
        self.addresses.withdraw_local(local);
        self.announce_removed(local);
        Ok(())
    }
}

/// Side that opened the association.
impl Association {
    /// Returns `true` if the driver pairs addresses that the peer adds by name. Only protected associations do, because an ASCONF
    /// of such an association is accepted in a record only.
    pub(super) fn takes_reports(&self) -> bool {
        self.identity.initiator
            && self.config.listed_addresses == ListedAddresses::Protected
            && self.protection().is_some()
    }

    /// Records an address that the peer has added by a protected ASCONF from `source`. Loopback, link-local and multicast addresses
    /// have another meaning on this host, and so have private ones that are reported from a global address.
    pub(super) fn take_report(&mut self, source: IpAddr, address: IpAddr) {
        if is_foreign(source, address) {
            return;
        }
        if self.addresses.add_reported(address) {
            self.addresses.undelete(address);
            // A repeated report is an event too: the peer's interface may have a carrier again.
            self.outputs.report(AssociationEvent::PeerAddresses);
        }
    }

    /// Returns the addresses that the peer has reported in protected packets and to which paths may lead, each with the UDP port.
    ///
    /// There are none until the peer has reported an address to which a path leads: otherwise a relay or NAT is between the two
    /// sides, which no packet may bypass.
    pub fn reported_addresses(&self) -> impl Iterator<Item = (IpAddr, Option<u16>)> + '_ {
        let reported = self.addresses.reported();
        let known = self.paths.live().map(|id| self.paths[id].address).find(|a| reported.contains(&a.remote));
        let port = known.map(|address| address.udp_port);
        port.into_iter().flat_map(move |port| reported.iter().map(move |address| (*address, port)))
    }

    /// Adds a path to an address that the peer has reported. It gets one small HEARTBEAT per time-out until it answers, and is
    /// removed after some ([`AssociationEvent::PathRemoved`]).
    ///
    /// # Errors
    /// Returns [`PathError::Exists`], [`PathError::TooMany`], [`PathError::Closed`]; [`PathError::Unknown`] if the peer has not
    /// reported this address.
    pub fn offer_path(&mut self, now: Time, address: PathAddress) -> Result<PathId, PathError> {
        self.clock(now);
        if self.is_closed() || self.is_opening() {
            return Err(PathError::Closed);
        }
        if !self.reported_addresses().any(|(reported, _)| reported == address.remote)
            && !self.has_remote(address.remote)
        {
            return Err(PathError::Unknown);
        }
        let id = self.new_path(address).or_else(|error| {
            self.evict_failed();
            self.new_path(address).map_err(|_| error)
        })?;
        self.paths.mark_offered(id);
        self.outputs.report(AssociationEvent::PathAdded { path: id });
        self.verify_path(id);
        Ok(id)
    }

    /// Removes an offered path that has not answered its HEARTBEATs. Returns `true` if it did.
    pub(super) fn remove_offered(&mut self, id: PathId) -> bool {
        let unconfirmed = self.paths.facts(id).state != PathState::Active && !self.paths.was_confirmed(id);
        let exhausted = self.paths.facts(id).error_count >= MOST_UNANSWERED;
        self.paths[id].source == PathSource::Offered
            && unconfirmed
            && exhausted
            && self.retire_path(id).is_ok()
    }
}
