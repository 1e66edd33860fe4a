//! From the endpoint to the sockets.

use anabranch_core::time::Time;
use anabranch_core::{PacketBuffer, PathAddress, Transmit};

use crate::config::DEFAULT_UDP_PORT;
use crate::observer_slot::ObserverSlot;
use crate::socket::Socket;

/// Bytes that gather at a socket before they are sent although the endpoint has more.
const FLUSH_AT: usize = 256 << 10;

/// Gathers packets at the sockets that they leave from.
pub(crate) struct Outlet<'d> {
    pub(crate) now: Time,
    pub(crate) sockets: &'d mut [Socket],
    /// Where the next packet is written.
    pub(crate) packet: &'d mut PacketBuffer,
    pub(crate) watch: &'d mut ObserverSlot,
}

impl Outlet<'_> {
    /// Takes packets until there are no more, or there are `most` bytes; how many bytes there were.
    pub(crate) fn gather(
        &mut self,
        most: usize,
        mut next: impl FnMut(&mut PacketBuffer) -> Option<Transmit>,
    ) -> usize {
        let mut bytes = 0;
        while bytes < most
            && let Some(transmit) = next(self.packet)
        {
            bytes += self.packet.len();
            self.write(transmit);
        }
        bytes
    }

    fn write(&mut self, transmit: Transmit) {
        let Transmit { address: PathAddress { local, remote, udp_port }, association, may_fragment } =
            transmit;
        let Outlet { now, sockets, packet, watch } = self;
        if let Some(id) = association {
            watch.touch(id);
        }
        let Some(socket) = sockets.iter_mut().find(|socket| socket.local().ip() == local) else { return };
        let port = udp_port.unwrap_or(DEFAULT_UDP_PORT);
        socket.push(*now, remote, port, packet, may_fragment, watch);
        if socket.queued_bytes() >= FLUSH_AT && !socket.is_blocked() {
            socket.flush(*now, watch);
        }
    }

    /// Sends what has gathered.
    pub(crate) fn flush(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.flush(self.now, self.watch));
    }
}
