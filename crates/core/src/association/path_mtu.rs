//! The packet size of each path: probes of larger ones (RFC 8899 section 6.2: HEARTBEAT with PAD), and what follows from them.

use std::sync::Arc;

use crate::address::PathAddress;
use crate::association::Association;
use crate::association::control::Control;
use crate::config::InterfaceMtu;
use crate::path_id::PathId;
use crate::paths::{MtuSearch, MtuStep, PendingHeartbeat, Sizes};

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
        self.addresses.interface_mtu(address.local_end()).map_or(mtu_bytes, |limit| limit.min(mtu_bytes))
    }

    /// The largest packet that both receive buffers hold enough of. Before the handshake the peer's is not known.
    fn largest_for_buffers(&self) -> usize {
        let peer = Some(self.sender.window().initial()).filter(|window| !window.is_zero());
        let buffer = peer.map_or(self.recv_buffer(), |peer| peer.min(self.recv_buffer()));
        usize::try_from(buffer.get() / PACKETS_IN_A_BUFFER).unwrap_or(usize::MAX) / 4 * 4
    }

    /// The interfaces of our addresses take packets of these sizes from now on.
    pub(crate) fn set_interface_mtus(&mut self, mtus: Arc<[InterfaceMtu]>) {
        self.addresses.set_interface_mtus(mtus);
        self.bound_packet_sizes();
    }

    /// What limits the size of packets has changed: paths shrink at once, and are searched for what they may carry now.
    pub(crate) fn bound_packet_sizes(&mut self) {
        for id in self.paths.ids() {
            if self.paths[id].removed {
                continue;
            }
            let Some(sizes) = self.mtu_sizes(self.paths[id].address) else { return };
            if self.paths.bound_mtu(id, sizes, self.now) {
                self.packet_size_changed();
            }
        }
    }

    /// Adopts what follows from another packet size of a path.
    fn packet_size_changed(&mut self) {
        self.adopt_windows();
    }

    /// Handles the end of the wait for a probe, or the time of the next one.
    pub(crate) fn mtu_timer_expired(&mut self, id: PathId) {
        if self.paths.mtu_timer_expired(id) {
            self.probe_mtu(id);
        }
    }

    fn probe_mtu(&mut self, id: PathId) {
        let nonce = self.reachability.nonce();
        if let MtuStep::Probe(bytes) = self.paths.begin_mtu_probe(id, nonce, self.now) {
            self.control.offer(Control::MtuProbe { path: id, nonce, bytes });
        }
    }

    /// Sends the latest probe again, because its answer will not count.
    pub(crate) fn repeat_mtu_probe(&mut self, id: PathId) {
        if self.paths.forget_mtu_probe(id) {
            self.probe_mtu(id);
        }
    }

    /// Returns `true` if an answered HEARTBEAT was a probe. Its size is adopted then.
    pub(crate) fn take_mtu_answer(&mut self, id: PathId, nonce: u64) -> bool {
        let answered = self.paths.answer_mtu_probe(id, nonce);
        if answered {
            self.packet_size_changed();
            self.probe_mtu(id);
        }
        answered
    }

    /// Counts a T3 expiry, or a HEARTBEAT that was answered while data before it was not: both may mean that large packets are lost.
    pub(crate) fn suspect_black_hole(&mut self, id: PathId) {
        if self.paths.suspect_black_hole(id, self.now) {
            self.outputs.statistics.black_holes += 1;
            self.packet_size_changed();
        }
    }

    /// The IP packet size that a path is known to carry, or was configured with; `None` if there is no such path.
    pub fn path_mtu_bytes(&self, id: PathId) -> Option<usize> {
        let path = self.paths.get_live(id)?;
        Some(path.packet_bytes + self.overhead(path.address.remote))
    }

    /// Whether a packet of this size is larger than its path is known to carry, and no probe of it.
    pub(crate) fn outgrows(&self, id: PathId, bytes: usize) -> bool {
        let path = &self.paths[id];
        let reserved = self.protection.reserved_bytes();
        let is_probe = |(_, probe): (PendingHeartbeat, usize)| probe + reserved == bytes;
        bytes > path.packet_bytes + reserved && !path.pending_mtu_probe.is_some_and(is_probe)
    }

    /// The system would not send a packet of this many bytes to an address: it is larger than the interface takes. A probe of
    /// that size need not be waited for.
    pub(crate) fn refused_packet(&mut self, address: PathAddress, bytes: usize) {
        let Some(id) = self.paths.find(address) else { return };
        let Some(bytes) = bytes.checked_sub(self.protection.reserved_bytes()) else { return };
        if self.paths.refuse_mtu_probe(id, bytes) {
            self.probe_mtu(id);
        }
    }
}
