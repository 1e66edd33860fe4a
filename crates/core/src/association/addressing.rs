//! The addresses of both sides, and what the two have agreed on for changes of them (RFC 5061).

use std::net::IpAddr;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::address::{LocalEnd, PathAddress};
use crate::association::addresses::Gone;
use crate::association::asconf::Asconf;
use crate::authentication::{Keys, RANDOM_LEN};
use crate::config::{Encapsulation, InterfaceMtu};
use crate::path_id::MAX_PATHS;

#[derive(Debug)]
pub(crate) struct Addressing {
    pub(super) encapsulation: Encapsulation,
    /// Addresses that have not proved themselves get little: see [`Guard`](crate::Guard).
    pub(super) guarded: bool,
    /// Ours, as far as they were not taken out of use.
    pub(super) local: Vec<LocalEnd>,
    interface_mtus: Arc<[InterfaceMtu]>,
    /// Local addresses that are not to be used any more.
    pub(super) gone: Vec<Gone>,
    /// Verified and listed addresses of the peer.
    pub(super) peer: ArrayVec<IpAddr, MAX_PATHS>,
    /// Addresses that the peer has reported in protected packets.
    pub(super) reported: ArrayVec<IpAddr, MAX_PATHS>,
    /// Our addresses that the peer was told of in protected packets, without a path.
    pub(super) advertised: ArrayVec<IpAddr, MAX_PATHS>,
    /// Addresses that the peer has deleted: what comes from there is out of the blue. No more than [`MAX_PATHS`], and mostly none,
    /// for which an idle association needs no room.
    deleted: Vec<IpAddr>,
    /// Packets between these hosts, on any UDP port, do not make paths again.
    barred: Vec<PathAddress>,
    /// How often a path was added or removed, or bound to another port.
    changes: u32,
    /// What `Association::payload_bytes_per_chunk` gives, which is found out when paths change.
    pub(super) payload_bytes_per_chunk: usize,
    /// What we offer to authenticate chunks with, if we do.
    pub(super) local_random: Option<[u8; RANDOM_LEN]>,
    /// What both sides authenticate chunks with, if they have agreed on it.
    pub(super) keys: Option<Keys>,
    /// Both sides do ASCONF.
    pub(super) asconf: Option<Asconf>,
}

impl Addressing {
    pub(crate) fn new(
        encapsulation: Encapsulation,
        guarded: bool,
        local: Vec<LocalEnd>,
        interface_mtus: Arc<[InterfaceMtu]>,
        local_random: Option<[u8; RANDOM_LEN]>,
    ) -> Self {
        Addressing {
            encapsulation,
            guarded,
            local,
            interface_mtus,
            gone: Vec::new(),
            peer: ArrayVec::new(),
            reported: ArrayVec::new(),
            advertised: ArrayVec::new(),
            deleted: Vec::new(),
            barred: Vec::new(),
            changes: 0,
            payload_bytes_per_chunk: 0,
            local_random,
            keys: None,
            asconf: None,
        }
    }

    /// Returns the largest IP packet that the interface of a local end takes, if that is known.
    pub(crate) fn interface_mtu(&self, local: LocalEnd) -> Option<usize> {
        self.interface_mtus.iter().find(|known| known.local == local).map(|known| known.mtu_bytes)
    }

    pub(crate) fn set_interface_mtus(&mut self, mtus: Arc<[InterfaceMtu]>) {
        self.interface_mtus = mtus;
    }

    /// How often a path was added or removed, or bound to another port.
    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Returns `true` if a local end is not to be used any more.
    pub(crate) fn is_gone(&self, local: LocalEnd) -> bool {
        self.gone.iter().any(|gone| gone.end == local)
    }

    /// Packets do not make a path between these hosts again. The oldest pair makes room for a new one.
    pub(crate) fn bar(&mut self, address: PathAddress) {
        if self.barred.len() == MAX_PATHS {
            self.barred.remove(0);
        }
        self.barred.push(address);
    }

    /// A path between these hosts was asked for.
    pub(crate) fn unbar(&mut self, address: &PathAddress) {
        self.barred.retain(|barred| !barred.same_hosts(address));
    }

    pub(crate) fn is_barred(&self, address: &PathAddress) -> bool {
        self.barred.iter().any(|barred| barred.same_hosts(address))
    }

    /// The peer has deleted an address. The oldest one makes room for a new one.
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

    /// The peer has added an address.
    pub(crate) fn undelete(&mut self, address: IpAddr) {
        self.deleted.retain(|deleted| *deleted != address);
    }

    pub(crate) fn is_deleted(&self, address: IpAddr) -> bool {
        self.deleted.contains(&address)
    }

    /// The peer has restarted, and has whatever addresses it names.
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
    fn as_many_deleted_addresses_are_remembered_as_there_may_be_paths_and_a_repeated_one_displaces_none() {
        let mut addressing = Addressing::new(Encapsulation::None, false, Vec::new(), Arc::default(), None);
        let address = |n: u8| IpAddr::from([192, 0, 2, n]);
        let remembered = |addressing: &Addressing| {
            (0..20).filter(|&n| addressing.is_deleted(address(n))).collect::<Vec<_>>()
        };
        for n in [0, 1, 2, 3, 4, 5, 6, 7, 7, 3] {
            addressing.delete(address(n));
        }
        assert_eq!(remembered(&addressing), [0, 1, 2, 3, 4, 5, 6, 7]);
        addressing.delete(address(8));
        addressing.undelete(address(5));
        assert_eq!(remembered(&addressing), [1, 2, 3, 4, 6, 7, 8]);
    }
}
