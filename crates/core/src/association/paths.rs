//! Addition, removal and selection of paths, and changes of their state.

use std::net::IpAddr;

use crate::address::{PathAddress, PeerKey};
use crate::association::{Association, AssociationEvent};
use crate::error::PathError;
use crate::path_id::{PathId, PathState};
use crate::paths::NewPath;
use crate::policy::{Event, LossCause, OpportunityCause, Reason, StateCause};

/// Length of the common header in bytes.
const COMMON_HEADER: usize = 12;

impl Association {
    pub(crate) fn new_path(&mut self, address: PathAddress) -> Result<PathId, PathError> {
        if self.paths.find(address).is_some() {
            return Err(PathError::Exists);
        }
        let packet_bytes = self.packet_bytes(self.first_mtu_bytes(address), address.remote);
        let mtu = self.new_mtu_search(address);
        let is_named = |id| self.sender.transmissions(id) > 0;
        let id = self.paths.free_id(is_named).ok_or(PathError::TooMany)?;
        let is_new = id.index() == self.paths.len();
        self.paths.add(id, NewPath { address, packet_bytes, mtu });
        if is_new {
            self.recovery.add_path();
        }
        if let Some(opening) = self.state.opening_mut() {
            opening.add_path(id);
        }
        let now = self.now;
        self.update_sender(|sender| sender.begin_path(id, now));
        self.addresses.note_change();
        self.addresses.unblock_source(&address);
        self.begin_facts(id);
        Ok(id)
    }

    /// Announces a new path to the policies, and adopts its first figures.
    pub(crate) fn begin_facts(&mut self, id: PathId) {
        self.policies.note_news();
        self.dispatch_event(&Event::PathAdded(id));
    }

    /// Returns the SCTP bytes that fit an IP packet of this size.
    pub(crate) fn packet_bytes(&self, mtu_bytes: usize, remote: IpAddr) -> usize {
        // RFC 9260 section 3.2: the 16-bit length limits a chunk.
        let one_chunk = usize::from(u16::MAX) - 3 - self.protection.reserved_bytes();
        let most = COMMON_HEADER + self.protection.largest_record().map_or(one_chunk, |l| l.min(one_chunk));
        // RFC 791 section 3.1: the 16-bit total length limits an IPv4 packet.
        let mtu_bytes = if remote.is_ipv4() { mtu_bytes.min(usize::from(u16::MAX)) } else { mtu_bytes };
        mtu_bytes.saturating_sub(self.overhead(remote)).clamp(512, most)
    }

    /// Returns the bytes of the headers around an SCTP packet and of its protection.
    pub(crate) fn overhead(&self, remote: IpAddr) -> usize {
        let ip_header = if remote.is_ipv4() { 20 } else { 40 };
        ip_header + self.addresses.encapsulation().header_bytes() + self.protection.reserved_bytes()
    }

    pub(crate) fn retire_path(&mut self, id: PathId) -> Result<(), PathError> {
        self.paths.get_live(id).ok_or(PathError::Unknown)?;
        if self.paths.live().count() == 1 {
            return Err(PathError::Last);
        }
        self.set_state(
            id,
            PathState::Inactive,
            StateCause::Errors(Reason::rule("removed by the application")),
        );
        self.mark_path_lost(id, LossCause::Timeout, true);
        self.paths.retire(id);
        self.addresses.note_change();
        self.control.retain(|c| c.path() != id);
        self.withdraw_announcement(id);
        self.dispatch_event(&Event::PathRemoved(id));
        self.outputs.report(AssociationEvent::PathRemoved { path: id });
        self.check_start();
        self.open_opportunity(OpportunityCause::PathRestored(id), true);
        Ok(())
    }

    /// Returns `true` if a live path leads to this address.
    pub(crate) fn has_remote(&self, remote: IpAddr) -> bool {
        self.paths.iter().any(|p| !p.removed && p.address.remote == remote)
    }

    /// Returns the number of changes of the paths' addresses and ports.
    pub(crate) fn address_changes(&self) -> u32 {
        self.addresses.changes()
    }

    /// Returns the addresses of the peer with its port, in the order of the paths.
    pub(crate) fn peer_keys(&self) -> impl Iterator<Item = PeerKey> + '_ {
        let live = self.paths.iter().filter(|p| !p.removed);
        live.map(|p| PeerKey::new(&p.address, self.identity.peer_port))
    }

    /// Returns the addresses of a path's packets.
    pub(crate) fn destination(&self, id: PathId) -> PathAddress {
        self.paths[id].address
    }

    /// Returns a path for control chunks: `preferred` if it may carry them, else the primary, else any confirmed, else any.
    pub(crate) fn control_path(&self, preferred: Option<PathId>) -> PathId {
        let usable = |id: &PathId| {
            let path = &self.paths[*id];
            !path.removed
                && self.paths.facts(*id).state == PathState::Active
                && !self.addresses.is_retired_end(path.address.local_end())
        };
        let primary = || self.paths.live().find(|id| self.paths.facts(*id).primary);
        preferred
            .filter(usable)
            .or_else(|| primary().filter(usable))
            .or_else(|| self.paths.live().find(usable))
            .or_else(|| self.path_beside_gone())
            .or_else(|| self.paths.live().find(|id| self.paths.facts(*id).state != PathState::Unconfirmed))
            .or_else(primary)
            .unwrap_or_else(|| PathId::new(0))
    }

    /// Returns the path for attempt `n` of an unanswered control chunk: `first`, then in turn all others that may answer.
    pub(crate) fn path_for_attempt(&self, first: PathId, n: u32) -> PathId {
        let may_answer =
            |id: &PathId| matches!(self.paths.facts(*id).state, PathState::Active | PathState::Unconfirmed);
        let others = || self.paths.live().filter(|id| *id != first).filter(may_answer);
        let turn = n as usize % (others().count() + 1);
        let from_first = others().filter(|id| *id > first).chain(others().filter(|id| *id < first));
        std::iter::once(first).chain(from_first).nth(turn).unwrap_or(first)
    }

    /// Sets the state of a path. See [`Dispatcher::set_state`].
    ///
    /// [`Dispatcher::set_state`]: crate::association::dispatch::Dispatcher::set_state
    pub(crate) fn set_state(&mut self, id: PathId, to: PathState, cause: StateCause) {
        self.dispatcher().set_state(id, to, cause);
        self.follow_events();
    }
}
