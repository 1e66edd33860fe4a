//! The packet size of each path: probes of larger ones (RFC 8899 section 6.2: HEARTBEAT with PAD), and what follows from them.

use std::sync::Arc;

use anabranch_wire::COMMON_HEADER_LEN;

use crate::address::PathAddress;
use crate::association::Association;
use crate::association::control::Control;
use crate::config::InterfaceMtu;
use crate::mtu::{LEAST_WAIT, MtuSearch, Next, RAISE_AFTER, Sizes};
use crate::path::PendingHeartbeat;
use crate::path_id::{PathId, PathState};
use crate::policy::StateCause;
use crate::time::Span;
use crate::units::ChunkBytes;

/// The IP packet size of Ethernet, which most paths carry.
const USUAL_MTU: usize = 1500;

/// IP packet size that every host accepts (RFC 791 section 3.1), for paths that do not carry the size that they begin with.
const LEAST_MTU: usize = 576;

/// Packets of the size that is searched for at most fill a receive buffer in no less than this many: with few of them the peer's
/// window opens in steps too large to keep a path busy, and a chunk that is larger than the buffer may not be taken at all
/// (RFC 9260 section 6.2). The usual size is searched for whatever the buffers hold.
const PACKETS_IN_A_BUFFER: u64 = 16;

impl Association {
    /// The search that the configuration asks for on a new path.
    //= docs/rfc9260.txt#section-7.3
    //# An endpoint SHOULD apply these techniques and SHOULD do so on a per- destination-address basis.
    pub(crate) fn new_mtu_search(&self, address: PathAddress) -> Option<MtuSearch> {
        self.mtu_sizes(address).map(MtuSearch::new)
    }

    /// What a path may be searched for: up to what is configured, what its interface takes, and what the buffers bear.
    fn mtu_sizes(&self, address: PathAddress) -> Option<Sizes> {
        let configured = self.config.mtu_search_up_to_bytes?;
        let sctp_bytes = |mtu_bytes| self.packet_bytes(mtu_bytes, address.remote) / 4 * 4;
        let usual = sctp_bytes(USUAL_MTU);
        let most = sctp_bytes(self.interface_limited(configured, address));
        let base = sctp_bytes(self.first_mtu_bytes(address));
        let most = most.min(self.largest_for_buffers().max(usual)).max(base);
        let least = sctp_bytes(LEAST_MTU).min(base);
        Some(Sizes { least, base, usual, most })
    }

    /// The IP packet size that a path begins with.
    pub(crate) fn first_mtu_bytes(&self, address: PathAddress) -> usize {
        self.interface_limited(self.config.mtu_bytes, address)
    }

    /// No more than the interface of a path's local address takes, if that is known.
    fn interface_limited(&self, mtu_bytes: usize, address: PathAddress) -> usize {
        self.addressing.interface_mtu(address.local_end()).map_or(mtu_bytes, |limit| limit.min(mtu_bytes))
    }

    /// The largest packet that both receive buffers hold enough of. Before the handshake the peer's is not known.
    fn largest_for_buffers(&self) -> usize {
        let peer = Some(self.sender.window().initial()).filter(|window| !window.is_zero());
        let buffer = peer.map_or(self.recv_buffer(), |peer| peer.min(self.recv_buffer()));
        usize::try_from(buffer.get() / PACKETS_IN_A_BUFFER).unwrap_or(usize::MAX) / 4 * 4
    }

    /// The interfaces of our addresses take packets of these sizes from now on.
    pub(crate) fn set_interface_mtus(&mut self, mtus: Arc<[InterfaceMtu]>) {
        self.addressing.set_interface_mtus(mtus);
        self.bound_packet_sizes();
    }

    /// What limits the size of packets has changed: paths shrink at once, and are searched for what they may carry now.
    pub(crate) fn bound_packet_sizes(&mut self) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.removed {
                continue;
            }
            let Some(sizes) = self.mtu_sizes(path.address) else { return };
            let path = &mut self.paths[index];
            let Some(search) = &mut path.mtu else { continue };
            let (before, wanted) = (search.confirmed(), search.next());
            search.bound(sizes);
            let (confirmed, next) = (search.confirmed(), search.next());
            if next != wanted {
                path.pending_mtu_probe = None;
                // Without a timer the path is not in service yet.
                path.timers.mtu = path.timers.mtu.map(|at| if next == Next::Rest { at } else { self.now });
            }
            if confirmed != before {
                self.adopt_packet_size(PathId::new(index));
            }
        }
    }

    /// A path came into service: it is probed from now on. One that was promoted for want of a better one has answered nothing,
    /// and has a time-out to do so first.
    pub(crate) fn begin_mtu_probing(&mut self, id: PathId, cause: StateCause) {
        let promoted = matches!(cause, StateCause::Promoted(_));
        let wait = if promoted { self.policy.path(id).rto.max(LEAST_WAIT) } else { Span::ZERO };
        let path = &mut self.paths[id.index()];
        if path.mtu.is_some() && path.timers.mtu.is_none() {
            path.timers.mtu = Some(self.now + wait);
        }
    }

    /// The wait for a probe is over, or the time for the next one has come.
    pub(crate) fn mtu_timer_expired(&mut self, id: PathId) {
        let active = self.policy.path(id).state == PathState::Active;
        let path = &mut self.paths[id.index()];
        let Some(search) = &mut path.mtu else { return };
        match path.pending_mtu_probe.take() {
            // What a path in trouble loses says nothing about sizes.
            Some(_) if active => search.unanswered(),
            None if search.next() == Next::Rest => search.begin(),
            _ => {}
        }
        if active {
            self.probe_mtu(id);
        }
    }

    fn probe_mtu(&mut self, id: PathId) {
        let nonce = self.entropy.next_u64();
        let wait = self.policy.path(id).rto.max(LEAST_WAIT);
        let path = &mut self.paths[id.index()];
        let Some(search) = path.mtu else { return };
        match search.next() {
            Next::Rest => path.timers.mtu = Some(self.now + RAISE_AFTER),
            Next::Probe(bytes) => {
                path.timers.mtu = Some(self.now + wait);
                path.pending_mtu_probe = Some((PendingHeartbeat { nonce, sent_at: self.now }, bytes));
                self.control.offer(Control::MtuProbe { path: id, nonce, bytes });
            }
        }
    }

    /// The latest probe's answer will not count: it leaves once more.
    pub(crate) fn repeat_mtu_probe(&mut self, id: PathId) {
        if self.paths[id.index()].pending_mtu_probe.take().is_some() {
            self.probe_mtu(id);
        }
    }

    /// Whether an answered HEARTBEAT was such a probe; then its size may be used.
    pub(crate) fn take_mtu_answer(&mut self, id: PathId, nonce: u64) -> bool {
        let path = &mut self.paths[id.index()];
        let Some((_, bytes)) = path.pending_mtu_probe.take_if(|(pending, _)| pending.nonce == nonce) else {
            return false;
        };
        if let Some(search) = &mut path.mtu {
            search.answered(bytes);
        }
        self.adopt_packet_size(id);
        self.probe_mtu(id);
        true
    }

    /// Takes over what the search has found.
    fn adopt_packet_size(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        let Some(search) = path.mtu else { return };
        path.packet_bytes = search.confirmed();
        let largest = ((path.packet_bytes - COMMON_HEADER_LEN) / 4 * 4) as u64;
        self.policy.path_mut(id).largest_chunk = ChunkBytes::new(largest);
        self.find_payload_bytes_per_chunk();
        self.adopt_windows();
    }

    /// T3 expired on a path, or a HEARTBEAT was answered and the data before it was not. If the path
    /// carries nothing large any more, its packets shrink to the base size, and below that to the least size (RFC 8899 section 4.3).
    pub(crate) fn suspect_black_hole(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        if path.mtu.as_mut().is_some_and(MtuSearch::expired) {
            path.pending_mtu_probe = None;
            // The largest size was right before, so it may be an outage after all: it is tried again soon, not at once.
            path.timers.mtu = Some(self.now + LEAST_WAIT);
            self.statistics.black_holes += 1;
            self.adopt_packet_size(id);
        }
    }

    /// A chunk arrived in a packet of at least its size.
    pub(crate) fn note_delivered_size(&mut self, id: PathId, bytes: ChunkBytes) {
        if let Some(search) = &mut self.paths[id.index()].mtu {
            search.delivered(COMMON_HEADER_LEN + bytes.get() as usize);
        }
    }

    /// The IP packet size that a path is known to carry, or was configured with; `None` if there is no such path.
    pub fn path_mtu_bytes(&self, id: PathId) -> Option<usize> {
        let path = self.paths.get(id.index()).filter(|path| !path.removed)?;
        Some(path.packet_bytes + self.overhead(path.address.remote))
    }

    /// Whether a packet of this size is larger than its path is known to carry, and no probe of it.
    pub(crate) fn outgrows(&self, id: PathId, bytes: usize) -> bool {
        let path = &self.paths[id.index()];
        let reserved = self.protection.reserved_bytes();
        let is_probe = |(_, probe): (PendingHeartbeat, usize)| probe + reserved == bytes;
        bytes > path.packet_bytes + reserved && !path.pending_mtu_probe.is_some_and(is_probe)
    }

    /// The system would not send a packet of this many bytes to an address: it is larger than the interface takes. A probe of
    /// that size need not be waited for.
    pub(crate) fn refused_packet(&mut self, address: PathAddress, bytes: usize) {
        let Some(id) = self.path_of(address) else { return };
        let Some(bytes) = bytes.checked_sub(self.protection.reserved_bytes()) else { return };
        let path = &mut self.paths[id.index()];
        if path.pending_mtu_probe.is_none_or(|(_, pending)| pending != bytes) {
            return;
        }
        path.pending_mtu_probe = None;
        if let Some(search) = &mut path.mtu {
            search.refused(bytes);
        }
        self.probe_mtu(id);
    }
}
