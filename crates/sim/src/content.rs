//! What packets carry, and the memory that holds it on their way.

use anabranch_core::PacketBuffer;

use crate::datagram::{Datagram, Envelope};

/// What a packet carries. It is kept apart from the packets, so that those of cross traffic are small.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) envelope: Option<Envelope>,
    /// The packet, as far as it was written.
    pub(crate) written: PacketBuffer,
    /// How many bytes of it follow that nobody wrote and nobody will read.
    pub(crate) unwritten_bytes: usize,
}

impl Content {
    /// The packet at its full length, for which there may have to be room.
    pub(crate) fn datagram<'a>(&'a self, room: &'a mut Unabridged) -> Option<Datagram<'a>> {
        Some(self.envelope?.around(self.payload(room)))
    }

    pub(crate) fn payload<'a>(&'a self, room: &'a mut Unabridged) -> &'a [u8] {
        match self.unwritten_bytes {
            0 => &self.written,
            unwritten_bytes => room.restore(&self.written, unwritten_bytes),
        }
    }

    /// Flips the bit at this fraction of 2^32 of the packet's length, which changes nothing where nobody wrote.
    pub(crate) fn flip_bit(&mut self, place: u32) {
        let bits = (self.written.len() + self.unwritten_bytes) as u64 * 8;
        let bit = (u64::from(place) * bits) >> 32;
        if let Some(byte) = self.written.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// Memory in which a packet has its full length again: zeros stand for what was not written.
#[derive(Debug, Default)]
pub(crate) struct Unabridged {
    memory: Vec<u8>,
    /// How many bytes, from the start, may not be zero.
    written: usize,
}

impl Unabridged {
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

/// Room of a small buffer: a DATA chunk of which only the header was written, behind a SACK with twenty gap blocks, or a SACK alone.
const SMALL_BYTES: usize = 128;
/// The fewest and the most buffers made when there are none left.
const MORE_BUFFERS: usize = 16;
const BUFFERS_AT_ONCE: usize = 1024;

/// Buffers for packets on their way, used again once they are free. A large window is on its way in as many of them as it has packets,
/// so what is short stands in small ones.
#[derive(Debug)]
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
    /// A buffer that holds these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> PacketBuffer {
        let list = if bytes.len() <= SMALL_BYTES { &mut self.small } else { &mut self.large };
        let mut buffer = list.take();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes the packet in `buffer` over, which is empty then: what was written of it, and how many bytes follow.
    pub(crate) fn take_over(&mut self, buffer: &mut PacketBuffer) -> (PacketBuffer, usize) {
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

#[derive(Debug, Default)]
struct FreeList {
    free: Vec<PacketBuffer>,
    /// How many there are, on their way or free.
    made: usize,
    /// Room that new buffers have: as much as any so far, so that they need not grow, and no more.
    buffer_bytes: usize,
}

impl FreeList {
    fn take(&mut self) -> PacketBuffer {
        if self.free.is_empty() {
            // As many again as there are: otherwise every new record, late in a run as well, would allocate.
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
    fn what_was_not_written_reads_as_zeros_whatever_was_there_before() {
        let mut room = Unabridged::default();
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
