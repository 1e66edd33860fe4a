//! What a world drives.

use std::any::Any;

use anabranch_core::PacketBuffer;
use anabranch_core::time::Time;

use crate::datagram::{Datagram, Envelope};

/// A protocol endpoint, or anything else that sends and receives.
///
/// The world calls [`handle_datagram`](Host::handle_datagram) when a packet arrives and
/// [`handle_timeout`](Host::handle_timeout) when the deadline named by [`poll_timeout`](Host::poll_timeout)
/// has come. After each it sends what [`poll_transmit`](Host::poll_transmit) yields and then asks for the
/// deadline again. A new host is asked both at the moment it was added.
///
/// An application on the host lives behind the same deadlines: a host that wants to be called at a moment, to
/// write data for instance, names that moment as its deadline.
pub trait Host: Any {
    /// A packet has arrived.
    fn handle_datagram(&mut self, now: Time, datagram: Datagram<'_>);

    /// The deadline has come. Afterwards the next one must be later than `now`, if not at once then after a
    /// bounded number of such calls: a host that names a deadline which has come more than a thousand times
    /// in a row is taken for broken.
    fn handle_timeout(&mut self, now: Time);

    /// Writes the payload of the next packet to send into `buf`, which is empty, and names its way; none if
    /// there is nothing to send now.
    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope>;

    /// The next deadline.
    fn poll_timeout(&mut self) -> Option<Time>;
}
