//! Packet with one DATA chunk as fields, for two endpoints of one process that need no bytes.

use crate::chunk::{DATA_HEADER_LEN, DataRepr, DataView};
use crate::header::{COMMON_HEADER_LEN, Header};
use crate::reader::padded_len;
use crate::writer::{DeferredChunk, PacketWriter};

/// Bytes of a packet with one DATA chunk before its user data.
const HEADERS_LEN: usize = COMMON_HEADER_LEN + DATA_HEADER_LEN;

/// Packet with one DATA chunk whose user data is only counted.
///
/// It has the length of the packet that [`PacketWriter::data_unwritten`](crate::PacketWriter::data_unwritten) writes, and
/// [`headers`](Self::headers) returns the bytes that this method would have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataPacket {
    /// Common header.
    pub header: Header,
    /// Fields of the chunk.
    pub data: DataRepr,
    /// Number of bytes of user data.
    payload_bytes: u16,
}

impl DataPacket {
    /// Returns the packet; `None` if the length of the chunk exceeds 16 bits.
    pub fn new(header: Header, data: DataRepr, payload_bytes: usize) -> Option<Self> {
        u16::try_from(DataRepr::chunk_len(payload_bytes)).ok()?;
        Some(DataPacket { header, data, payload_bytes: u16::try_from(payload_bytes).ok()? })
    }

    /// Returns the number of bytes of user data.
    pub const fn payload_bytes(&self) -> usize {
        self.payload_bytes as usize
    }

    /// Returns the length of the packet with all padding.
    pub const fn packet_len(&self) -> usize {
        COMMON_HEADER_LEN + padded_len(DataRepr::chunk_len(self.payload_bytes()))
    }

    /// Returns the bytes before the user data, with a zero checksum.
    pub fn headers(&self) -> [u8; HEADERS_LEN] {
        let mut bytes = [0; HEADERS_LEN];
        let (common, chunk) = bytes.split_at_mut(COMMON_HEADER_LEN);
        common.copy_from_slice(&self.header.to_wire());
        chunk.copy_from_slice(&self.data.head(self.payload_bytes));
        bytes
    }

    /// Returns the chunk with zeros as user data.
    pub fn view(&self) -> DataView<'static> {
        DataView::of_zeros(self.data, self.payload_bytes)
    }
}

impl PacketWriter<'_> {
    /// Returns the packet if it has one chunk, which was [deferred](Self::deferring). Otherwise its bytes are in the buffer.
    pub fn deferred(&self) -> Option<DataPacket> {
        let DeferredChunk { header, head, content_bytes } = self.deferred_chunk()?;
        let [_, flags, _, _, fields @ ..] = head;
        Some(DataPacket { header, data: DataRepr::read(flags, fields), payload_bytes: content_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HEADER, write};
    use crate::{Chunk, DataFlags, PacketView, PacketWriter, Ssn, StreamId, Tsn};
    use proptest::prelude::*;

    fn repr(tsn: u32, immediate: bool) -> DataRepr {
        let flags = DataFlags { immediate, ..DataFlags::WHOLE };
        DataRepr { flags, tsn: Tsn::new(tsn), stream: StreamId::new(3), ssn: Ssn::new(4), ppid: 0x0102_0304 }
    }

    /// Returns the described packet of a deferring writer, and the bytes that it wrote.
    fn deferred(
        room: usize,
        fill: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), crate::NoSpace>,
    ) -> (Option<DataPacket>, Vec<u8>) {
        let mut buf = vec![0; room];
        let mut writer = PacketWriter::deferring(&mut buf, HEADER).unwrap();
        let filled = fill(&mut writer);
        let (packet, len) = (writer.deferred(), writer.len());
        assert_eq!(writer.finish_without_checksum(), len);
        assert_eq!(filled, Ok(()));
        buf.truncate(len);
        (packet, buf)
    }

    proptest! {
        #[test]
        fn deferred_packet_has_the_fields_and_bytes_of_a_written_one(
            tsn: u32, immediate: bool, payload_bytes in 0_usize..1_500,
        ) {
            let repr = repr(tsn, immediate);
            let mut written = write(|packet| packet.data(&repr, &vec![0; payload_bytes]));
            written[8..12].fill(0);
            let (packet, bytes) = deferred(1_600, |packet| packet.data_unwritten(&repr, payload_bytes));
            let packet = packet.unwrap();
            prop_assert_eq!(&bytes, &written);
            prop_assert_eq!(packet.packet_len(), written.len());
            prop_assert_eq!(&packet.headers()[..], &written[..HEADERS_LEN]);
            let parsed = PacketView::parse(&written).unwrap();
            prop_assert_eq!(packet.header, parsed.header());
            let chunk = parsed.chunks().next().unwrap().unwrap().decode().unwrap();
            prop_assert_eq!(chunk, Chunk::Data(packet.view()));
        }
    }

    #[test]
    fn packet_with_a_second_chunk_is_written() {
        let plain = write(|packet| {
            packet.data(&repr(1, false), &[0; 5])?;
            packet.data(&repr(2, false), &[0; 7])
        });
        let (packet, mut bytes) = deferred(100, |packet| {
            packet.data_unwritten(&repr(1, false), 5)?;
            packet.data_unwritten(&repr(2, false), 7)
        });
        assert!(packet.is_none());
        bytes[8..12].copy_from_slice(&plain[8..12]);
        assert_eq!(bytes, plain);
        let (packet, bytes) = deferred(100, |packet| {
            packet.shutdown_ack()?;
            packet.data_unwritten(&repr(1, false), 5)
        });
        assert!(packet.is_none());
        assert_eq!(bytes.len(), 12 + 4 + 24);
    }

    #[test]
    fn chunk_that_does_not_fit_is_not_deferred() {
        let mut buf = [0; 12 + 16 + 8];
        let mut writer = PacketWriter::deferring(&mut buf, HEADER).unwrap();
        assert_eq!(writer.data_unwritten(&repr(1, false), 9), Err(crate::NoSpace));
        assert_eq!((writer.len(), writer.deferred()), (12, None));
        assert_eq!(writer.data_unwritten(&repr(1, false), 8), Ok(()));
        assert_eq!(writer.data_unwritten(&repr(2, false), 1), Err(crate::NoSpace));
        assert_eq!((writer.len(), writer.remaining()), (36, 0));
    }

    #[test]
    fn length_of_the_chunk_is_at_most_its_field() {
        assert!(DataPacket::new(HEADER, repr(1, false), 65_519).is_some());
        assert!(DataPacket::new(HEADER, repr(1, false), 65_520).is_none());
        let mut buf = vec![0; 70_000];
        let mut writer = PacketWriter::deferring(&mut buf, HEADER).unwrap();
        assert_eq!(writer.data_unwritten(&repr(1, false), 65_520), Err(crate::NoSpace));
        let mut writer = PacketWriter::deferring(&mut buf, HEADER).unwrap();
        assert_eq!(writer.data_unwritten(&repr(1, false), 65_519), Ok(()));
        assert_eq!(writer.deferred(), DataPacket::new(HEADER, repr(1, false), 65_519));
    }
}
