//! Our addresses: new ones come into use and old ones go out of it while the association is up.

use crate::address::{LocalEnd, PathAddress};
use crate::association::address_manager::AddressManager;
use crate::association::{Association, AssociationEvent};
use crate::error::PathError;
use crate::path_id::PathId;
use crate::paths::Paths;

impl Association {
    /// Takes a new local address into use: a path from it to the peer's address that fewest paths lead to, the primary one's
    /// where there are several, carries data once it has answered a HEARTBEAT. If both sides do ASCONF the peer is told first
    /// (RFC 5061 section 5.3 F1).
    ///
    /// # Errors
    /// [`PathError::TooMany`]; [`PathError::Exists`] if such a path is there already; [`PathError::Family`] if no address of
    /// the peer's of the same IP version is known; [`PathError::Closed`].
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
        if let Some(path) = self.come_back(local) {
            return Ok(path);
        }
        let address = self.address_from(local).ok_or(PathError::Family)?;
        let id = self.new_path(address)?;
        self.addresses.forget_removal(local);
        if !self.is_opening() {
            self.outputs.report(AssociationEvent::PathAdded { path: id });
        }
        self.announce_added(id);
        self.drop_gone_addresses();
        Ok(id)
    }

    /// Tries the paths of a local address again that was taken out of use and is back. Returns `false` if there are none.
    pub fn take_back_local_address(&mut self, now: crate::time::Time, local: impl Into<LocalEnd>) -> bool {
        let local = local.into();
        self.clock(now);
        !self.is_closed() && self.come_back(local).is_some()
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

    /// Takes a local address out of use: its paths are retired, what they carried moves to others, and if both sides do ASCONF
    /// the peer is told. The paths of the only address there is stay until another one has been added and has answered.
    ///
    /// # Errors
    /// [`PathError::Unknown`] if no path begins at it; [`PathError::Closed`].
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

    /// An address that went and whose paths are still there is back: they are tried at once.
    fn come_back(&mut self, local: LocalEnd) -> Option<PathId> {
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

    /// The addresses of a path that begins at this one.
    fn address_from(&self, local: LocalEnd) -> Option<PathAddress> {
        let stays = |id: &PathId| !self.addresses.is_gone(self.paths[*id].address.local_end());
        let served = |remote| {
            self.paths.live().filter(stays).filter(|id| self.paths[*id].address.remote == remote).count()
        };
        self.paths
            .live()
            .filter(|id| self.paths[*id].address.remote.is_ipv4() == local.address.is_ipv4())
            .min_by_key(|id| (served(self.paths[*id].address.remote), !self.paths.facts(*id).primary))
            .map(|id| self.paths[id].address.from_end(local))
    }

    /// Retires the paths of addresses that have gone, as far as there are others.
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

    /// If an address has gone and nothing else is in use yet: a path of another one that the peer knows. DATA waits until it has
    /// answered, but acknowledgements may go where what they acknowledge came from.
    pub(crate) fn path_beside_gone(&self) -> Option<PathId> {
        if !self.addresses.any_gone() {
            return None;
        }
        self.paths.live().find(|id| {
            !self.addresses.is_gone(self.paths[*id].address.local_end()) && !self.is_announcing(*id)
        })
    }

    /// Whether nothing can come back on a path because our address has gone, while another one may still answer.
    pub(crate) fn is_silent_by_itself(&self, id: PathId) -> bool {
        let may_answer = |id: PathId| {
            let stays = !self.addresses.is_gone(self.paths[id].address.local_end());
            stays && (self.paths.was_confirmed(id) || self.is_announcing(id))
        };
        self.addresses.is_gone(self.paths[id].address.local_end()) && self.paths.live().any(may_answer)
    }

    fn retire_local(&mut self, local: LocalEnd) {
        let paths: Vec<PathId> =
            self.paths.live().filter(|id| self.paths[*id].address.local_end() == local).collect();
        for id in paths {
            // Another address has a path, so that this is not the last.
            let _ = self.retire_path(id);
        }
    }
}

/// Returns `true` if a path of another address, which is not about to go as well, has answered.
fn can_do_without(addresses: &AddressManager, paths: &Paths, end: LocalEnd) -> bool {
    paths.live().any(|id| {
        let local = paths[id].address.local_end();
        local != end && !addresses.is_gone(local) && paths.was_confirmed(id)
    })
}
