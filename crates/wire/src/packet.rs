//! Whole packet: the common header, then chunks (RFC 9260 section 3).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | source port                   | destination port              |
//!  +---------------+---------------+---------------+---------------+
//!  | verification tag                                              |
//!  +---------------------------------------------------------------+
//!  | CRC32c, least significant byte first                          |
//!  +---------------------------------------------------------------+
//!  | chunks, each beginning at a multiple of four bytes            |
//!  +---------------------------------------------------------------+
//! ```

use crate::chunk::RawChunk;
use crate::crc;
use crate::error::{ParseError, ParseErrorKind};
use crate::header::{COMMON_HEADER_LEN, Header};
use crate::reader::{Reader, Tlvs};

/// Received packet with a complete common header. [`chunks`](Self::chunks) checks the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketView<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> PacketView<'a> {
    /// Parses the common header. The function checks neither the checksum nor the chunks.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        if bytes.len() < COMMON_HEADER_LEN {
            return Err(ParseError::new(ParseErrorKind::PacketTooShort, bytes.len()));
        }
        Ok(Self { bytes, header: Header::read(&mut Reader::new(bytes, 0))? })
    }

    /// Returns the common header.
    pub const fn header(&self) -> Header {
        self.header
    }

    /// Returns the checksum field.
    pub fn checksum_field(&self) -> u32 {
        crc::read_field(self.bytes).unwrap_or_default()
    }

    /// Returns `true` if the checksum field is correct. This reads the whole packet.
    pub fn checksum_is_valid(&self) -> bool {
        self.checksum_field() == crc::checksum(self.bytes)
    }

    /// Returns the whole packet.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Iterates over the chunks in order.
    pub fn chunks(&self) -> Chunks<'a> {
        let chunks = self.bytes.get(COMMON_HEADER_LEN..).unwrap_or_default();
        Chunks(Tlvs::new(chunks, COMMON_HEADER_LEN))
    }
}

/// Iterator over the chunks of a packet. It ends after an error, because the start of the next chunk is then unknown.
#[derive(Clone, Debug)]
pub struct Chunks<'a>(Tlvs<'a>);

impl<'a> Chunks<'a> {
    /// Iterates over the chunks in `bytes`, which are not preceded by a common header: the content of a decrypted record.
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self(Tlvs::new(bytes, 0))
    }

    /// Returns the bytes after the chunks returned so far, up to the end of the packet. If the next chunk is an AUTH, it covers
    /// these bytes.
    pub const fn rest(&self) -> &'a [u8] {
        self.0.rest()
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<RawChunk<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|tlv| tlv.map(RawChunk::from_tlv))
    }
}

impl std::iter::FusedIterator for Chunks<'_> {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{HEADER, SAMPLES, write};
    use crate::{Chunk, ChunkType, DataFlags, NoSpace, PacketWriter, Ssn, StreamId, Tsn};
    use proptest::prelude::*;

    /// Packet assembled by hand from the layouts.
    pub(crate) const BY_HAND: [u8; 52] = [
        0x13, 0x88, 0x26, 0xAB, // source port 5000, destination port 9899
        0x01, 0x02, 0x03, 0x04, // verification tag
        0x42, 0xD0, 0x20, 0x0E, // CRC32c, as Wireshark computes it
        0x03, 0x00, 0x00, 0x14, // SACK, no flags, 20 bytes
        0x00, 0x00, 0x00, 0x0A, // cumulative TSN 10
        0x00, 0x01, 0x00, 0x00, // window of 65536 bytes
        0x00, 0x01, 0x00, 0x00, // one gap ack block, no duplicates
        0x00, 0x02, 0x00, 0x03, // TSNs 12 and 13
        0x00, 0x0B, 0x00, 0x12, // DATA, immediate, beginning and ending, 18 bytes
        0x00, 0x00, 0x00, 0x63, // TSN 99
        0x00, 0x05, 0x00, 0x06, // stream 5, sequence number 6
        0x00, 0x00, 0x70, 0x07, // payload protocol 0x7007
        0x68, 0x69, 0x00, 0x00, // two bytes of user data, two of padding
    ];

    fn kinds(packet: &[u8]) -> Vec<Result<u8, ParseError>> {
        let chunks = PacketView::parse(packet).unwrap().chunks();
        chunks.map(|chunk| chunk.map(|chunk| chunk.kind().0)).collect()
    }

    //= docs/rfc9260.txt#section-3
    //= type=test
    //# All integer fields in an SCTP packet MUST be transmitted in network byte order, unless otherwise stated.
    #[test]
    fn a_packet_made_by_hand() {
        let packet = PacketView::parse(&BY_HAND).unwrap();
        assert_eq!(packet.header(), HEADER);
        assert!(packet.checksum_is_valid());
        assert_eq!(packet.checksum_field(), 0x0E20_D042);
        let mut chunks = packet.chunks().map(|chunk| chunk.unwrap().decode().unwrap());
        let Some(Chunk::Sack(sack)) = chunks.next() else { panic!("no SACK") };
        assert_eq!((sack.cum_tsn(), sack.a_rwnd()), (Tsn::new(10), 65_536));
        assert_eq!(sack.gaps().map(|block| (block.start, block.end)).collect::<Vec<_>>(), [(2, 3)]);
        let Some(Chunk::Data(data)) = chunks.next() else { panic!("no DATA") };
        assert_eq!((data.tsn(), data.stream(), data.ssn()), (Tsn::new(99), StreamId::new(5), Ssn::new(6)));
        assert_eq!(data.flags(), DataFlags { immediate: true, ..DataFlags::WHOLE });
        assert_eq!((data.ppid(), data.payload()), (0x7007, &b"hi"[..]));
        assert!(chunks.next().is_none());

        let again = write(|writer| {
            writer.sack(&sack.repr(), sack.gaps(), sack.dups())?;
            writer.data(&data.repr(), data.payload())
        });
        assert_eq!(again, BY_HAND);
    }

    //= docs/rfc9260.txt#section-6.8
    //= type=test
    //# When an SCTP packet is received, the receiver MUST first check the CRC32c checksum as follows:
    #[test]
    fn one_wrong_bit_spoils_the_checksum() {
        for bit in 0..BY_HAND.len() * 8 {
            let mut packet = BY_HAND;
            packet[bit / 8] ^= 1 << (bit % 8);
            assert!(!PacketView::parse(&packet).unwrap().checksum_is_valid(), "bit {bit}");
        }
    }

    #[test]
    fn shorter_than_the_header_is_an_error() {
        for len in 0..COMMON_HEADER_LEN {
            let error = PacketView::parse(&BY_HAND[..len]).unwrap_err();
            assert_eq!(error, ParseError::new(ParseErrorKind::PacketTooShort, len));
        }
        assert_eq!(kinds(&BY_HAND[..COMMON_HEADER_LEN]), []);
    }

    #[test]
    fn chunks_come_out_in_the_order_written() {
        let packet = write(|packet| SAMPLES.iter().try_for_each(|(_, sample)| sample(packet)));
        let alone: Vec<_> = SAMPLES.iter().flat_map(|&(_, sample)| kinds(&write(sample))).collect();
        assert_eq!(kinds(&packet), alone);
        assert_eq!(alone.len(), SAMPLES.len());
    }

    //= docs/rfc9260.txt#section-6.10
    //= type=test
    //# If the receiver detects a partial chunk, it MUST drop the chunk.
    #[test]
    fn a_wrong_length_ends_the_chunks() {
        for (len, kind) in [
            (0, ParseErrorKind::LengthTooShort),
            (3, ParseErrorKind::LengthTooShort),
            (9, ParseErrorKind::LengthTooLong),
            (0xFF, ParseErrorKind::LengthTooLong),
        ] {
            let mut packet = write(|packet| {
                packet.cookie_ack()?;
                packet.shutdown(Tsn::new(1))
            });
            packet[16 + 3] = len;
            assert_eq!(kinds(&packet), [Ok(11), Err(ParseError::new(kind, 16))]);
        }
    }

    #[test]
    fn the_last_padding_may_be_missing() {
        let packet = write(|packet| packet.cookie_echo(b"a"));
        for len in 17..=20 {
            assert_eq!(kinds(&packet[..len]), [Ok(10)]);
        }
        assert_eq!(kinds(&packet[..16]), [Err(ParseError::new(ParseErrorKind::LengthTooLong, 12))]);
    }

    #[test]
    fn bytes_too_few_for_a_chunk_are_an_error() {
        let packet = [&write(|packet| packet.cookie_ack())[..], &[0; 3]].concat();
        assert_eq!(kinds(&packet), [Ok(11), Err(ParseError::new(ParseErrorKind::TruncatedHeader, 16))]);
    }

    #[test]
    fn truncated_packet_does_not_panic() {
        for (_, sample) in SAMPLES {
            let packet = write(sample);
            for len in 0..packet.len() {
                crate::fuzzing::parse_packet(&packet[..len]);
                crate::fuzzing::reemit(&packet[..len]);
            }
        }
    }

    #[test]
    fn truncated_value_does_not_panic() {
        for (_, sample) in SAMPLES {
            let packet = write(sample);
            let whole = crate::testing::only_chunk(&packet);
            for len in 0..whole.value().len() {
                let short = |packet: &mut PacketWriter<'_>| {
                    packet.raw_parts(whole.kind(), whole.flags(), &whole.value()[..len])
                };
                crate::fuzzing::parse_packet(&write(short));
                crate::fuzzing::reemit(&write(short));
            }
        }
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzzing::parse_packet(&bytes);
            crate::fuzzing::reemit(&bytes);
        }

        #[test]
        fn random_chunk_value_does_not_panic(kind: u8, flags: u8, value in prop::collection::vec(any::<u8>(), 0..100)) {
            let packet = write(|packet| packet.raw_parts(ChunkType(kind), flags, &value));
            crate::fuzzing::parse_packet(&packet);
            crate::fuzzing::reemit(&packet);
        }

        #[test]
        fn bundles_round_trip(chunks in prop::collection::vec((any::<u8>(), any::<u8>(), crate::testing::bytes(0..40)), 0..20)) {
            let packet = write(|packet| -> Result<(), NoSpace> {
                chunks.iter().try_for_each(|(kind, flags, value)| packet.raw_parts(ChunkType(*kind), *flags, value))
            });
            let view = PacketView::parse(&packet).unwrap();
            prop_assert!(view.checksum_is_valid());
            let found: Vec<_> = view.chunks().map(|chunk| chunk.unwrap()).collect();
            prop_assert_eq!(found.len(), chunks.len());
            for (found, (kind, flags, value)) in found.iter().zip(&chunks) {
                prop_assert_eq!((found.kind().0, found.flags(), found.value()), (*kind, *flags, &value[..]));
            }
        }
    }
}
