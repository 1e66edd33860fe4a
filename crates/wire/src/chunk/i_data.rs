//! I-DATA chunk: a user message or a fragment of one that other messages may interleave (RFC 8260 section 2.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 64     | 0 0 0 0 I U B E | length = 20 + user data     |
//!  +---------------+---------------+---------------+---------------+
//!  | TSN                                                           |
//!  +-------------------------------+-------------------------------+
//!  | stream identifier             | reserved                      |
//!  +-------------------------------+-------------------------------+
//!  | message identifier                                            |
//!  +---------------------------------------------------------------+
//!  | B = 1: payload protocol identifier; B = 0: fragment number    |
//!  +---------------------------------------------------------------+
//!  | user data, at least one byte                                  |
//!  +---------------------------------------------------------------+
//! ```

use super::{CHUNK_HEADER_LEN, ChunkType, DataFlags, RawChunk};
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::reader::padded_len;
use crate::serial::{Mid, StreamId, Tsn};
use crate::writer::PacketWriter;

/// Length of an I-DATA chunk up to its user data, in bytes.
pub const I_DATA_HEADER_LEN: usize = 20;

/// Fields of an I-DATA chunk except its user data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct IDataRepr {
    /// Flags of the chunk header, with the same bits as in a DATA chunk.
    pub flags: DataFlags,
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: StreamId,
    /// Message identifier. Ordered and unordered messages of a stream are counted separately.
    pub mid: Mid,
    /// Payload protocol identifier in the first fragment, fragment sequence number in the others.
    pub ppid_or_fsn: u32,
}

impl IDataRepr {
    /// Returns the length of an I-DATA chunk with `payload_len` bytes of user data, without padding.
    pub const fn chunk_len(payload_len: usize) -> usize {
        I_DATA_HEADER_LEN.saturating_add(payload_len)
    }

    /// Returns the payload protocol identifier, which only the first fragment of a message contains.
    pub const fn ppid(&self) -> Option<u32> {
        if self.flags.beginning { Some(self.ppid_or_fsn) } else { None }
    }

    /// Returns the fragment sequence number, which is zero in the first fragment of a message.
    pub const fn fsn(&self) -> u32 {
        if self.flags.beginning { 0 } else { self.ppid_or_fsn }
    }

    fn write(&self, cursor: &mut Cursor<'_>) -> Result<(), NoSpace> {
        cursor.u32(self.tsn.get())?;
        cursor.u16(self.stream.get())?;
        cursor.u16(0)?;
        cursor.u32(self.mid.get())?;
        cursor.u32(self.ppid_or_fsn)
    }
}

/// Received I-DATA chunk.
///
/// The user data may be empty. The receiver answers that with an ABORT whose No User Data cause names the TSN, as for DATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IDataView<'a> {
    repr: IDataRepr,
    payload: &'a [u8],
}

impl<'a> IDataView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        // Checks the length once instead of five times. The receiver ignores the reserved bytes.
        let [t3, t2, t1, t0, s1, s0, _, _, m3, m2, m1, m0, number @ ..] =
            fields.bytes::<{ I_DATA_HEADER_LEN - CHUNK_HEADER_LEN }>()?;
        let repr = IDataRepr {
            flags: DataFlags::from_bits(chunk.flags()),
            tsn: Tsn::new(u32::from_be_bytes([t3, t2, t1, t0])),
            stream: StreamId::new(u16::from_be_bytes([s1, s0])),
            mid: Mid::new(u32::from_be_bytes([m3, m2, m1, m0])),
            ppid_or_fsn: u32::from_be_bytes(number),
        };
        Ok(Self { repr, payload: fields.rest() })
    }

    /// Returns all fields except the user data.
    pub const fn repr(&self) -> IDataRepr {
        self.repr
    }

    /// Returns the user data.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

impl PacketWriter<'_> {
    /// Adds an I-DATA chunk with this user data.
    pub fn i_data(&mut self, repr: &IDataRepr, payload: &[u8]) -> Result<(), NoSpace> {
        self.chunk(ChunkType::I_DATA, repr.flags.bits(), |cursor| {
            repr.write(cursor)?;
            cursor.put(payload)
        })
    }

    /// Adds an I-DATA chunk with room for `len` bytes of user data that are never read and keep the previous content of the buffer.
    pub fn i_data_unwritten(&mut self, repr: &IDataRepr, len: usize) -> Result<(), NoSpace> {
        self.chunk(ChunkType::I_DATA, repr.flags.bits(), |cursor| {
            repr.write(cursor)?;
            cursor.claim(len).map(drop)
        })?;
        self.leave_unwritten(padded_len(len));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseErrorKind;
    use crate::testing::{bytes, decode, only, only_chunk, write};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = IDataRepr> {
        (any::<u8>(), any::<u32>(), any::<u16>(), any::<u32>(), any::<u32>()).prop_map(
            |(bits, tsn, stream, mid, ppid_or_fsn)| IDataRepr {
                flags: DataFlags::from_bits(bits),
                tsn: Tsn::new(tsn),
                stream: StreamId::new(stream),
                mid: Mid::new(mid),
                ppid_or_fsn,
            },
        )
    }

    /// Value of a chunk: TSN 9, stream 1, set reserved bytes, message 2, last field 7.
    const VALUE: [u8; 16] = [0, 0, 0, 9, 0, 1, 0xFF, 0xFF, 0, 0, 0, 2, 0, 0, 0, 7];

    #[test]
    fn last_field_is_identifier_in_first_fragment_and_number_in_others() {
        for (flags, ppid, fsn) in [(0x02, Some(7), 0), (0x03, Some(7), 0), (0x00, None, 7), (0x05, None, 7)] {
            let packet = write(|packet| packet.raw_parts(ChunkType::I_DATA, flags, &VALUE));
            let repr = only!(IData, &packet).repr();
            assert_eq!((repr.ppid(), repr.fsn()), (ppid, fsn), "flags {flags}");
        }
    }

    #[test]
    fn set_reserved_bytes_are_ignored_and_written_as_zero() {
        let packet = write(|packet| packet.raw_parts(ChunkType::I_DATA, 0xF3, &VALUE));
        let view = only!(IData, &packet);
        assert_eq!((view.repr().stream, view.repr().mid), (StreamId::new(1), Mid::new(2)));
        let packet = write(|packet| packet.i_data(&view.repr(), view.payload()));
        let raw = only_chunk(&packet);
        assert_eq!((raw.flags(), &raw.value()[6..8]), (0x03, &[0, 0][..]));
    }

    #[test]
    fn shorter_than_its_fields_is_an_error_and_empty_is_not() {
        for len in 0..VALUE.len() {
            assert_eq!(decode(0x40, 3, &VALUE[..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
        let packet = write(|packet| packet.raw_parts(ChunkType::I_DATA, 3, &VALUE));
        let view = only!(IData, &packet);
        assert!(view.payload().is_empty());
        assert_eq!(view.repr().tsn, Tsn::new(9));
    }

    proptest! {
        #[test]
        fn round_trip(repr in repr(), payload in bytes(0..2000)) {
            let packet = write(|packet| packet.i_data(&repr, &payload));
            let view = only!(IData, &packet);
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!(view.payload(), &payload);
            prop_assert_eq!(only_chunk(&packet).bytes().len(), IDataRepr::chunk_len(payload.len()));
            let unwritten = write(|packet| packet.i_data_unwritten(&repr, payload.len()));
            prop_assert_eq!(unwritten.len(), packet.len());
            prop_assert_eq!((&unwritten[..8], &unwritten[12..32]), (&packet[..8], &packet[12..32]));
        }
    }
}
