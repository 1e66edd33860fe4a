//! Memory that packets are written into, one after the other.

use std::ops::{Deref, DerefMut};

/// Holds one packet, and is used again for the next.
///
/// Its memory keeps what it held before. A packet may have as many bytes as its path carries, 64 KiB over loopback, and most are far
/// shorter: an empty vector of that length would be cleared for each.
///
/// ```
/// use anabranch_core::PacketBuffer;
/// let mut buffer = PacketBuffer::new();
/// buffer.extend_from_slice(&[1, 2, 3]);
/// assert_eq!(buffer[..], [1, 2, 3]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PacketBuffer {
    memory: Vec<u8>,
    /// Bytes of the packet, which stands at the start.
    len: usize,
    /// How many of them, at the end, nobody wrote.
    unwritten: usize,
}

impl PacketBuffer {
    /// An empty buffer without memory.
    pub const fn new() -> Self {
        PacketBuffer { memory: Vec::new(), len: 0, unwritten: 0 }
    }

    /// An empty buffer that takes so many bytes without asking for more memory.
    pub fn with_capacity(bytes: usize) -> Self {
        PacketBuffer { memory: Vec::with_capacity(bytes), len: 0, unwritten: 0 }
    }

    /// Bytes that it takes without asking for more memory.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Forgets the packet.
    pub const fn clear(&mut self) {
        self.len = 0;
        self.unwritten = 0;
    }

    /// The packet without the user data at its end that nobody wrote and nobody will read ([`Endpoint::without_contents`]): whoever
    /// carries packets need not keep that, only how long it was. All of the packet if there is no such data, or a checksum.
    ///
    /// [`Endpoint::without_contents`]: crate::Endpoint::without_contents
    pub fn written(&self) -> &[u8] {
        &self.memory[..self.len - self.unwritten]
    }

    /// Puts bytes behind those of the packet.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let (kept, end) = (self.len, self.len + bytes.len());
        // What fits the memory that was written before is copied there.
        if let Some(room) = self.memory.get_mut(kept..end) {
            room.copy_from_slice(bytes);
        } else {
            let (first, rest) = bytes.split_at(self.memory.len() - kept);
            self.memory[kept..].copy_from_slice(first);
            self.memory.extend_from_slice(rest);
        }
        self.len = end;
        self.unwritten = 0;
    }

    /// Room for a packet of so many bytes, which hold anything. What is written there counts once [`keep`](Self::keep) says how much.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.clear();
        if self.memory.len() < bytes {
            self.memory.resize(bytes, 0);
        }
        &mut self.memory[..bytes]
    }

    /// The packet is what stands in the first bytes, the last of which were left as they were.
    pub(crate) fn keep(&mut self, bytes: usize, unwritten: usize) {
        debug_assert!(bytes <= self.memory.len() && unwritten <= bytes);
        self.len = bytes.min(self.memory.len());
        self.unwritten = unwritten.min(self.len);
    }
}

impl Deref for PacketBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl DerefMut for PacketBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_vector_would(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let (mut buffer, mut vector) = (PacketBuffer::new(), Vec::new());
            for (index, part) in parts.iter().enumerate() {
                match index % 4 {
                    0 => {
                        buffer.clear();
                        vector.clear();
                    }
                    1 => {
                        buffer.room(part.len() + 3)[..part.len()].copy_from_slice(part);
                        buffer.keep(part.len(), 0);
                        vector.clone_from(part);
                    }
                    _ => {
                        buffer.extend_from_slice(part);
                        vector.extend_from_slice(part);
                    }
                }
                prop_assert_eq!(&buffer[..], &vector[..]);
            }
        }
    }

    #[test]
    fn unwritten_bytes_belong_to_the_packet_until_they_are_overwritten() {
        let mut buffer = PacketBuffer::new();
        buffer.room(8).fill(7);
        buffer.keep(8, 5);
        assert_eq!((buffer.len(), buffer.written()), (8, &[7, 7, 7][..]));
        buffer.extend_from_slice(&[1]);
        assert_eq!(buffer.written(), [7, 7, 7, 7, 7, 7, 7, 7, 1]);
        buffer.keep(8, 5);
        buffer.clear();
        assert!(buffer.written().is_empty());
    }

    #[test]
    fn room_that_was_there_is_not_cleared() {
        let mut buffer = PacketBuffer::new();
        buffer.room(8).fill(7);
        buffer.keep(2, 0);
        assert_eq!((buffer.room(8)[7], buffer.len()), (7, 0));
    }
}
