//! Interface of the hosts that a world drives.

use std::any::Any;

use anabranch_core::time::Time;
use anabranch_core::{DataPacket, PacketBuffer};

use crate::datagram::{Datagram, Envelope};

/// A protocol endpoint or another component that sends and receives packets.
///
/// The world calls [`handle_datagram`](Host::handle_datagram) when a packet arrives and [`handle_timeout`](Host::handle_timeout) at
/// the deadline that [`poll_timeout`](Host::poll_timeout) returned. After each call it sends the packets that
/// [`poll_transmit`](Host::poll_transmit) returns, then reads the deadline again. A new host is polled at the time at which it was
/// added.
///
/// An application on the host uses the same deadlines: to be called at a certain time, for example to write data, the host returns
/// that time as its deadline.
pub trait Host: Any {
    /// Handles a packet that has arrived.
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>);

    /// Handles a packet that has arrived without bytes, because the host that sent it gave its
    /// [description](PacketBuffer::described). By default, the host gets its bytes.
    fn handle_data_packet(&mut self, now: Time, envelope: Envelope, packet: &DataPacket) {
        let mut bytes = PacketBuffer::from(*packet);
        bytes.encode();
        self.handle_datagram(now, envelope.around(&bytes));
    }

    /// Handles the deadline. After a bounded number of such calls, the next deadline must be later than `now`. The world panics if
    /// a host returns a past deadline more than a thousand times in a row.
    fn handle_timeout(&mut self, now: Time);

    /// Writes the payload of the next packet into `buf`, which is empty, and returns the packet's envelope. Returns `None` if there
    /// is nothing to send now.
    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope>;

    /// Returns the next deadline.
    fn poll_timeout(&mut self) -> Option<Time>;

    /// Returns an independent copy of the host in its present state. `None`, the default, prevents [copies](crate::World::copied) of
    /// the world.
    fn copied(&self) -> Option<Box<dyn Host>> {
        None
    }
}
