//! From the endpoint to the sockets.

use anabranch_core::time::Time;
use anabranch_core::{PacketBuffer, PathAddress, Transmit};

use crate::config::DEFAULT_UDP_PORT;
use crate::observer_slot::ObserverSlot;
use crate::socket::{self, Socket};

/// Bytes that gather at a socket before they are sent although the endpoint has more.
const FLUSH_AT: usize = 256 << 10;

/// Gathers packets at the sockets that they leave from.
pub(crate) struct Outlet<'d> {
    pub(crate) now: Time,
    sockets: &'d mut [Socket],
    /// Where the next packet is written.
    packet: PacketBuffer,
    watch: &'d mut ObserverSlot,
}

impl<'d> Outlet<'d> {
    pub(crate) fn new(now: Time, sockets: &'d mut [Socket], watch: &'d mut ObserverSlot) -> Self {
        Outlet { now, sockets, packet: socket::spare(), watch }
    }

    /// Takes packets until there are no more, or there are `most` bytes; how many bytes there were.
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

    /// Sends what has gathered.
    pub(crate) fn flush(self) {
        self.sockets.iter_mut().for_each(|socket| socket.flush(self.now, self.watch));
    }
}

impl Drop for Outlet<'_> {
    fn drop(&mut self) {
        socket::give_back(std::mem::take(&mut self.packet));
    }
}
