//! Reused memory for packets.

use std::ops::{Deref, DerefMut};

use anabranch_wire::DataPacket;

/// Buffer of one packet, reused for the next.
///
/// The memory of the buffer keeps the bytes of earlier packets, so that it is not cleared for each packet. A packet may be as long
/// as its path permits, 64 KiB over loopback, and most are far shorter: an empty vector of that length would be cleared for each.
///
/// Endpoints [with described packets](crate::Endpoint::with_described_packets) give some packets as a [`DataPacket`] without
/// bytes: the slice of such a packet is empty until [`encode`](Self::encode) writes it.
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
    /// Packet without bytes; `len` is 0 then.
    described: Option<DataPacket>,
}

impl PacketBuffer {
    /// Returns an empty buffer without memory.
    pub const fn new() -> Self {
        PacketBuffer { memory: Vec::new(), len: 0, unwritten: 0, described: None }
    }

    /// Returns an empty buffer with memory for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        PacketBuffer { memory: Vec::with_capacity(bytes), ..PacketBuffer::new() }
    }

    /// Returns the length of the packet in bytes, whether they are written or not.
    pub const fn len(&self) -> usize {
        match &self.described {
            Some(packet) => packet.packet_len(),
            None => self.len,
        }
    }

    /// Returns `true` if there is no packet.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the packet if it has no bytes.
    pub const fn described(&self) -> Option<&DataPacket> {
        self.described.as_ref()
    }

    /// Replaces the content by a packet without bytes.
    pub(crate) fn describe(&mut self, packet: DataPacket) {
        self.clear();
        self.described = Some(packet);
    }

    /// Writes the bytes of a packet without bytes, with a zero checksum and zeros as user data. Has no effect on other packets.
    pub fn encode(&mut self) {
        if let Some(packet) = self.described.take() {
            let (headers, len) = (packet.headers(), packet.packet_len());
            let room = self.room(len);
            room[..headers.len()].copy_from_slice(&headers);
            room[headers.len()..].fill(0);
            self.keep(len, 0);
        }
    }

    /// Returns the number of bytes that fit the allocated memory.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Removes the packet.
    pub const fn clear(&mut self) {
        self.len = 0;
        self.unwritten = 0;
        self.described = None;
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
        self.encode();
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

/// Returns a buffer with a packet without bytes.
impl From<DataPacket> for PacketBuffer {
    fn from(packet: DataPacket) -> Self {
        PacketBuffer { described: Some(packet), ..PacketBuffer::new() }
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
    use anabranch_wire::{DataRepr, Header};
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
    fn described_packet_has_its_length_and_no_bytes_until_it_is_encoded() {
        let packet = DataPacket::new(Header::default(), DataRepr::default(), 5).unwrap();
        let mut buffer = PacketBuffer::new();
        buffer.room(40).fill(7);
        buffer.describe(packet);
        assert_eq!((buffer.len(), &buffer[..], buffer.written()), (36, &[][..], &[][..]));
        assert_eq!(buffer.described(), Some(&packet));
        buffer.encode();
        assert_eq!((buffer.len(), buffer.described()), (36, None));
        assert_eq!(buffer[..], [&packet.headers()[..], &[0; 8]].concat());
        buffer.describe(packet);
        buffer.clear();
        assert!(buffer.is_empty() && buffer.described().is_none());
    }

    #[test]
    fn existing_capacity_is_not_cleared() {
        let mut buffer = PacketBuffer::new();
        buffer.room(8).fill(7);
        buffer.keep(2, 0);
        assert_eq!((buffer.room(8)[7], buffer.len()), (7, 0));
    }
}
