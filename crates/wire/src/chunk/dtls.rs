//! DTLS chunk: the other chunks of a packet as one protected DTLS 1.3 record (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026,
//! section "DTLS Chunk"; record format of RFC 9147 section 4).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 0x41   | reserved    |R| length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | padding = 0   |0 0 1 0 1 0 E E| sequence number, encrypted    |
//!  +---------------+---------------+-------------------------------+
//!  | encrypted: the chunks, the content type 23, the AEAD's tag    |
//!  +---------------------------------------------------------------+
//! ```
//!
//! The R bit marks a record that a restart context protects. The record header always has three bytes: no connection
//! identifier, a sequence number of 16 bits, no length, and the two low bits of the epoch. One byte of padding before it
//! aligns the encrypted part to four bytes, so that chunks decrypted in place are aligned.
//!
//! This crate does not encrypt. It lays out the record and passes its parts to the caller's cipher.

use super::{CHUNK_HEADER_LEN, ChunkType, RawChunk};
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::header::{COMMON_HEADER_LEN, Header};
use crate::reader::padded_len;
use crate::writer::{PacketWriter, Trailer};

/// Length of a record header, in bytes.
pub const DTLS_RECORD_HEADER_LEN: usize = 3;

/// Length of a DTLS chunk up to its ciphertext, in bytes: chunk header, padding and record header.
pub const DTLS_HEADER_LEN: usize = CHUNK_HEADER_LEN + PRE_PADDING_LEN + DTLS_RECORD_HEADER_LEN;

/// Content type that follows the chunks: application data (RFC 9147 section 4, RFC 8446 section 5.1).
pub const DTLS_CONTENT_TYPE: u8 = 23;

const PRE_PADDING_LEN: usize = 1;

/// Length of the content type after the chunks, in bytes.
const CONTENT_TYPE_LEN: usize = 1;

/// R bit of the flags: selects the restart context.
const RESTART: u8 = 0x01;

/// First byte of a record header without the epoch bits: `001`, no connection identifier, a long sequence number, no length
/// (RFC 9147 section 4).
const FIXED_BITS: u8 = 0b0010_1000;

const EPOCH_BITS: u8 = 0b0000_0011;

/// Returns the number of bytes that a DTLS chunk adds to a packet, with a tag of `tag_bytes` bytes. Padding is included, so
/// the result is a multiple of four.
pub const fn dtls_overhead(tag_bytes: usize) -> usize {
    DTLS_HEADER_LEN + trailer(tag_bytes).bytes()
}

/// Returns the sizes of the fields that follow the chunks: content type, tag and padding of the DTLS chunk.
const fn trailer(tag_bytes: usize) -> Trailer {
    let counted = CONTENT_TYPE_LEN.saturating_add(tag_bytes);
    Trailer { counted, padding: padded_len(counted) - counted }
}

/// Protection context of an association that protects a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum DtlsUse {
    /// Context of an established association.
    #[default]
    Primary,
    /// Context reserved for a restart.
    Restart,
}

/// Record header. The sequence number is encrypted on the wire, and in plaintext when the record is authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DtlsRecordHeader {
    epoch_bits: u8,
    /// Low 16 bits of the sequence number, encrypted or in plaintext.
    pub sequence_number: u16,
}

impl DtlsRecordHeader {
    /// Creates the header of a record of this epoch. The header carries the two low bits of the epoch.
    pub const fn new(epoch: u64, sequence_number: u16) -> Self {
        Self { epoch_bits: (epoch & EPOCH_BITS as u64) as u8, sequence_number }
    }

    /// Returns the two low bits of the epoch.
    pub const fn epoch_bits(self) -> u8 {
        self.epoch_bits
    }

    /// Returns the header with its sequence number encrypted or decrypted; both are the same operation (RFC 9147 section 4.2.3).
    pub const fn masked(self, mask: [u8; 2]) -> Self {
        Self { sequence_number: self.sequence_number ^ u16::from_be_bytes(mask), ..self }
    }

    /// Returns the encoded header. If the sequence number is not encrypted, these bytes are the additional data of the AEAD (RFC
    /// 9147 section 4).
    pub const fn to_wire(self) -> [u8; DTLS_RECORD_HEADER_LEN] {
        let [high, low] = self.sequence_number.to_be_bytes();
        [FIXED_BITS | self.epoch_bits, high, low]
    }

    fn from_wire([first, high, low]: [u8; DTLS_RECORD_HEADER_LEN]) -> Option<Self> {
        let is_ours = first & !EPOCH_BITS == FIXED_BITS;
        is_ours.then_some(Self {
            epoch_bits: first & EPOCH_BITS,
            sequence_number: u16::from_be_bytes([high, low]),
        })
    }
}

/// Received DTLS chunk. A receiver that knows the type but not the extension reports the chunk regardless of its content.
/// Therefore only [`record`](Self::record) checks the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DtlsView<'a>(RawChunk<'a>);

impl<'a> DtlsView<'a> {
    pub(super) const fn decode(chunk: RawChunk<'a>) -> Self {
        Self(chunk)
    }

    /// Returns the context that protects the record.
    pub const fn context(&self) -> DtlsUse {
        if self.0.flags() & RESTART == 0 { DtlsUse::Primary } else { DtlsUse::Restart }
    }

    /// Returns the undecoded chunk.
    pub const fn raw_chunk(&self) -> RawChunk<'a> {
        self.0
    }

    /// Returns the record header and the ciphertext. The padding before the header is ignored.
    pub fn record(&self) -> Result<(DtlsRecordHeader, &'a [u8]), ParseError> {
        let mut fields = self.0.fields();
        let [_padding] = fields.bytes()?;
        let wrong_header = fields.error(ParseErrorKind::WrongRecordHeader);
        let header = DtlsRecordHeader::from_wire(fields.bytes()?).ok_or(wrong_header)?;
        Ok((header, fields.rest()))
    }
}

/// Record with plaintext chunks, to be encrypted in place.
#[derive(Debug)]
pub struct PlainRecord<'b> {
    header: &'b mut [u8; DTLS_RECORD_HEADER_LEN],
    /// Chunks and content type, to be replaced by ciphertext of the same length.
    pub content: &'b mut [u8],
    /// Room for the tag, which follows the ciphertext.
    pub tag: &'b mut [u8],
}

impl PlainRecord<'_> {
    /// Inserts the header, with the sequence number as sent on the wire.
    pub const fn set_header(&mut self, header: DtlsRecordHeader) {
        *self.header = header.to_wire();
    }
}

impl<'b> PacketWriter<'b> {
    /// Begins a packet whose only chunk is a DTLS chunk. Chunks are written as into any packet, and [`remaining`](Self::remaining)
    /// reserves room for a tag of `tag_bytes` bytes. [`finish_protected`](Self::finish_protected) completes the packet.
    pub fn protected(buf: &'b mut [u8], header: Header, tag_bytes: usize) -> Result<Self, NoSpace> {
        Self::with_envelope(buf, header, DTLS_HEADER_LEN, trailer(tag_bytes))
    }

    /// Encrypts the chunks of a packet that [`protected`](Self::protected) began, and completes it. `seal` encrypts the
    /// record and inserts its header. An error of `seal` is returned, and no packet results. A packet that another function
    /// began fails with [`NoSpace`].
    pub fn finish_protected<E: From<NoSpace>>(
        mut self,
        context: DtlsUse,
        seal: impl FnOnce(PlainRecord<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let content_bytes = self.content_len() + CONTENT_TYPE_LEN;
        let (chunk, trailer) = self.open_envelope();
        seal(lay_out(chunk, context, content_bytes, trailer).ok_or(NoSpace)?)?;
        Ok(self.finish())
    }
}

/// Writes the unencrypted parts of a DTLS chunk and the content type, and returns the record.
fn lay_out(
    chunk: &mut [u8],
    context: DtlsUse,
    content_bytes: usize,
    trailer: Trailer,
) -> Option<PlainRecord<'_>> {
    let tag_bytes = trailer.counted.checked_sub(CONTENT_TYPE_LEN)?;
    let len = DTLS_HEADER_LEN + content_bytes + tag_bytes;
    let flags = if context == DtlsUse::Restart { RESTART } else { 0 };
    let mut cursor = Cursor::new(chunk);
    cursor.put(&[ChunkType::DTLS.0, flags]).ok()?;
    cursor.u16(u16::try_from(len).ok()?).ok()?;
    cursor.put(&[0]).ok()?;
    let (header, rest) = chunk.get_mut(CHUNK_HEADER_LEN + PRE_PADDING_LEN..)?.split_first_chunk_mut()?;
    let (content, rest) = rest.split_at_mut_checked(content_bytes)?;
    let (tag, padding) = rest.split_at_mut_checked(tag_bytes)?;
    *content.last_mut()? = DTLS_CONTENT_TYPE;
    padding.fill(0);
    Some(PlainRecord { header, content, tag })
}

/// Removes the content type and any zero padding (RFC 8446 section 5.4) from a decrypted record. Returns `None` if the
/// content type is missing or is not application data.
pub fn dtls_content(decrypted: &[u8]) -> Option<&[u8]> {
    let end = decrypted.iter().rposition(|&byte| byte != 0)?;
    let (content, rest) = decrypted.split_at_checked(end)?;
    (rest.first() == Some(&DTLS_CONTENT_TYPE)).then_some(content)
}

/// Offset of the ciphertext in a packet whose only chunk is a DTLS chunk, in bytes.
pub const DTLS_CIPHERTEXT_OFFSET: usize = COMMON_HEADER_LEN + DTLS_HEADER_LEN;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HEADER, bytes, only, only_chunk, write};
    use crate::{PacketView, Tsn};
    use proptest::prelude::*;

    #[derive(PartialEq, Debug)]
    struct Spent(&'static str);

    impl From<NoSpace> for Spent {
        fn from(_: NoSpace) -> Self {
            Self("space")
        }
    }

    /// Returns a packet protected by a toy cipher that inverts each byte and fills tags with one byte.
    fn inverted(
        context: DtlsUse,
        header: DtlsRecordHeader,
        tag: &[u8],
        chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
    ) -> Vec<u8> {
        let mut buf = vec![0xEE; 70_000];
        let mut packet = PacketWriter::protected(&mut buf, HEADER, tag.len()).unwrap();
        chunks(&mut packet).unwrap();
        let sealed = packet.finish_protected(context, |mut record| {
            record.set_header(header);
            record.content.iter_mut().for_each(|byte| *byte = !*byte);
            record.tag.copy_from_slice(tag);
            Ok::<_, NoSpace>(())
        });
        let len = sealed.unwrap();
        buf.truncate(len);
        buf
    }

    #[test]
    fn a_packet_made_by_hand() {
        let header = DtlsRecordHeader::new(7, 0x1234);
        let packet = inverted(DtlsUse::Restart, header, &[0xAB; 16], |packet| packet.shutdown(Tsn::new(1)));
        let expected: [u8; 36] = [
            0x41, 0x01, 0x00, 0x21, // DTLS, restart, 33 bytes
            0x00, 0x2B, 0x12, 0x34, // padding; epoch 3 modulo 4; sequence number
            0xF8, 0xFF, 0xFF, 0xF7, // SHUTDOWN of eight bytes, inverted
            0xFF, 0xFF, 0xFF, 0xFE, // TSN 1
            0xE8, 0xAB, 0xAB, 0xAB, // application data, and the tag
            0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, // the tag
            0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0x00, 0x00, 0x00, // its end, and padding
        ];
        assert_eq!(packet[COMMON_HEADER_LEN..], expected);
        let view = only!(Dtls, &packet);
        assert_eq!((view.context(), view.record().unwrap().0), (DtlsUse::Restart, header));
        assert_eq!(view.record().unwrap().1, &expected[8..33]);
    }

    #[test]
    fn the_encrypted_part_begins_on_a_four_byte_boundary() {
        let packet = inverted(DtlsUse::Primary, DtlsRecordHeader::default(), &[1; 16], |p| p.cookie_ack());
        assert_eq!(DTLS_CIPHERTEXT_OFFSET % 4, 0);
        assert_eq!(packet[DTLS_CIPHERTEXT_OFFSET], !ChunkType::COOKIE_ACK.0);
    }

    #[test]
    fn only_one_form_of_record_header_is_read() {
        for first in 0..=u8::MAX {
            let packet = write(|packet| packet.raw_parts(ChunkType::DTLS, 0, &[0, first, 1, 2, 9]));
            let record = only!(Dtls, &packet).record();
            match first {
                0b0010_1000..=0b0010_1011 => {
                    let (header, rest) = record.unwrap();
                    assert_eq!((header.epoch_bits(), header.sequence_number), (first & 3, 0x0102));
                    assert_eq!(rest, [9]);
                }
                _ => assert_eq!(record, Err(ParseError::new(ParseErrorKind::WrongRecordHeader, 5))),
            }
        }
    }

    #[test]
    fn a_record_cut_off_in_its_header_is_an_error() {
        for len in 0..4 {
            let value = &[0, 0x2B, 1, 2][..len];
            let packet = write(|packet| packet.raw_parts(ChunkType::DTLS, 0, value));
            assert_eq!(only!(Dtls, &packet).record().unwrap_err().kind, ParseErrorKind::WrongLength);
        }
    }

    #[test]
    fn reserved_flags_and_the_padding_are_ignored() {
        let packet = write(|packet| packet.raw_parts(ChunkType::DTLS, 0xFE, &[0xFF, 0x2B, 1, 2]));
        let view = only!(Dtls, &packet);
        assert_eq!(
            (view.context(), view.record()),
            (DtlsUse::Primary, Ok((DtlsRecordHeader::new(3, 0x102), &[][..])))
        );
    }

    #[test]
    fn a_full_packet_is_as_long_as_its_buffer() {
        for len in 60..80 {
            let mut buf = vec![0xEE; len];
            let mut packet = PacketWriter::protected(&mut buf, HEADER, 16).unwrap();
            assert!(packet.is_empty());
            assert_eq!(packet.remaining(), (len - COMMON_HEADER_LEN - dtls_overhead(16)) & !3);
            packet.pad(packet.remaining()).unwrap();
            assert!(!packet.is_empty());
            let finished = packet.finish_protected(DtlsUse::Primary, |_| Ok::<_, NoSpace>(())).unwrap();
            assert_eq!(finished, len & !3);
        }
    }

    #[test]
    fn a_buffer_too_short_for_an_empty_record_has_no_space() {
        let shortest = COMMON_HEADER_LEN + dtls_overhead(16);
        assert!(PacketWriter::protected(&mut vec![0; shortest - 1], HEADER, 16).is_err());
        let mut buf = vec![0; shortest];
        let packet = PacketWriter::protected(&mut buf, HEADER, 16).unwrap();
        assert!(packet.is_empty() && packet.remaining() == 0);
    }

    #[test]
    fn error_of_encryption_is_returned() {
        let mut buf = [0; 100];
        let packet = PacketWriter::protected(&mut buf, HEADER, 16).unwrap();
        assert_eq!(packet.finish_protected(DtlsUse::Primary, |_| Err(Spent("key"))), Err(Spent("key")));
    }

    #[test]
    fn a_packet_that_was_begun_plain_cannot_be_protected() {
        let mut buf = [0; 100];
        let mut packet = PacketWriter::new(&mut buf, HEADER).unwrap();
        packet.cookie_ack().unwrap();
        assert_eq!(packet.finish_protected(DtlsUse::Primary, |_| Ok(())), Err(NoSpace));
    }

    #[test]
    fn content_ends_before_its_type_and_the_zeros_behind_it() {
        assert_eq!(dtls_content(&[1, 0, 23]), Some(&[1, 0][..]));
        assert_eq!(dtls_content(&[1, 0, 23, 0, 0]), Some(&[1, 0][..]));
        assert_eq!(dtls_content(&[23]), Some(&[][..]));
        for other in [&[][..], &[0, 0], &[1, 2, 22], &[1, 23, 21, 0]] {
            assert_eq!(dtls_content(other), None);
        }
    }

    proptest! {
        #[test]
        fn round_trip(epoch: u64, sequence_number: u16, restart: bool, tag in bytes(1..20), cookie in bytes(0..60)) {
            let context = if restart { DtlsUse::Restart } else { DtlsUse::Primary };
            let header = DtlsRecordHeader::new(epoch, sequence_number);
            let packet = inverted(context, header, &tag, |packet| packet.cookie_echo(&cookie));
            let Ok(crate::Chunk::Dtls(view)) = only_chunk(&packet).decode() else { panic!("no DTLS") };
            prop_assert_eq!(view.context(), context);
            let (found, encrypted) = view.record().unwrap();
            prop_assert_eq!(found, header);
            prop_assert_eq!(u64::from(found.epoch_bits()), epoch % 4);
            let (content, found_tag) = encrypted.split_at(encrypted.len() - tag.len());
            prop_assert_eq!(found_tag, &tag[..]);
            let plain: Vec<_> = content.iter().map(|byte| !byte).collect();
            let chunks = dtls_content(&plain).unwrap();
            let alone = write(|packet| packet.cookie_echo(&cookie));
            prop_assert_eq!(chunks, &alone[COMMON_HEADER_LEN..]);
            prop_assert_eq!(packet.len(), alone.len() + dtls_overhead(tag.len()));
            prop_assert!(PacketView::parse(&packet).unwrap().checksum_is_valid());
        }
    }
}
