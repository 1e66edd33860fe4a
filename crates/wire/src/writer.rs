//! Writes a packet in place.
//!
//! The writer puts each chunk into the caller's buffer and pads it to four bytes at once, so the packet is complete after every
//! call. The methods for the chunk types are defined next to the views of those chunks.

use crate::chunk_type::ChunkType;
use crate::crc;
use crate::cursor::Cursor;
use crate::error::NoSpace;
use crate::header::{COMMON_HEADER_LEN, Header};
use crate::reader::padded_len;

/// Sizes of the fields that follow the chunks inside an enclosing chunk, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trailer {
    /// Bytes counted in the length of the enclosing chunk.
    pub(crate) counted: usize,
    /// Padding of the enclosing chunk to a multiple of four.
    pub(crate) padding: usize,
}

impl Trailer {
    pub(crate) const fn bytes(self) -> usize {
        self.counted + self.padding
    }
}

/// Chunk before its content: header and fields of a DATA chunk.
pub(crate) type ChunkHead = [u8; 16];

/// Chunk that is not written yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredChunk {
    /// Common header of its packet.
    pub(crate) header: Header,
    pub(crate) head: ChunkHead,
    /// Number of bytes behind `head`.
    pub(crate) content_bytes: u16,
}

/// Deferral of the first chunk of a packet, which is written only if another one follows it.
#[derive(Clone, Copy, Debug)]
enum Deferral {
    No,
    /// The next chunk is deferred if its content need not be written.
    Ready(Header),
    Deferred(DeferredChunk),
}

/// Writer of one packet into a buffer whose length is the maximum length of the packet.
///
/// Every method either adds its chunk, or returns [`NoSpace`] and leaves the packet unchanged. After an error, the buffer content
/// beyond [`len`](Self::len) is unspecified. No method allocates.
#[derive(Debug)]
pub struct PacketWriter<'b> {
    buf: &'b mut [u8],
    len: usize,
    /// Offset of the first chunk: after the common header, or after the header of the enclosing chunk.
    start: usize,
    /// Room reserved after the chunks.
    trailer: Trailer,
    /// Number of bytes at the end of the packet that keep the previous content of the buffer.
    unwritten: usize,
    deferral: Deferral,
}

impl<'b> PacketWriter<'b> {
    /// Begins a packet. Fails if the buffer is shorter than the common header.
    pub fn new(buf: &'b mut [u8], header: Header) -> Result<Self, NoSpace> {
        Self::with_envelope(buf, header, 0, Trailer::default())
    }

    /// Begins a packet that is not written if its only chunk is one of [`data_unwritten`](Self::data_unwritten);
    /// [`deferred`](Self::deferred) then returns it. Fails if the buffer is shorter than the common header.
    pub fn deferring(buf: &'b mut [u8], header: Header) -> Result<Self, NoSpace> {
        Ok(Self { deferral: Deferral::Ready(header), ..Self::new(buf, header)? })
    }

    /// Begins a packet whose chunks go into an enclosing chunk, with `leader` bytes before them and a trailer after them.
    pub(crate) fn with_envelope(
        buf: &'b mut [u8],
        header: Header,
        leader: usize,
        trailer: Trailer,
    ) -> Result<Self, NoSpace> {
        *buf.first_chunk_mut().ok_or(NoSpace)? = header.to_wire();
        let start = COMMON_HEADER_LEN + leader;
        if buf.len() < start + trailer.bytes() {
            return Err(NoSpace);
        }
        Ok(Self { buf, len: start, start, trailer, unwritten: 0, deferral: Deferral::No })
    }

    /// Defers a chunk whose content need not be written. Returns `false` if the chunk has to be written or does not fit.
    pub(crate) fn defer(&mut self, head: ChunkHead, content_bytes: u16) -> bool {
        let Deferral::Ready(header) = self.deferral else { return false };
        let chunk_len = head.len() + usize::from(content_bytes);
        let len = padded_len(chunk_len);
        if !self.is_empty() || len > self.remaining() || chunk_len > usize::from(u16::MAX) {
            return false;
        }
        self.deferral = Deferral::Deferred(DeferredChunk { header, head, content_bytes });
        self.len += len;
        self.unwritten = padded_len(usize::from(content_bytes));
        true
    }

    /// Writes the deferred chunk, if there is one. No chunk is deferred afterwards.
    fn settle(&mut self) {
        let Deferral::Deferred(chunk) = std::mem::replace(&mut self.deferral, Deferral::No) else { return };
        let Some(room) = self.buf.get_mut(self.start..self.len) else { return };
        let (head, content) = room.split_at_mut(chunk.head.len());
        head.copy_from_slice(&chunk.head);
        content[usize::from(chunk.content_bytes)..].fill(0);
    }

    /// Returns the only chunk of the packet if it is deferred. Otherwise the bytes of the packet are in the buffer.
    pub(crate) const fn deferred_chunk(&self) -> Option<DeferredChunk> {
        match self.deferral {
            Deferral::Deferred(chunk) => Some(chunk),
            Deferral::No | Deferral::Ready(_) => None,
        }
    }

    /// Returns the length of the chunks, in bytes.
    pub(crate) const fn content_len(&self) -> usize {
        self.len - self.start
    }

    /// Adds the reserved trailer to the packet. Returns everything after the common header, and the trailer's sizes.
    pub(crate) fn open_envelope(&mut self) -> (&mut [u8], Trailer) {
        let trailer = std::mem::take(&mut self.trailer);
        self.len += trailer.bytes();
        (self.buf.get_mut(COMMON_HEADER_LEN..self.len).unwrap_or_default(), trailer)
    }

    /// Returns the number of bytes written so far, common header and all padding included.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the packet contains no chunk yet.
    pub const fn is_empty(&self) -> bool {
        self.len == self.start
    }

    /// Returns the number of bytes at the end of the packet that keep the previous content of the buffer: the padded user data of a
    /// last chunk that [`data_unwritten`](Self::data_unwritten) added.
    pub const fn unwritten_bytes(&self) -> usize {
        self.unwritten
    }

    pub(crate) const fn leave_unwritten(&mut self, bytes: usize) {
        self.unwritten = bytes;
    }

    /// Returns the length of the longest chunk, header included, that still fits. It is a multiple of four, because padding must
    /// fit as well.
    pub const fn remaining(&self) -> usize {
        (self.buf.len() - self.len - self.trailer.bytes()) & !3
    }

    /// Returns the bytes written so far.
    pub(crate) fn written_mut(&mut self) -> &mut [u8] {
        self.settle();
        self.buf.get_mut(..self.len).unwrap_or_default()
    }

    /// Returns the chunks written so far, which [`Chunks::of`](crate::Chunks::of) iterates over. A
    /// [deferred](Self::deferred) chunk is not among them.
    pub fn chunk_bytes(&self) -> &[u8] {
        match self.deferral {
            Deferral::Deferred(_) => &[],
            Deferral::No | Deferral::Ready(_) => self.buf.get(self.start..self.len).unwrap_or_default(),
        }
    }

    /// Stores the checksum and returns the length of the packet, a multiple of four.
    pub fn finish(mut self) -> usize {
        self.settle();
        if let Some(packet) = self.buf.get_mut(..self.len) {
            //= docs/rfc9260.txt#section-6.8
            //# When sending an SCTP packet, the endpoint MUST strengthen the data integrity of the transmission by
            //# including the CRC32c checksum value calculated on the packet, as described below.
            //= docs/rfc9260.txt#section-6.8
            //# After the packet is constructed (containing the SCTP common header and one or more control or DATA
            //# chunks), the transmitter MUST:
            crc::write_field(packet);
        }
        self.len
    }

    /// Completes the packet with a zero checksum field, for packets that never leave memory or whose errors a lower layer detects
    /// (RFC 9653). Returns the length.
    pub fn finish_without_checksum(mut self) -> usize {
        self.settle();
        self.len
    }

    /// Adds a chunk of any type from its flags and value.
    pub fn raw_parts(&mut self, kind: ChunkType, flags: u8, value: &[u8]) -> Result<(), NoSpace> {
        self.chunk(kind, flags, |cursor| cursor.put(value))
    }

    /// Adds a chunk whose value `body` writes.
    pub(crate) fn chunk(
        &mut self,
        kind: ChunkType,
        flags: u8,
        body: impl FnOnce(&mut Cursor<'_>) -> Result<(), NoSpace>,
    ) -> Result<(), NoSpace> {
        self.settle();
        //= docs/rfc9260.txt#section-6.10
        //# Partial chunks MUST NOT be placed in an SCTP packet.
        let end = self.len + self.remaining();
        let mut cursor = Cursor::new(self.buf.get_mut(self.len..end).ok_or(NoSpace)?);
        cursor.tlv([kind.0, flags], body)?;
        //= docs/rfc9260.txt#section-3.2
        //# The total length of a chunk (including Type, Length, and Value fields) MUST be a multiple of 4 bytes.
        //= docs/rfc9260.txt#section-3.2
        //# If the length of the chunk is not a multiple of 4 bytes, the sender MUST pad the chunk with all zero bytes,
        //# and this padding is not included in the Chunk Length field.
        //= docs/rfc9260.txt#section-3.3.1
        //# The implementation MUST pad the end of the data to a 4-byte boundary with all zero bytes.
        //= docs/rfc9260.txt#section-3.3.1
        //# Any padding MUST NOT be included in the Length field.
        //= docs/rfc9260.txt#section-3.3.1
        //# A sender MUST never add more than 3 bytes of padding.
        cursor.pad()?;
        self.len += padded_len(cursor.at());
        self.unwritten = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HEADER, SAMPLES, write};
    use crate::{DataRepr, PacketView};

    #[test]
    fn a_packet_is_empty_until_it_has_a_chunk() {
        let mut buf = [0; 64];
        let mut packet = PacketWriter::new(&mut buf, HEADER).unwrap();
        assert!(packet.is_empty());
        packet.raw_parts(ChunkType::COOKIE_ACK, 0, &[]).unwrap();
        assert!(!packet.is_empty());
    }

    #[test]
    fn a_buffer_shorter_than_the_header_has_no_space() {
        for len in 0..COMMON_HEADER_LEN {
            assert!(PacketWriter::new(&mut vec![0; len], HEADER).is_err());
        }
        let mut buf = [0xEE; COMMON_HEADER_LEN];
        let packet = PacketWriter::new(&mut buf, HEADER).unwrap();
        assert!(packet.is_empty());
        assert_eq!((packet.remaining(), packet.finish()), (0, 12));
        assert!(PacketView::parse(&buf).unwrap().checksum_is_valid());
    }

    #[test]
    fn remaining_leaves_room_for_padding() {
        for (len, remaining) in [(12, 0), (15, 0), (16, 4), (19, 4), (20, 8)] {
            assert_eq!(PacketWriter::new(&mut vec![0; len], HEADER).unwrap().remaining(), remaining);
        }
    }

    //= docs/rfc9260.txt#section-6.10
    //= type=test
    //# Partial chunks MUST NOT be placed in an SCTP packet.
    #[test]
    fn chunk_that_does_not_fit_keeps_the_packet() {
        let before = write(|packet| packet.shutdown_ack());
        for (name, sample) in SAMPLES {
            let needed = write(sample).len() - COMMON_HEADER_LEN;
            for room in 0..needed {
                let mut buf = vec![0xEE; before.len() + room];
                let mut packet = PacketWriter::new(&mut buf, HEADER).unwrap();
                packet.shutdown_ack().unwrap();
                let remaining = packet.remaining();
                assert_eq!(sample(&mut packet), Err(NoSpace), "{name} in {room}");
                assert_eq!((packet.len(), packet.remaining()), (before.len(), remaining));
                assert_eq!(packet.finish(), before.len());
                assert_eq!(buf[..before.len()], before);
            }
            let mut buf = vec![0xEE; before.len() + needed];
            let mut packet = PacketWriter::new(&mut buf, HEADER).unwrap();
            packet.shutdown_ack().unwrap();
            assert_eq!(sample(&mut packet), Ok(()), "{name}");
            assert_eq!(packet.remaining(), 0);
        }
    }

    //= docs/rfc9260.txt#section-3.2
    //= type=test
    //# If the length of the chunk is not a multiple of 4 bytes, the sender MUST pad the chunk with all zero bytes, and
    //# this padding is not included in the Chunk Length field.
    //= docs/rfc9260.txt#section-3.2
    //= type=test
    //# The sender MUST NOT pad with more than 3 bytes.
    //= docs/rfc9260.txt#section-3.3.1
    //= type=test
    //# Any padding MUST NOT be included in the Length field.
    #[test]
    fn padding_is_zero_and_counts_in_no_length() {
        for len in 1..=8_usize {
            let packet = write(|packet| packet.data(&DataRepr::default(), &vec![1; len]));
            assert_eq!(packet.len(), COMMON_HEADER_LEN + padded_len(DataRepr::chunk_len(len)));
            assert_eq!(usize::from(packet[COMMON_HEADER_LEN + 3]), DataRepr::chunk_len(len));
            assert!(packet[COMMON_HEADER_LEN + DataRepr::chunk_len(len)..].iter().all(|&byte| byte == 0));
        }
    }
}
