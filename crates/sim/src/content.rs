//! Content of packets, and the memory that stores it while they are on links.

use anabranch_core::{DataPacket, PacketBuffer};

use crate::datagram::{Datagram, Envelope};

/// Content of a packet. It is stored apart from the packets, so that records of cross traffic are small.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) envelope: Option<Envelope>,
    /// Written part of the packet, or its description.
    pub(crate) written: PacketBuffer,
    /// Number of bytes behind it that the host never wrote. The remaining bytes are not stored, because no receiver reads them.
    pub(crate) unwritten_bytes: usize,
}

impl Content {
    /// Returns the packet at its full length, which `room` provides if a part was not written.
    pub(crate) fn datagram<'a>(&'a self, room: &'a mut RestoredPacket) -> Option<Datagram<'a>> {
        Some(self.envelope?.around(self.payload(room)))
    }

    pub(crate) fn payload<'a>(&'a self, room: &'a mut RestoredPacket) -> &'a [u8] {
        match (self.written.described(), self.unwritten_bytes) {
            (Some(packet), _) => room.encode(packet),
            (None, 0) => &self.written,
            (None, unwritten_bytes) => room.restore(&self.written, unwritten_bytes),
        }
    }

    /// Flips the bit at this fraction of 2^32 of the packet's length. A bit behind the written part has no effect.
    pub(crate) fn flip_bit(&mut self, place: u32) {
        self.written.encode();
        let bits = (self.written.len() + self.unwritten_bytes) as u64 * 8;
        let bit = (u64::from(place) * bits) >> 32;
        if let Some(byte) = self.written.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// Memory in which a packet is restored to its full length: bytes that were not written are zero.
#[derive(Debug, Default)]
pub(crate) struct RestoredPacket {
    memory: Vec<u8>,
    /// Number of bytes, from the start, that may differ from zero.
    written: usize,
}

impl RestoredPacket {
    /// Returns the bytes of a packet that has none.
    pub(crate) fn encode(&mut self, packet: &DataPacket) -> &[u8] {
        let headers = packet.headers();
        self.restore(&headers, packet.packet_len() - headers.len())
    }

    fn restore(&mut self, written: &[u8], unwritten_bytes: usize) -> &[u8] {
        let len = written.len() + unwritten_bytes;
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
        if let Some(former) = self.memory.get_mut(written.len()..self.written) {
            former.fill(0);
        }
        self.memory[..written.len()].copy_from_slice(written);
        self.written = written.len();
        &self.memory[..len]
    }
}

/// Capacity of a small buffer: a DATA chunk of which only the header was written, behind a SACK with twenty gap ack blocks, or a
/// SACK alone.
const SMALL_BYTES: usize = 128;
/// Minimum and maximum number of buffers allocated at once.
const MORE_BUFFERS: usize = 16;
const BUFFERS_AT_ONCE: usize = 1024;

/// Pool of buffers for packets on links. A large window occupies as many buffers as it has packets, so short packets use small
/// ones.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    small: FreeList,
    large: FreeList,
}

impl Default for Buffers {
    fn default() -> Self {
        let small = FreeList { buffer_bytes: SMALL_BYTES, ..FreeList::default() };
        Buffers { small, large: FreeList::default() }
    }
}

impl Buffers {
    /// Returns a buffer with a copy of these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> PacketBuffer {
        let list = if bytes.len() <= SMALL_BYTES { &mut self.small } else { &mut self.large };
        let mut buffer = list.take();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Returns a copy of a packet.
    pub(crate) fn copy_packet(&mut self, packet: &PacketBuffer) -> PacketBuffer {
        packet.described().map_or_else(|| self.copy(packet), |packet| PacketBuffer::from(*packet))
    }

    /// Takes the packet out of `buffer`, which is empty afterwards. Returns the written part, or the description of the packet, and
    /// the number of bytes that follow.
    pub(crate) fn take_over(&mut self, buffer: &mut PacketBuffer) -> (PacketBuffer, usize) {
        if let Some(packet) = buffer.described().copied() {
            buffer.clear();
            return (PacketBuffer::from(packet), 0);
        }
        let written = buffer.written();
        if written.len() <= SMALL_BYTES {
            let taken = (self.copy(written), buffer.len() - written.len());
            buffer.clear();
            return taken;
        }
        self.large.note(buffer);
        (std::mem::replace(buffer, self.large.take()), 0)
    }

    pub(crate) fn give_back(&mut self, buffer: PacketBuffer) {
        match buffer.capacity() {
            0 => {}
            1..=SMALL_BYTES => self.small.give_back(buffer),
            _ => self.large.give_back(buffer),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct FreeList {
    free: Vec<PacketBuffer>,
    /// Number of buffers, in use or free.
    made: usize,
    /// Capacity of new buffers: that of the largest buffer so far, so that they need not grow.
    buffer_bytes: usize,
}

impl FreeList {
    fn take(&mut self) -> PacketBuffer {
        if self.free.is_empty() {
            // Doubling bounds the number of allocations: otherwise each new maximum of packets on links would allocate, even late
            // in a run.
            let more = self.made.clamp(MORE_BUFFERS, BUFFERS_AT_ONCE);
            self.free.extend((0..more).map(|_| PacketBuffer::with_capacity(self.buffer_bytes)));
            self.made += more;
        }
        self.free.pop().unwrap_or_default()
    }

    fn note(&mut self, buffer: &PacketBuffer) {
        self.buffer_bytes = self.buffer_bytes.max(buffer.capacity());
    }

    fn give_back(&mut self, mut buffer: PacketBuffer) {
        self.note(&buffer);
        buffer.clear();
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(bytes: usize) -> PacketBuffer {
        let mut buffer = PacketBuffer::new();
        buffer.extend_from_slice(&vec![1; bytes]);
        buffer
    }

    #[test]
    fn unwritten_bytes_read_as_zeros_after_any_content() {
        let mut room = RestoredPacket::default();
        for (written, unwritten_bytes) in [(5, 7), (3, 20), (9, 1), (0, 4)] {
            let content = Content { envelope: None, written: filled(written), unwritten_bytes };
            let payload = content.payload(&mut room);
            assert_eq!(payload, [vec![1; written], vec![0; unwritten_bytes]].concat());
        }
    }

    #[test]
    fn a_flipped_bit_counts_where_something_was_written() {
        let flip = |place| {
            let mut content = Content { envelope: None, written: filled(2), unwritten_bytes: 2 };
            content.flip_bit(place);
            content.written.to_vec()
        };
        assert_eq!(flip(0), [0, 1]);
        assert_eq!(flip(u32::MAX / 2), [1, 0b1000_0001]);
        assert_eq!(flip(u32::MAX / 2 + 1), [1, 1], "the first bit that nobody wrote");
        assert_eq!(flip(u32::MAX), [1, 1]);
    }

    #[test]
    fn described_packet_is_taken_over_without_bytes_and_encoded_to_be_read() {
        let packet = DataPacket::default();
        let (mut buffers, mut outgoing) = (Buffers::default(), PacketBuffer::from(packet));
        let (written, unwritten_bytes) = buffers.take_over(&mut outgoing);
        assert_eq!((written.described(), written.capacity(), unwritten_bytes), (Some(&packet), 0, 0));
        assert!(outgoing.is_empty());
        assert_eq!(buffers.copy_packet(&written).described(), Some(&packet));
        let mut content = Content { envelope: None, written, unwritten_bytes };
        let bytes = packet.headers();
        assert_eq!(content.payload(&mut RestoredPacket::default()), bytes);
        content.flip_bit(0);
        assert_eq!(content.written[0], bytes[0] ^ 1);
        assert_eq!(content.written[1..], bytes[1..]);
    }

    #[test]
    fn short_packets_are_copied_and_long_ones_change_hands() {
        let mut buffers = Buffers::default();
        let mut outgoing = filled(SMALL_BYTES);
        let (short, unwritten_bytes) = buffers.take_over(&mut outgoing);
        assert_eq!((&short[..], unwritten_bytes, outgoing.len()), (&[1; SMALL_BYTES][..], 0, 0));
        assert_eq!(outgoing.capacity(), SMALL_BYTES);
        let mut outgoing = filled(SMALL_BYTES + 1);
        let address = outgoing.as_ptr();
        let (long, _) = buffers.take_over(&mut outgoing);
        assert_eq!((long.as_ptr(), long.len(), outgoing.len()), (address, SMALL_BYTES + 1, 0));
    }

    #[test]
    fn new_buffers_have_the_room_that_long_packets_needed_so_far() {
        let mut buffers = Buffers::default();
        let mut outgoing = filled(1_480);
        let _on_its_way = buffers.take_over(&mut outgoing);
        assert_eq!(outgoing.capacity(), 1_480);
        assert_eq!(buffers.copy(&[1; SMALL_BYTES]).capacity(), SMALL_BYTES);
    }

    #[test]
    fn buffers_are_used_again() {
        let mut buffers = Buffers::default();
        for bytes in [SMALL_BYTES, SMALL_BYTES + 1] {
            let buffer = buffers.copy(&vec![1; bytes]);
            let address = buffer.as_ptr();
            buffers.give_back(buffer);
            assert_eq!(buffers.copy(&vec![2; bytes]).as_ptr(), address);
        }
        assert_eq!((buffers.small.made, buffers.large.made), (MORE_BUFFERS, MORE_BUFFERS));
    }
}
