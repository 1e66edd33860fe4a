//! Packets that wait in the order of their arrival.

use std::collections::VecDeque;

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;

use crate::packet::PacketId;

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) packet: PacketId,
    pub(crate) size: WireBytes,
    /// Time of its arrival.
    pub(crate) since: Time,
}

/// A queue of packets, and the sum of their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Queued>,
    bytes: WireBytes,
}

impl Fifo {
    pub(crate) fn with_capacity(packets: usize) -> Self {
        Fifo { packets: VecDeque::with_capacity(packets), bytes: WireBytes::ZERO }
    }

    #[inline]
    pub(crate) fn push(&mut self, queued: Queued) {
        self.packets.push_back(queued);
        self.bytes += queued.size;
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.size;
        Some(queued)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    #[inline]
    pub(crate) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    #[inline]
    pub(crate) fn bytes(&self) -> WireBytes {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::packet::{Packet, Pool};
    use crate::route::{RouteId, SourceId};

    /// Returns packets of 1500 bytes that arrived at time zero.
    pub(in crate::queue) fn packets(count: usize) -> impl Iterator<Item = Queued> {
        let size = WireBytes::new(1500);
        let mut pool = Pool::default();
        (0..count).map(move |_| {
            let packet = pool.insert(Packet::new(size, SourceId(0), RouteId(0)));
            Queued { packet, size, since: Time::ZERO }
        })
    }

    #[test]
    fn bytes_are_those_of_the_packets_that_wait() {
        let mut fifo = Fifo::default();
        packets(3).for_each(|queued| fifo.push(queued));
        assert_eq!((fifo.packets(), fifo.bytes()), (3, WireBytes::new(4500)));
        assert!(fifo.pop().is_some());
        assert_eq!((fifo.packets(), fifo.bytes()), (2, WireBytes::new(3000)));
        assert!(fifo.pop().is_some() && fifo.pop().is_some() && fifo.pop().is_none());
        assert!(fifo.is_empty() && fifo.bytes().is_zero());
    }
}
