//! Sources of packets: their paths, sources that become paths, and limits of the packets to unvalidated sources.

use crate::address::Origin;
use crate::association::{Association, AssociationEvent};
use crate::config::ListedAddresses;
use crate::path_id::{PathId, PathState};
use crate::paths::{AddressValidation, PathSource};
use crate::policy::Event;

/// Maximum packet length to an address that was only listed. A HEARTBEAT with the own information takes 36 bytes.
const SMALL_PACKET: usize = 64;

impl Association {
    /// Returns the path of a packet, whose verification tag proves that the peer sent it. A new source becomes a path that is not
    /// verified yet.
    pub(crate) fn path_of_origin(&mut self, origin: Origin) -> Option<PathId> {
        if let Some(path) = self.paths.find(origin.address) {
            self.note_received(path, origin.bytes);
            return Some(path);
        }
        if self.is_opening() {
            return self.answered_from_another_port(origin);
        }
        if self.addresses.is_deleted(origin.address.remote) || !self.may_learn(origin) {
            return None;
        }
        let is_blocked = self.addresses.is_source_blocked(&origin.address);
        if self.addresses.is_retired_end(origin.address.local_end()) || is_blocked {
            // RFC 5061 section 5.3 F4: packets in flight to an address that is being deleted are processed.
            return Some(self.control_path(None));
        }
        // If no path can be added, the packet is processed nevertheless, and answered on another path.
        Some(self.learn(origin).unwrap_or_else(|| self.control_path(None)))
    }

    /// Adopts the UDP port of an INIT ACK, at which the peer wants to receive (RFC 6951 section 5.4); the handshake verifies it.
    fn answered_from_another_port(&mut self, origin: Origin) -> Option<PathId> {
        let same = |id: &PathId| {
            let path = &self.paths[*id];
            path.address.same_hosts(&origin.address)
        };
        let id = self.paths.live().find(same)?;
        self.paths.rebind(id, origin.address);
        self.addresses.note_change();
        self.dispatch_event(&Event::PathRebound(id));
        Some(id)
    }

    /// Returns `true` if a source without a path may become one.
    //= docs/rfc9260.txt#section-5.1.2
    //# The receiver SHOULD use only these transport addresses as destination transport addresses when sending subsequent
    //# packets to its peer.
    fn may_learn(&self, origin: Origin) -> bool {
        match self.config.listed_addresses {
            ListedAddresses::Ignore | ListedAddresses::Protected => true,
            ListedAddresses::Use => {
                self.addresses.peer().contains(&origin.address.remote)
                    || self.paths.live().any(|id| self.paths[id].address.remote == origin.address.remote)
            }
        }
    }

    pub(crate) fn learn(&mut self, origin: Origin) -> Option<PathId> {
        self.replace_guess(origin);
        let Origin { address, bytes } = origin;
        let id = self.new_path(address).or_else(|_| {
            self.evict_failed();
            self.new_path(address)
        });
        let id = id.ok()?;
        self.paths.mark_learned(id, self.addresses.is_guarded());
        self.note_received(id, bytes);
        self.outputs.report(AssociationEvent::PathAdded { path: id });
        self.unconfirm_addresses_of_peer(id);
        self.verify_path(id);
        Some(id)
    }

    /// Removes a guessed path to this remote address in favour of the one that the peer uses. Other paths stay: two that the peer
    /// uses would replace each other with every packet.
    fn replace_guess(&mut self, origin: Origin) {
        let guess = self.paths.live().find(|id| {
            let path = &self.paths[*id];
            path.address.remote == origin.address.remote
                && path.validation == AddressValidation::Listed
                && self.paths.facts(*id).state == PathState::Unconfirmed
        });
        if let Some(id) = guess {
            let _ = self.retire_path(id);
        }
    }

    /// Removes a learned path that has failed, to make room for a new one.
    pub(super) fn evict_failed(&mut self) {
        let failed = self.paths.live().find(|id| {
            self.paths[*id].source == PathSource::Learned
                && self.paths.facts(*id).state == PathState::Inactive
        });
        if let Some(id) = failed {
            let _ = self.retire_path(id);
        }
    }

    /// Prevents packets from creating a path again between the hosts of this retired path, unless another live path connects them.
    pub(crate) fn block_source(&mut self, id: PathId) {
        let address = self.paths[id].address;
        let another_path = self.paths.live().any(|id| self.paths[id].address.same_hosts(&address));
        if !another_path {
            self.addresses.block_source(address);
        }
    }

    /// Probes the path whose address sends from another port now: either the peer has several paths behind one NAT, or the NAT has
    /// bound the old path to a new port (RFC 6951 section 5.4).
    fn unconfirm_addresses_of_peer(&mut self, new: PathId) {
        for id in self.paths.ids() {
            let (old, path) = (&self.paths[id], &self.paths[new]);
            let same_peer = id != new
                && !old.removed
                && old.address.same_hosts(&path.address)
                && self.paths.facts(id).state != PathState::Unconfirmed;
            if same_peer {
                self.paths.set_successor(id, new);
                self.paths.inherit_peer_cost(id, new);
                self.heartbeat_due(id);
            }
        }
    }

    /// Replaces a path by its successor if the successor has been confirmed and the old path does not answer its probe.
    pub(crate) fn succeed(&mut self, old: PathId) {
        let Some(new) = self.paths[old].successor else { return };
        let proved = !self.paths[new].removed && self.paths.facts(new).state == PathState::Active;
        let silent = self.paths.facts(old).error_count > 0;
        if !proved || !silent || self.paths[old].removed {
            return;
        }
        let was_primary = self.paths.facts(old).primary;
        if self.retire_path(old).is_ok() {
            if was_primary {
                self.paths.set_primary(new);
            }
            self.dispatch_event(&Event::PathRebound(new));
            self.outputs.report(AssociationEvent::PathRebound { path: new, was: old });
        }
    }

    /// Checks the paths that a confirmed path may replace.
    pub(crate) fn replace_rebound_paths(&mut self, new: PathId) {
        for id in self.paths.ids() {
            if self.paths[id].successor == Some(new) {
                self.succeed(id);
            }
        }
    }

    /// Counts a packet that came from the remote address of a path.
    fn note_received(&mut self, id: PathId, bytes: usize) {
        self.paths.note_received(id, bytes, self.addresses.is_guarded());
    }

    /// Returns `true` if a packet of this length may be sent to the remote address of a path, and counts it.
    pub(crate) fn may_send(&mut self, id: PathId, bytes: usize) -> bool {
        let small = SMALL_PACKET + self.protection.reserved_bytes();
        self.paths.admit_packet(id, bytes, small, self.addresses.is_guarded())
    }

    /// Returns `true` if an address of the peer is validated, or was given by the application.
    pub(crate) fn was_answered(&self) -> bool {
        self.paths.iter().any(|path| !path.removed && path.validation == AddressValidation::Trusted)
    }

    /// Removes a learned path that has never answered. Returns `true` if it did.
    pub(crate) fn remove_learned(&mut self, id: PathId) -> bool {
        let path = &self.paths[id];
        let exhausted = match path.validation {
            AddressValidation::Seen { allowance_bytes } => allowance_bytes < SMALL_PACKET as u64,
            AddressValidation::Trusted | AddressValidation::Listed => false,
        };
        let failed = self.paths.facts(id).state == PathState::Inactive;
        let unproved = matches!(path.validation, AddressValidation::Seen { .. });
        path.source == PathSource::Learned
            && unproved
            && (failed || exhausted)
            && self.retire_path(id).is_ok()
    }
}
