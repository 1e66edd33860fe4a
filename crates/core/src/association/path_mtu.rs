//! Packet size of each path: probes of larger sizes (RFC 8899 section 6.2: HEARTBEAT with PAD), and their consequences.

use std::sync::Arc;

use crate::address::PathAddress;
use crate::association::Association;
use crate::association::control::Control;
use crate::config::InterfaceMtu;
use crate::path_id::PathId;
use crate::paths::{MtuSearch, MtuStep, PendingHeartbeat, Sizes};

/// IP packet size of Ethernet, which most paths carry.
const USUAL_MTU: usize = 1500;

/// IP packet size that every host accepts (RFC 791 section 3.1), for paths that do not carry their initial size.
const LEAST_MTU: usize = 576;

/// Minimum number of packets of the largest size in a receive buffer. With fewer, the peer's window would open in steps too large
/// to keep a path busy, and a chunk larger than the buffer may be refused (RFC 9260 section 6.2). The usual size is searched for
/// with any buffer.
const PACKETS_IN_A_BUFFER: u64 = 16;

impl Association {
    /// Returns the configured search for a new path.
    //= docs/rfc9260.txt#section-7.3
    //# An endpoint SHOULD apply these techniques and SHOULD do so on a per- destination-address basis.
    pub(crate) fn new_mtu_search(&self, address: PathAddress) -> Option<MtuSearch> {
        self.mtu_sizes(address).map(MtuSearch::new)
    }

    /// Returns the sizes for the search of a path: limited by the configuration, its interface, and the buffers.
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

    /// Returns the initial IP packet size of a path.
    pub(crate) fn first_mtu_bytes(&self, address: PathAddress) -> usize {
        self.interface_limited(self.config.mtu_bytes, address)
    }

    /// Limits a size to the MTU of the interface of a path's local address, if it is known.
    fn interface_limited(&self, mtu_bytes: usize, address: PathAddress) -> usize {
        self.addresses.interface_mtu(address.local_end()).map_or(mtu_bytes, |limit| limit.min(mtu_bytes))
    }

    /// Returns the largest packet size with enough packets in both receive buffers. The peer's is not known before the handshake.
    fn largest_for_buffers(&self) -> usize {
        let peer = Some(self.sender.window().initial()).filter(|window| !window.is_zero());
        let buffer = peer.map_or(self.recv_buffer(), |peer| peer.min(self.recv_buffer()));
        usize::try_from(buffer.get() / PACKETS_IN_A_BUFFER).unwrap_or(usize::MAX) / 4 * 4
    }

    /// Adopts the MTUs of the interfaces of local addresses.
    pub(crate) fn set_interface_mtus(&mut self, mtus: Arc<[InterfaceMtu]>) {
        self.addresses.set_interface_mtus(mtus);
        self.bound_packet_sizes();
    }

    /// Adopts changed limits of packet sizes: paths shrink at once, and larger sizes are searched for.
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

    /// Adopts the consequences of another packet size of a path.
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

    /// Returns `true` if an answered HEARTBEAT was a probe, and adopts its size.
    pub(crate) fn take_mtu_answer(&mut self, id: PathId, nonce: u64) -> bool {
        let answered = self.paths.answer_mtu_probe(id, nonce);
        if answered {
            self.packet_size_changed();
            self.probe_mtu(id);
        }
        answered
    }

    /// Counts a T3 expiry, or a HEARTBEAT that was answered while data before it was not: large packets may be lost.
    pub(crate) fn suspect_black_hole(&mut self, id: PathId) {
        if self.paths.suspect_black_hole(id, self.now) {
            self.outputs.statistics.black_holes += 1;
            self.packet_size_changed();
        }
    }

    /// Returns the IP packet size of a path in bytes, confirmed or configured; `None` if there is no such path.
    pub fn path_mtu_bytes(&self, id: PathId) -> Option<usize> {
        let path = self.paths.get_live(id)?;
        Some(path.packet_bytes + self.overhead(path.address.remote))
    }

    /// Returns `true` if a packet of this size is larger than the confirmed size of its path, and is no probe.
    pub(crate) fn outgrows(&self, id: PathId, bytes: usize) -> bool {
        let path = &self.paths[id];
        let reserved = self.protection.reserved_bytes();
        let is_probe = |(_, probe): (PendingHeartbeat, usize)| probe + reserved == bytes;
        bytes > path.packet_bytes + reserved && !path.pending_mtu_probe.is_some_and(is_probe)
    }

    /// Handles the operating system's refusal to send this many bytes to an address, because the interface has a smaller MTU. The
    /// wait for a probe of that size ends.
    pub(crate) fn refused_packet(&mut self, address: PathAddress, bytes: usize) {
        let Some(id) = self.paths.find(address) else { return };
        let Some(bytes) = bytes.checked_sub(self.protection.reserved_bytes()) else { return };
        if self.paths.refuse_mtu_probe(id, bytes) {
            self.probe_mtu(id);
        }
    }
}
