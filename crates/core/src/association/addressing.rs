//! The addresses of both sides, and what the two have agreed on for changes of them (RFC 5061).

use std::net::IpAddr;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::address::PathAddress;
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
    pub(super) local: Vec<IpAddr>,
    interface_mtus: Arc<[InterfaceMtu]>,
    /// Local addresses that are not to be used any more.
    pub(super) gone: Vec<Gone>,
    /// Verified and listed addresses of the peer.
    pub(super) peer: ArrayVec<IpAddr, MAX_PATHS>,
    /// Addresses that the peer has deleted: what comes from there is out of the blue.
    deleted: ArrayVec<IpAddr, MAX_PATHS>,
    /// Packets between these hosts, on any UDP port, do not make paths again.
    barred: Vec<PathAddress>,
    /// How often a path was added or removed, or bound to another port.
    changes: u32,
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
        local: Vec<IpAddr>,
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
            deleted: ArrayVec::new(),
            barred: Vec::new(),
            changes: 0,
            local_random,
            keys: None,
            asconf: None,
        }
    }

    /// The largest IP packet that the interface of a local address takes, if that is known.
    pub(crate) fn interface_mtu(&self, local: IpAddr) -> Option<usize> {
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

    /// Whether a local address is not to be used any more.
    pub(crate) fn is_gone(&self, local: IpAddr) -> bool {
        self.gone.iter().any(|gone| gone.address == local)
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
        if self.deleted.is_full() {
            self.deleted.remove(0);
        }
        if !self.deleted.contains(&address) {
            self.deleted.push(address);
        }
        self.peer.retain(|known| *known != address);
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
    }
}
