//! DATA chunk: a user message or a fragment of one (RFC 9260 section 3.3.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 0      | 0 0 0 0 I U B E | length = 16 + user data     |
//!  +---------------+---------------+---------------+---------------+
//!  | TSN                                                           |
//!  +-------------------------------+-------------------------------+
//!  | stream identifier             | stream sequence number        |
//!  +-------------------------------+-------------------------------+
//!  | payload protocol identifier                                   |
//!  +---------------------------------------------------------------+
//!  | user data, at least one byte                                  |
//!  +---------------------------------------------------------------+
//! ```

use super::{CHUNK_HEADER_LEN, ChunkType, RawChunk};
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::reader::padded_len;
use crate::serial::{Ssn, StreamId, Tsn};
use crate::writer::{ChunkHead, PacketWriter};

/// Length of a DATA chunk up to its user data, in bytes.
pub const DATA_HEADER_LEN: usize = 16;

/// Flags of a DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DataFlags {
    /// E bit: last fragment of a message.
    pub ending: bool,
    /// B bit: first fragment of a message.
    pub beginning: bool,
    /// U bit: unordered message, whose stream sequence number is ignored.
    pub unordered: bool,
    /// I bit: the sender asks for an immediate acknowledgement.
    pub immediate: bool,
}

impl DataFlags {
    /// Flags of an ordered message in one fragment.
    pub const WHOLE: Self = Self { ending: true, beginning: true, unordered: false, immediate: false };

    const ENDING: u8 = 0x01;
    const BEGINNING: u8 = 0x02;
    const UNORDERED: u8 = 0x04;
    const IMMEDIATE: u8 = 0x08;

    pub(super) const fn from_bits(bits: u8) -> Self {
        Self {
            ending: bits & Self::ENDING != 0,
            beginning: bits & Self::BEGINNING != 0,
            unordered: bits & Self::UNORDERED != 0,
            immediate: bits & Self::IMMEDIATE != 0,
        }
    }

    pub(super) const fn bits(self) -> u8 {
        let ending = if self.ending { Self::ENDING } else { 0 };
        let beginning = if self.beginning { Self::BEGINNING } else { 0 };
        let unordered = if self.unordered { Self::UNORDERED } else { 0 };
        let immediate = if self.immediate { Self::IMMEDIATE } else { 0 };
        ending | beginning | unordered | immediate
    }
}

/// Fields of a DATA chunk except its user data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DataRepr {
    /// Flags of the chunk header.
    pub flags: DataFlags,
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: StreamId,
    /// Stream sequence number.
    pub ssn: Ssn,
    /// Payload protocol identifier, which SCTP passes through unread.
    pub ppid: u32,
}

impl DataRepr {
    /// Returns the length of a DATA chunk with `payload_len` bytes of user data, without padding.
    pub const fn chunk_len(payload_len: usize) -> usize {
        DATA_HEADER_LEN.saturating_add(payload_len)
    }

    /// Returns the chunk before its user data, at most 65,519 bytes.
    //= docs/rfc9260.txt#section-3.3.1
    //# The following format MUST be used for the DATA chunk:
    pub(crate) fn head(&self, payload_bytes: u16) -> ChunkHead {
        let [kind, flags] = [ChunkType::DATA.0, self.flags.bits()];
        let [high, low] = payload_bytes.saturating_add(DATA_HEADER_LEN as u16).to_be_bytes();
        let ([a, b, c, d], [e, f]) = (self.tsn.get().to_be_bytes(), self.stream.get().to_be_bytes());
        let ([g, h], [i, j, k, l]) = (self.ssn.get().to_be_bytes(), self.ppid.to_be_bytes());
        [kind, flags, high, low, a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// Reads the fields behind the chunk header.
    pub(crate) fn read(flags: u8, fields: [u8; DATA_HEADER_LEN - CHUNK_HEADER_LEN]) -> Self {
        let [t3, t2, t1, t0, s1, s0, n1, n0, ppid @ ..] = fields;
        DataRepr {
            flags: DataFlags::from_bits(flags),
            tsn: Tsn::new(u32::from_be_bytes([t3, t2, t1, t0])),
            stream: StreamId::new(u16::from_be_bytes([s1, s0])),
            ssn: Ssn::new(u16::from_be_bytes([n1, n0])),
            ppid: u32::from_be_bytes(ppid),
        }
    }

    fn write(&self, cursor: &mut Cursor<'_>) -> Result<(), NoSpace> {
        cursor.u32(self.tsn.get())?;
        cursor.u16(self.stream.get())?;
        cursor.u16(self.ssn.get())?;
        cursor.u32(self.ppid)
    }
}

/// Received DATA chunk.
///
/// The user data may be empty. RFC 9260 section 3.3.1 forbids that and requires an ABORT with a No User Data cause. Since
/// that cause names the TSN, the receiver performs this check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataView<'a> {
    repr: DataRepr,
    payload: &'a [u8],
}

impl<'a> DataView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        // Checks the length once instead of four times, because most packets contain DATA chunks and several components
        // decode them.
        let repr = DataRepr::read(chunk.flags(), fields.bytes()?);
        Ok(Self { repr, payload: fields.rest() })
    }

    /// Returns a chunk whose user data is zeros.
    pub(crate) fn of_zeros(repr: DataRepr, payload_bytes: u16) -> DataView<'static> {
        static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
        DataView { repr, payload: &ZEROS[..usize::from(payload_bytes)] }
    }

    /// Returns all fields except the user data.
    pub const fn repr(&self) -> DataRepr {
        self.repr
    }

    /// Returns the flags.
    pub const fn flags(&self) -> DataFlags {
        self.repr.flags
    }

    /// Returns the transmission sequence number.
    pub const fn tsn(&self) -> Tsn {
        self.repr.tsn
    }

    /// Returns the stream identifier.
    pub const fn stream(&self) -> StreamId {
        self.repr.stream
    }

    /// Returns the stream sequence number.
    pub const fn ssn(&self) -> Ssn {
        self.repr.ssn
    }

    /// Returns the payload protocol identifier.
    pub const fn ppid(&self) -> u32 {
        self.repr.ppid
    }

    /// Returns the user data.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

impl PacketWriter<'_> {
    /// Adds a DATA chunk with this user data.
    pub fn data(&mut self, repr: &DataRepr, payload: &[u8]) -> Result<(), NoSpace> {
        self.chunk(ChunkType::DATA, repr.flags.bits(), |cursor| {
            repr.write(cursor)?;
            cursor.put(payload)
        })
    }

    /// Adds a DATA chunk with room for `len` bytes of user data that are never read and keep the previous content of the buffer.
    pub fn data_unwritten(&mut self, repr: &DataRepr, len: usize) -> Result<(), NoSpace> {
        if let Ok(payload_bytes) = u16::try_from(len)
            && self.defer(repr.head(payload_bytes), payload_bytes)
        {
            return Ok(());
        }
        self.chunk(ChunkType::DATA, repr.flags.bits(), |cursor| {
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

    fn repr() -> impl Strategy<Value = DataRepr> {
        (any::<[bool; 4]>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u32>()).prop_map(
            |([ending, beginning, unordered, immediate], tsn, stream, ssn, ppid)| DataRepr {
                flags: DataFlags { ending, beginning, unordered, immediate },
                tsn: Tsn::new(tsn),
                stream: StreamId::new(stream),
                ssn: Ssn::new(ssn),
                ppid,
            },
        )
    }

    //= docs/rfc9260.txt#section-3.3.1
    //= type=test
    //# The following format MUST be used for the DATA chunk:
    #[test]
    fn flags_have_the_documented_positions() {
        for (bits, name) in [(1, "ending"), (2, "beginning"), (4, "unordered"), (8, "immediate")] {
            let flags = DataFlags::from_bits(bits | 0xF0);
            assert_eq!(flags.bits(), bits);
            assert!(format!("{flags:?}").contains(&format!("{name}: true")));
        }
        assert_eq!(DataFlags::WHOLE.bits(), 0x03);
    }

    #[test]
    fn shorter_than_its_fields_is_an_error_and_empty_is_not() {
        for len in 0..12 {
            assert_eq!(decode(0, 3, &[0; 12][..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
        let packet =
            write(|packet| packet.raw_parts(ChunkType::DATA, 3, &[0, 0, 0, 9, 0, 1, 0, 2, 0, 0, 0, 0]));
        let view = only!(Data, &packet);
        assert!(view.payload().is_empty());
        assert_eq!(view.tsn(), Tsn::new(9));
    }

    #[test]
    fn placeholder_of_unwritten_data_is_last_or_ignored() {
        let mut buf = [7; 12 + 16 + 8 + 4];
        let mut packet = PacketWriter::new(&mut buf, crate::Header::default()).unwrap();
        assert_eq!(packet.data_unwritten(&DataRepr::default(), 13), Err(NoSpace));
        assert_eq!((packet.len(), packet.unwritten_bytes()), (12, 0));
        assert_eq!(packet.data_unwritten(&DataRepr::default(), 5), Ok(()));
        assert_eq!((packet.len(), packet.unwritten_bytes()), (36, 8));
        assert_eq!(packet.shutdown_ack(), Ok(()));
        assert_eq!(
            (packet.len(), packet.unwritten_bytes()),
            (40, 0),
            "a chunk that was written is behind it"
        );
        assert_eq!(buf[28..36], [7, 7, 7, 7, 7, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn round_trip(repr in repr(), payload in bytes(0..2000)) {
            let packet = write(|packet| packet.data(&repr, &payload));
            let view = only!(Data, &packet);
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!(view.payload(), &payload);
            prop_assert_eq!(only_chunk(&packet).bytes().len(), DataRepr::chunk_len(payload.len()));
            let single = (view.flags(), view.tsn(), view.stream(), view.ssn(), view.ppid());
            prop_assert_eq!(single, (repr.flags, repr.tsn, repr.stream, repr.ssn, repr.ppid));
            let unwritten = write(|packet| packet.data_unwritten(&repr, payload.len()));
            prop_assert_eq!(unwritten.len(), packet.len());
            // The checksums differ, since they cover the unwritten bytes too.
            prop_assert_eq!((&unwritten[..8], &unwritten[12..28]), (&packet[..8], &packet[12..28]));
        }
    }
}
