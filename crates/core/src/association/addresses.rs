//! Local addresses: additions and removals while the association is up.

use crate::address::{LocalEnd, PathAddress};
use crate::association::address_manager::AddressManager;
use crate::association::{Association, AssociationEvent};
use crate::error::PathError;
use crate::path_id::PathId;
use crate::paths::Paths;

impl Association {
    /// Adds a local address. It gets a path to the remote address with the fewest paths; of several, the primary path's is taken.
    /// The path carries data once it has answered a HEARTBEAT. If both sides support ASCONF, the address is first announced to the
    /// peer (RFC 5061 section 5.3 F1).
    ///
    /// # Errors
    /// Returns [`PathError::TooMany`]; [`PathError::Exists`] if the path exists already; [`PathError::Family`] if no remote
    /// address of the same IP version is known; [`PathError::Closed`].
    pub fn add_local_address(
        &mut self,
        now: crate::time::Time,
        local: impl Into<LocalEnd>,
    ) -> Result<PathId, PathError> {
        let local = local.into();
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        if let Some(path) = self.restore_local_end(local) {
            return Ok(path);
        }
        let address = self.address_from(local).ok_or(PathError::Family)?;
        self.add_announced(address)
    }

    /// Adds a path between these addresses after its local address was removed, and announces the address as
    /// [`add_local_address`](Self::add_local_address) does.
    ///
    /// # Errors
    /// Returns [`PathError::TooMany`]; [`PathError::Exists`]; [`PathError::Closed`].
    pub fn restore_path(
        &mut self,
        now: crate::time::Time,
        address: PathAddress,
    ) -> Result<PathId, PathError> {
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        self.restore_local_end(address.local_end());
        self.add_announced(address)
    }

    fn add_announced(&mut self, address: PathAddress) -> Result<PathId, PathError> {
        let id = self.new_path(address)?;
        self.addresses.forget_removal(address.local_end());
        if !self.is_opening() {
            self.outputs.report(AssociationEvent::PathAdded { path: id });
        }
        self.announce_added(id);
        self.drop_gone_addresses();
        Ok(id)
    }

    /// Reverts the removal of a local address and probes its paths. Returns `false` if it has none.
    pub fn restore_local_address(&mut self, now: crate::time::Time, local: impl Into<LocalEnd>) -> bool {
        let local = local.into();
        self.clock(now);
        !self.is_closed() && self.restore_local_end(local).is_some()
    }

    /// Probes the paths of a local address whose interface is connected again.
    pub fn probe_local_address(&mut self, now: crate::time::Time, local: impl Into<LocalEnd>) {
        let local = local.into();
        self.clock(now);
        if self.is_closed() || self.is_opening() {
            return;
        }
        let begins_here = |id: &PathId| self.paths[*id].address.local_end() == local;
        let paths: Vec<PathId> = self.paths.live().filter(begins_here).collect();
        for id in paths {
            self.send_heartbeat(id);
        }
    }

    /// Removes a local address: its paths are retired, and their outstanding data moves to others. If both sides support ASCONF,
    /// the removal is reported to the peer. The paths of the only address stay until another one has been added and has answered.
    ///
    /// # Errors
    /// Returns [`PathError::Unknown`] if no path begins at the address; [`PathError::Closed`].
    pub fn remove_local_address(
        &mut self,
        now: crate::time::Time,
        local: impl Into<LocalEnd>,
    ) -> Result<(), PathError> {
        let local = local.into();
        self.clock(now);
        if self.is_closed() {
            return Err(PathError::Closed);
        }
        if !self.paths.live().any(|id| self.paths[id].address.local_end() == local) {
            return self.withdraw_advertised(local);
        }
        self.addresses.begin_removal(local);
        self.drop_gone_addresses();
        Ok(())
    }

    /// Reverts the removal of an address whose paths remain, and probes them at once. Returns the first of them.
    fn restore_local_end(&mut self, local: LocalEnd) -> Option<PathId> {
        if !self.addresses.revert_removal(local) {
            return None;
        }
        let paths: Vec<PathId> =
            self.paths.live().filter(|id| self.paths[*id].address.local_end() == local).collect();
        for &id in &paths {
            self.send_heartbeat(id);
        }
        paths.first().copied()
    }

    /// Returns the addresses of a new path from this local end.
    fn address_from(&self, local: LocalEnd) -> Option<PathAddress> {
        let stays = |id: &PathId| !self.addresses.is_retired_end(self.paths[*id].address.local_end());
        let served = |remote| {
            self.paths.live().filter(stays).filter(|id| self.paths[*id].address.remote == remote).count()
        };
        self.paths
            .live()
            .filter(|id| self.paths[*id].address.remote.is_ipv4() == local.address.is_ipv4())
            .min_by_key(|id| (served(self.paths[*id].address.remote), !self.paths.facts(*id).primary))
            .map(|id| self.paths[id].address.from_end(local))
    }

    /// Retires the paths of removed addresses if there are others.
    pub(crate) fn drop_gone_addresses(&mut self) {
        while let Some(end) = self.next_needless_address() {
            self.retire_local(end);
            self.announce_removed(end);
        }
    }

    fn next_needless_address(&mut self) -> Option<LocalEnd> {
        let paths = &self.paths;
        self.addresses.take_needless(|addresses, end| can_do_without(addresses, paths, end))
    }

    /// Returns a path of another address that the peer knows, if an address was removed and no other path is in use yet. DATA waits
    /// until that path has answered, but acknowledgements may be sent where the acknowledged data came from.
    pub(crate) fn path_beside_gone(&self) -> Option<PathId> {
        if !self.addresses.any_retired() {
            return None;
        }
        self.paths.live().find(|id| {
            !self.addresses.is_retired_end(self.paths[*id].address.local_end()) && !self.is_announcing(*id)
        })
    }

    /// Returns `true` if a path cannot be answered because its local address was removed, while another one may still answer.
    pub(crate) fn is_silent_by_itself(&self, id: PathId) -> bool {
        let may_answer = |id: PathId| {
            let stays = !self.addresses.is_retired_end(self.paths[id].address.local_end());
            stays && (self.paths.was_confirmed(id) || self.is_announcing(id))
        };
        self.addresses.is_retired_end(self.paths[id].address.local_end()) && self.paths.live().any(may_answer)
    }

    fn retire_local(&mut self, local: LocalEnd) {
        let paths: Vec<PathId> =
            self.paths.live().filter(|id| self.paths[*id].address.local_end() == local).collect();
        for id in paths {
            // Another address has a path, so this is not the last one.
            let _ = self.retire_path(id);
        }
    }
}

/// Returns `true` if a path of another address, which is not being removed either, has answered.
fn can_do_without(addresses: &AddressManager, paths: &Paths, end: LocalEnd) -> bool {
    paths.live().any(|id| {
        let local = paths[id].address.local_end();
        local != end && !addresses.is_retired_end(local) && paths.was_confirmed(id)
    })
}
