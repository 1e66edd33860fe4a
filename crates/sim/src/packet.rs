//! Packets on links, and the pool that stores them.

use anabranch_core::PacketBuffer;
use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;

use crate::content::{Buffers, Content, RestoredPacket};
use crate::datagram::Envelope;
use crate::route::{RouteId, SourceId};
use crate::tap::PacketView;

/// Identifier of a packet in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

/// Random outcomes of a packet at its current link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    pub(crate) delayed: bool,
    /// Addition to the propagation delay.
    pub(crate) jitter: Span,
    /// Bit that flips, as a fraction of 2^32 of the payload's length.
    pub(crate) corrupted: Option<u32>,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) wire: WireBytes,
    pub(crate) source: SourceId,
    pub(crate) route: RouteId,
    /// Number of links of the route that the packet has passed.
    pub(crate) hop: u32,
    pub(crate) fate: Fate,
    /// Set if the packet has content. Cross traffic has no content.
    has_content: bool,
}

impl Packet {
    /// Returns a packet at the beginning of its route.
    pub(crate) const fn new(wire: WireBytes, source: SourceId, route: RouteId) -> Self {
        let fate =
            Fate { lost: false, duplicated: false, delayed: false, jitter: Span::ZERO, corrupted: None };
        Packet { wire, source, route, hop: 0, fate, has_content: false }
    }
}

/// Pool of packets, whose records are reused.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    /// Content of the packet at the same index.
    contents: Vec<Content>,
    free: Vec<PacketId>,
    buffers: Buffers,
}

impl Pool {
    /// Adds a packet without content.
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

    /// Adds the packet that a host wrote into `buffer`.
    pub(crate) fn insert_from(
        &mut self,
        packet: Packet,
        envelope: Envelope,
        buffer: &mut PacketBuffer,
    ) -> PacketId {
        let (written, unwritten_bytes) = self.buffers.take_over(buffer);
        self.insert_with(packet, Content { envelope: Some(envelope), written, unwritten_bytes })
    }

    /// Adds a packet with a copy of these bytes.
    pub(crate) fn insert_copy(&mut self, packet: Packet, payload: &[u8]) -> PacketId {
        let written = self.buffers.copy(payload);
        self.insert_with(packet, Content { envelope: None, written, unwritten_bytes: 0 })
    }

    fn insert_with(&mut self, packet: Packet, content: Content) -> PacketId {
        let id = self.insert(Packet { has_content: true, ..packet });
        self.contents[id.0 as usize] = content;
        id
    }

    /// Adds a second packet with the same bytes and no random outcomes yet.
    pub(crate) fn duplicate(&mut self, id: PacketId) -> PacketId {
        let packet = Packet { fate: Fate::default(), ..*self.get(id) };
        if !packet.has_content {
            return self.insert(packet);
        }
        let Content { envelope, ref written, unwritten_bytes } = self.contents[id.0 as usize];
        let written = self.buffers.copy_packet(written);
        self.insert_with(packet, Content { envelope, written, unwritten_bytes })
    }

    pub(crate) fn remove(&mut self, id: PacketId) {
        if self.get(id).has_content {
            let content = self.content_mut(id);
            content.envelope = None;
            let written = std::mem::take(&mut content.written);
            self.buffers.give_back(written);
        }
        self.free.push(id);
    }

    pub(crate) fn content(&self, id: PacketId) -> &Content {
        &self.contents[id.0 as usize]
    }

    /// Returns a packet as a tap gets it: a described one has bytes only if the tap reads them.
    pub(crate) fn view<'a>(
        &'a self,
        id: PacketId,
        room: &'a mut RestoredPacket,
        reads_bytes: bool,
    ) -> PacketView<'a> {
        let (&Packet { source, wire, .. }, content) = (self.get(id), self.content(id));
        let data = content.written.described().filter(|_| !reads_bytes);
        let datagram = match (content.envelope, data) {
            (Some(envelope), Some(_)) => Some(envelope.around(&[])),
            _ => content.datagram(room),
        };
        PacketView { source: Some(source), wire, datagram, data }
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

    /// Returns the number of packets on links.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn packets_are_used_again_and_copies_have_the_same_bytes() {
        let mut pool = Pool::default();
        let mut room = RestoredPacket::default();
        let packet = Packet::new(WireBytes::new(60), SourceId(0), RouteId(0));
        let envelope = Envelope::plain(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into());
        let mut buffer = PacketBuffer::new();
        buffer.extend_from_slice(b"abc");
        let first = pool.insert_from(packet, envelope, &mut buffer);
        let copy = pool.duplicate(first);
        assert_eq!(pool.content(copy).datagram(&mut room).unwrap().payload, b"abc");
        pool.remove(copy);
        pool.remove(first);
        assert_eq!(pool.len(), 0);
        assert_eq!(pool.insert(packet), first);
        assert!(pool.content(first).datagram(&mut room).is_none(), "what was there before is gone");
    }
}
