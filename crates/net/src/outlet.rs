//! Transmission from the endpoint to the sockets.

use anabranch_core::time::Time;
use anabranch_core::{PacketBuffer, PathAddress, Transmit};

use crate::config::DEFAULT_UDP_PORT;
use crate::observer_slot::ObserverSlot;
use crate::socket::{self, Socket};

/// Number of bytes gathered at a socket before they are sent, even if the endpoint has more.
const FLUSH_AT: usize = 256 << 10;

/// Gathers packets at their sockets.
pub(crate) struct Outlet<'d> {
    pub(crate) now: Time,
    sockets: &'d mut [Socket],
    /// Buffer of the next packet.
    packet: PacketBuffer,
    watch: &'d mut ObserverSlot,
}

impl<'d> Outlet<'d> {
    pub(crate) fn new(now: Time, sockets: &'d mut [Socket], watch: &'d mut ObserverSlot) -> Self {
        Outlet { now, sockets, packet: socket::spare(), watch }
    }

    /// Gathers packets until there are no more, or `most` bytes are reached. Returns the number of bytes.
    pub(crate) fn gather(
        &mut self,
        most: usize,
        mut next: impl FnMut(&mut PacketBuffer) -> Option<Transmit>,
    ) -> usize {
        let mut bytes = 0;
        while bytes < most
            && let Some(transmit) = next(&mut self.packet)
        {
            bytes += self.packet.len();
            self.write(transmit);
        }
        bytes
    }

    fn write(&mut self, transmit: Transmit) {
        let Transmit { address, association, may_fragment } = transmit;
        let PathAddress { remote, udp_port, .. } = address;
        if let Some(id) = association {
            self.watch.touch(id);
        }
        let mut sockets = self.sockets.iter_mut();
        let Some(socket) = sockets.find(|socket| socket.end() == address.local_end()) else { return };
        let port = udp_port.unwrap_or(DEFAULT_UDP_PORT);
        socket.push(self.now, remote, port, &mut self.packet, may_fragment, self.watch);
        if socket.queued_bytes() >= FLUSH_AT && !socket.is_blocked() {
            socket.flush(self.now, self.watch);
        }
    }

    /// Sends the gathered packets.
    pub(crate) fn flush(self) {
        self.sockets.iter_mut().for_each(|socket| socket.flush(self.now, self.watch));
    }
}

impl Drop for Outlet<'_> {
    fn drop(&mut self) {
        socket::give_back(std::mem::take(&mut self.packet));
    }
}
