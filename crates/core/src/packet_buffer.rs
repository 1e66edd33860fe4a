//! Reused memory for packets.

use std::ops::{Deref, DerefMut};

/// Buffer of one packet, reused for the next.
///
/// The memory of the buffer keeps the bytes of earlier packets, so that it is not cleared for each packet. A packet may be as long
/// as its path permits, 64 KiB over loopback, and most are far shorter: an empty vector of that length would be cleared for each.
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
    /// Length of the packet, which is at the start.
    len: usize,
    /// Number of bytes at the end of the packet that were not written.
    unwritten: usize,
}

impl PacketBuffer {
    /// Returns an empty buffer without memory.
    pub const fn new() -> Self {
        PacketBuffer { memory: Vec::new(), len: 0, unwritten: 0 }
    }

    /// Returns an empty buffer with memory for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        PacketBuffer { memory: Vec::with_capacity(bytes), len: 0, unwritten: 0 }
    }

    /// Returns the number of bytes that fit the allocated memory.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Removes the packet.
    pub const fn clear(&mut self) {
        self.len = 0;
        self.unwritten = 0;
    }

    /// Returns the packet without the unwritten user data at its end, which no application reads ([`Endpoint::without_contents`]).
    /// A network need store only these bytes and the length. It is the whole packet if there is no such data, or a checksum.
    ///
    /// [`Endpoint::without_contents`]: crate::Endpoint::without_contents
    pub fn written(&self) -> &[u8] {
        &self.memory[..self.len - self.unwritten]
    }

    /// Appends bytes to the packet.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let (kept, end) = (self.len, self.len + bytes.len());
        // Bytes that fit initialised memory are copied there.
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

    /// Returns room for a packet of this length with undefined content. [`keep`](Self::keep) then sets the length of the packet.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.clear();
        if self.memory.len() < bytes {
            self.memory.resize(bytes, 0);
        }
        &mut self.memory[..bytes]
    }

    /// Sets the length of the packet at the start of the memory, and the number of unwritten bytes at its end.
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
        fn packet_buffer_equals_a_vector(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
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
    fn existing_capacity_is_not_cleared() {
        let mut buffer = PacketBuffer::new();
        buffer.room(8).fill(7);
        buffer.keep(2, 0);
        assert_eq!((buffer.room(8)[7], buffer.len()), (7, 0));
    }
}
