//! Addresses of both sides, and their agreement on changes of them (RFC 5061).

use std::net::IpAddr;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::address::{LocalEnd, PathAddress};
use crate::association::asconf::Asconf;
use crate::authentication::{Keys, RANDOM_LEN};
use crate::config::{Encapsulation, InterfaceMtu};
use crate::path_id::MAX_PATHS;

/// Local end that the association no longer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RetiredEnd {
    end: LocalEnd,
    stage: Stage,
}

/// Progress of the removal of a local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The paths of the address are the only ones. They stay until another address has been confirmed.
    Needed,
    /// The paths of the address are retired, and the removal has been or is being reported to the peer.
    Retired,
}

/// Addresses of both sides, and the agreement on changes of them.
#[derive(Clone, Debug)]
pub(crate) struct AddressManager {
    encapsulation: Encapsulation,
    /// `true` if little is sent to addresses that are not validated: see [`Guard`](crate::Guard).
    guarded: bool,
    /// Local ends in use.
    local: Vec<LocalEnd>,
    interface_mtus: Arc<[InterfaceMtu]>,
    /// Local addresses that are no longer used.
    gone: Vec<RetiredEnd>,
    /// Verified and listed addresses of the peer.
    peer: ArrayVec<IpAddr, MAX_PATHS>,
    /// Addresses that the peer has reported in protected packets.
    reported: ArrayVec<IpAddr, MAX_PATHS>,
    /// Local addresses without a path that were reported to the peer in protected packets.
    advertised: ArrayVec<IpAddr, MAX_PATHS>,
    /// Addresses that the peer has deleted, at most [`MAX_PATHS`]: packets from them are out of the blue. A vector, because mostly
    /// it is empty and an idle association then needs no memory for it.
    deleted: Vec<IpAddr>,
    /// Pairs of hosts between which packets, on any UDP port, do not create paths again.
    blocked_sources: Vec<PathAddress>,
    /// Number of times that a path was added, removed, or bound to another port.
    changes: u32,
    /// Random number of the offer to authenticate chunks, if there is one.
    local_random: Option<[u8; RANDOM_LEN]>,
    /// Keys with which both sides authenticate chunks, if they have agreed on them.
    keys: Option<Keys>,
    /// State of ASCONF, if both sides support it.
    asconf: Option<Asconf>,
}

impl AddressManager {
    pub(crate) fn new(
        encapsulation: Encapsulation,
        guarded: bool,
        local: Vec<LocalEnd>,
        interface_mtus: Arc<[InterfaceMtu]>,
        local_random: Option<[u8; RANDOM_LEN]>,
    ) -> Self {
        AddressManager {
            encapsulation,
            guarded,
            local,
            interface_mtus,
            gone: Vec::new(),
            peer: ArrayVec::new(),
            reported: ArrayVec::new(),
            advertised: ArrayVec::new(),
            deleted: Vec::new(),
            blocked_sources: Vec::new(),
            changes: 0,
            local_random,
            keys: None,
            asconf: None,
        }
    }

    /// Returns the MTU in bytes of the interface of a local end, if it is known.
    pub(crate) fn interface_mtu(&self, local: LocalEnd) -> Option<usize> {
        self.interface_mtus.iter().find(|known| known.local == local).map(|known| known.mtu_bytes)
    }

    pub(crate) fn set_interface_mtus(&mut self, mtus: Arc<[InterfaceMtu]>) {
        self.interface_mtus = mtus;
    }

    /// Returns the number of times that a path was added, removed, or bound to another port.
    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    #[inline]
    pub(crate) fn encapsulation(&self) -> &Encapsulation {
        &self.encapsulation
    }

    /// Returns `true` if little is sent to addresses that are not validated.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Returns the local ends in use.
    pub(crate) fn local(&self) -> &[LocalEnd] {
        &self.local
    }

    /// Removes a local end at which no path begins.
    pub(crate) fn withdraw_local(&mut self, end: LocalEnd) {
        self.local.retain(|local| *local != end);
    }

    /// Takes a local end out of use. Its paths stay while they are needed.
    pub(crate) fn begin_removal(&mut self, end: LocalEnd) {
        self.local.retain(|local| *local != end);
        self.gone.retain(|gone| gone.end != end);
        self.gone.push(RetiredEnd { end, stage: Stage::Needed });
    }

    /// Puts a removed local end whose paths remain into use again. Returns `true` if there was one.
    pub(crate) fn revert_removal(&mut self, end: LocalEnd) -> bool {
        let found = self.gone.iter().position(|gone| gone.end == end && gone.stage == Stage::Needed);
        found.map(|at| self.gone.remove(at)).is_some()
    }

    /// Puts a local end with a new path into use.
    pub(crate) fn forget_removal(&mut self, end: LocalEnd) {
        self.gone.retain(|gone| gone.end != end);
    }

    /// Takes the next removed local end for which `is_needless` returns `true`; the caller retires its paths.
    pub(crate) fn take_needless(
        &mut self,
        is_needless: impl Fn(&Self, LocalEnd) -> bool,
    ) -> Option<LocalEnd> {
        let waiting = |gone: &RetiredEnd| gone.stage == Stage::Needed && is_needless(self, gone.end);
        let at = self.gone.iter().position(waiting)?;
        self.gone[at].stage = Stage::Retired;
        Some(self.gone[at].end)
    }

    /// Returns `true` if any local end is no longer used.
    pub(crate) fn any_retired(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Returns `true` if the paths of this local address are retired.
    pub(crate) fn is_retired(&self, local: IpAddr) -> bool {
        self.gone.iter().any(|gone| gone.end.address == local && gone.stage == Stage::Retired)
    }

    /// Returns the verified and listed addresses of the peer.
    pub(crate) fn peer(&self) -> &ArrayVec<IpAddr, MAX_PATHS> {
        &self.peer
    }

    pub(crate) fn set_peer(&mut self, addresses: ArrayVec<IpAddr, MAX_PATHS>) {
        self.peer = addresses;
    }

    /// Adds an address of the peer. Returns `false` if there are too many.
    pub(crate) fn add_peer(&mut self, address: IpAddr) -> bool {
        self.peer.try_push(address).is_ok()
    }

    pub(crate) fn remove_peer(&mut self, address: IpAddr) {
        self.peer.retain(|known| *known != address);
    }

    /// Returns the addresses that the peer has reported in protected packets.
    pub(crate) fn reported(&self) -> &[IpAddr] {
        &self.reported
    }

    /// Adds an address that the peer has reported. Returns `false` if there are too many.
    pub(crate) fn add_reported(&mut self, address: IpAddr) -> bool {
        self.reported.contains(&address) || self.reported.try_push(address).is_ok()
    }

    /// Returns `true` if this local address, at which no path begins, was reported to the peer.
    pub(crate) fn is_advertised(&self, local: IpAddr) -> bool {
        self.advertised.contains(&local)
    }

    /// Records that a local address is reported to the peer. An address without room in the list is reported too, and
    /// never withdrawn.
    pub(crate) fn note_advertised(&mut self, local: IpAddr) {
        if !self.advertised.contains(&local) {
            let _ = self.advertised.try_push(local);
        }
    }

    pub(crate) fn forget_advertised(&mut self, local: IpAddr) {
        self.advertised.retain(|advertised| *advertised != local);
    }

    /// Returns the random number of the offer to authenticate chunks.
    pub(crate) fn local_random(&self) -> Option<&[u8; RANDOM_LEN]> {
        self.local_random.as_ref()
    }

    pub(crate) fn set_local_random(&mut self, random: [u8; RANDOM_LEN]) {
        self.local_random = Some(random);
    }

    /// Returns the keys with which both sides authenticate chunks, if they have agreed on them.
    #[inline]
    pub(crate) fn keys(&self) -> Option<&Keys> {
        self.keys.as_ref()
    }

    pub(crate) fn set_keys(&mut self, keys: Option<Keys>) {
        self.keys = keys;
    }

    /// Returns the state of ASCONF, if both sides support it.
    #[inline]
    pub(crate) fn asconf(&self) -> Option<&Asconf> {
        self.asconf.as_ref()
    }

    /// Returns the state of ASCONF for changes, if both sides support it.
    #[inline]
    pub(crate) fn asconf_mut(&mut self) -> Option<&mut Asconf> {
        self.asconf.as_mut()
    }

    pub(crate) fn end_asconf(&mut self) {
        self.asconf = None;
    }

    /// Starts ASCONF, or resets it after a restart.
    pub(crate) fn begin_asconf(&mut self, our_initial_tsn: u32, peer_initial_tsn: u32) {
        match &mut self.asconf {
            Some(asconf) => asconf.restart(our_initial_tsn, peer_initial_tsn),
            none => *none = Some(Asconf::new(our_initial_tsn, peer_initial_tsn)),
        }
    }

    /// Returns `true` if a local end is no longer used.
    pub(crate) fn is_retired_end(&self, local: LocalEnd) -> bool {
        self.gone.iter().any(|gone| gone.end == local)
    }

    /// Prevents packets from creating a path between these hosts again. The oldest pair makes room for a new one.
    pub(crate) fn block_source(&mut self, address: PathAddress) {
        if self.blocked_sources.len() == MAX_PATHS {
            self.blocked_sources.remove(0);
        }
        self.blocked_sources.push(address);
    }

    /// Permits a path between these hosts again, because the application requested it.
    pub(crate) fn unblock_source(&mut self, address: &PathAddress) {
        self.blocked_sources.retain(|blocked| !blocked.same_hosts(address));
    }

    pub(crate) fn is_source_blocked(&self, address: &PathAddress) -> bool {
        self.blocked_sources.iter().any(|blocked| blocked.same_hosts(address))
    }

    /// Records an address that the peer has deleted. The oldest one makes room for a new one.
    pub(crate) fn delete(&mut self, address: IpAddr) {
        if !self.deleted.contains(&address) {
            if self.deleted.len() == MAX_PATHS {
                self.deleted.remove(0);
            }
            self.deleted.push(address);
        }
        self.peer.retain(|known| *known != address);
        self.reported.retain(|known| *known != address);
    }

    /// Records an address that the peer has added.
    pub(crate) fn undelete(&mut self, address: IpAddr) {
        self.deleted.retain(|deleted| *deleted != address);
    }

    pub(crate) fn is_deleted(&self, address: IpAddr) -> bool {
        self.deleted.contains(&address)
    }

    /// Removes the addresses of a peer that has restarted, because the restarted peer lists its addresses again.
    pub(crate) fn restart(&mut self) {
        self.deleted.clear();
        self.reported.clear();
        self.advertised.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_deleted_address_makes_room_and_repeated_one_does_not() {
        let mut manager = AddressManager::new(Encapsulation::None, false, Vec::new(), Arc::default(), None);
        let address = |n: u8| IpAddr::from([192, 0, 2, n]);
        let remembered = |manager: &AddressManager| {
            (0..20).filter(|&n| manager.is_deleted(address(n))).collect::<Vec<_>>()
        };
        for n in [0, 1, 2, 3, 4, 5, 6, 7, 7, 3] {
            manager.delete(address(n));
        }
        assert_eq!(remembered(&manager), [0, 1, 2, 3, 4, 5, 6, 7]);
        manager.delete(address(8));
        manager.undelete(address(5));
        assert_eq!(remembered(&manager), [1, 2, 3, 4, 6, 7, 8]);
    }

    #[test]
    fn removed_address_comes_back_only_while_its_paths_are_needed() {
        let mut manager = AddressManager::new(Encapsulation::None, false, Vec::new(), Arc::default(), None);
        let end = |n: u8| LocalEnd::from(IpAddr::from([192, 0, 2, n]));
        manager.begin_removal(end(1));
        manager.begin_removal(end(2));
        assert!(manager.is_retired_end(end(1)) && !manager.is_retired(end(1).address));
        assert_eq!(manager.take_needless(|_, gone| gone == end(2)), Some(end(2)));
        assert_eq!(manager.take_needless(|_, gone| gone == end(2)), None, "it is taken once");
        assert!(manager.is_retired(end(2).address) && !manager.revert_removal(end(2)));
        assert!(manager.revert_removal(end(1)) && !manager.is_retired_end(end(1)));
    }
}
