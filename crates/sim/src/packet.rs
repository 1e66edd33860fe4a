//! What hosts exchange, and the pool that holds it on its way.

use std::net::IpAddr;

use anabranch_core::PacketBuffer;
use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;

use crate::route::{RouteId, SourceId};

/// The address of a host's interface.
pub type Address = IpAddr;

/// How an SCTP packet rides on IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Encapsulation {
    /// Directly, as IP protocol 132.
    #[default]
    None,
    /// In a UDP datagram (RFC 6951).
    Udp {
        /// The sender's UDP port.
        source_port: u16,
        /// The receiver's UDP port.
        destination_port: u16,
    },
}

/// Everything about a packet but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The interface it leaves from.
    pub source: Address,
    /// The interface it goes to.
    pub destination: Address,
    /// What is between IP and the payload.
    pub encapsulation: Encapsulation,
}

impl Envelope {
    /// An envelope of a packet that rides directly on IP.
    pub const fn plain(source: Address, destination: Address) -> Self {
        Envelope { source, destination, encapsulation: Encapsulation::None }
    }

    /// The bytes that a packet with `payload` bytes in this envelope occupies on a link: 20 for IPv4 or 40
    /// for IPv6, 8 for UDP where it is used, and the payload.
    pub const fn wire_bytes(&self, payload: usize) -> WireBytes {
        let ip = if self.source.is_ipv4() { 20 } else { 40 };
        let udp = match self.encapsulation {
            Encapsulation::None => 0,
            Encapsulation::Udp { .. } => 8,
        };
        WireBytes::new(ip + udp + payload as u64)
    }
}

/// A packet as a host receives it and as a [`Tap`](crate::tap::Tap) sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The interface it came from.
    pub source: Address,
    /// The interface it came to.
    pub destination: Address,
    /// What was between IP and the payload.
    pub encapsulation: Encapsulation,
    /// The bytes of the SCTP packet.
    pub payload: &'a [u8],
}

impl Datagram<'_> {
    /// Everything but the payload.
    pub const fn envelope(&self) -> Envelope {
        Envelope { source: self.source, destination: self.destination, encapsulation: self.encapsulation }
    }
}

/// A packet in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

/// What the draws for a packet at the link that holds it have decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    pub(crate) delayed: bool,
    /// What is added to the propagation delay.
    pub(crate) jitter: Span,
    /// Which bit flips, as a fraction of 2^32 of the payload's length.
    pub(crate) corrupted: Option<u32>,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) wire: WireBytes,
    pub(crate) source: SourceId,
    pub(crate) route: RouteId,
    /// How many links of the route it has passed.
    pub(crate) hop: u32,
    pub(crate) fate: Fate,
    /// Whether it has content. Cross traffic has none.
    has_content: bool,
}

impl Packet {
    /// A packet at the beginning of its route.
    pub(crate) const fn new(wire: WireBytes, source: SourceId, route: RouteId) -> Self {
        let fate =
            Fate { lost: false, duplicated: false, delayed: false, jitter: Span::ZERO, corrupted: None };
        Packet { wire, source, route, hop: 0, fate, has_content: false }
    }
}

/// What a packet carries. It is kept apart from the packets, so that those of cross traffic are small.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) envelope: Option<Envelope>,
    pub(crate) payload: PacketBuffer,
}

impl Content {
    pub(crate) fn datagram(&self) -> Option<Datagram<'_>> {
        let Envelope { source, destination, encapsulation } = self.envelope?;
        Some(Datagram { source, destination, encapsulation, payload: &self.payload })
    }
}

/// The fewest and the most buffers made when there are none left.
const MORE_BUFFERS: usize = 16;
const BUFFERS_AT_ONCE: usize = 1024;

/// Packets and byte buffers, both used again once they are free.
#[derive(Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    /// What the packet of the same place carries, if it carries anything.
    contents: Vec<Content>,
    free: Vec<PacketId>,
    buffers: Vec<PacketBuffer>,
    /// Room that new buffers have: as much as any so far, so that they need not grow, and no more, since a large window is on its way
    /// in as many of them as it has packets.
    buffer_bytes: usize,
}

impl Pool {
    /// An empty buffer to write a payload into.
    pub(crate) fn take_buffer(&mut self) -> PacketBuffer {
        if self.buffers.is_empty() {
            // As many again as are on their way: otherwise every new record, late in a run as well, would allocate.
            let more = self.len().clamp(MORE_BUFFERS, BUFFERS_AT_ONCE);
            self.buffers.extend((0..more).map(|_| PacketBuffer::with_capacity(self.buffer_bytes)));
        }
        self.buffers.pop().unwrap_or_default()
    }

    pub(crate) fn return_buffer(&mut self, mut buffer: PacketBuffer) {
        if buffer.capacity() > 0 {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Takes in a packet that carries nothing.
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
        match self.free.pop() {
            Some(id) => {
                self.packets[id.0 as usize] = packet;
                id
            }
            None => {
                self.packets.push(packet);
                self.contents.push(Content::default());
                PacketId(self.packets.len() as u32 - 1)
            }
        }
    }

    /// Takes in a packet that carries something.
    pub(crate) fn insert_with(&mut self, packet: Packet, content: Content) -> PacketId {
        self.buffer_bytes = self.buffer_bytes.max(content.payload.capacity());
        let id = self.insert(Packet { has_content: true, ..packet });
        self.contents[id.0 as usize] = content;
        id
    }

    /// A second packet with the same bytes, for which nothing has been decided.
    pub(crate) fn duplicate(&mut self, id: PacketId) -> PacketId {
        let packet = Packet { fate: Fate::default(), ..*self.get(id) };
        if !packet.has_content {
            return self.insert(packet);
        }
        let mut payload = self.take_buffer();
        let Content { envelope, payload: original } = self.content(id);
        payload.extend_from_slice(original);
        let envelope = *envelope;
        self.insert_with(packet, Content { envelope, payload })
    }

    pub(crate) fn remove(&mut self, id: PacketId) {
        if self.get(id).has_content {
            let content = std::mem::take(self.content_mut(id));
            self.return_buffer(content.payload);
        }
        self.free.push(id);
    }

    pub(crate) fn content(&self, id: PacketId) -> &Content {
        &self.contents[id.0 as usize]
    }

    pub(crate) fn content_mut(&mut self, id: PacketId) -> &mut Content {
        &mut self.contents[id.0 as usize]
    }

    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.0 as usize]
    }

    /// How many packets are on their way.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn wire_bytes_include_ip_and_udp() {
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let udp = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
        assert_eq!(Envelope::plain(v4, v4).wire_bytes(1480), WireBytes::new(1500));
        assert_eq!(Envelope::plain(v6, v6).wire_bytes(100), WireBytes::new(140));
        let wrapped = Envelope { source: v4, destination: v4, encapsulation: udp };
        assert_eq!(wrapped.wire_bytes(100), WireBytes::new(128));
    }

    #[test]
    fn new_buffers_have_the_room_that_packets_needed_so_far() {
        let mut pool = Pool::default();
        let mut taken: Vec<PacketBuffer> = (0..MORE_BUFFERS).map(|_| pool.take_buffer()).collect();
        assert!(taken.iter().all(|buffer| buffer.capacity() == 0), "nobody knows yet");
        let mut long = taken.pop().unwrap();
        long.extend_from_slice(&[0; 1_480]);
        pool.insert_with(
            Packet::new(WireBytes::new(1_500), SourceId(0), RouteId(0)),
            Content { envelope: None, payload: long },
        );
        assert_eq!(pool.take_buffer().capacity(), 1_480);
    }

    #[test]
    fn packets_and_buffers_are_used_again() {
        let mut pool = Pool::default();
        let packet = Packet::new(WireBytes::new(60), SourceId(0), RouteId(0));
        let content = |payload| Content {
            envelope: Some(Envelope::plain(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into())),
            payload,
        };
        let mut buffer = pool.take_buffer();
        buffer.extend_from_slice(b"abc");
        let address = buffer.as_ptr();
        let first = pool.insert_with(packet, content(buffer));
        let copy = pool.duplicate(first);
        assert_eq!(pool.content(copy).payload[..], *b"abc");
        pool.remove(copy);
        pool.remove(first);
        assert_eq!(pool.len(), 0);
        let buffer = pool.take_buffer();
        assert!(buffer.is_empty() && buffer.as_ptr() == address);
        assert_eq!(pool.insert(packet), first);
        assert!(pool.content(first).datagram().is_none(), "what was there before is gone");
    }
}
