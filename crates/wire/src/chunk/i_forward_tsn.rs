//! I-FORWARD-TSN chunk: moves the receiver past abandoned data of I-DATA chunks (RFC 8260 section 2.3.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 194    | flags = 0     | length = 8 + 8 * streams      |
//!  +---------------+---------------+---------------+---------------+
//!  | new cumulative TSN                                            |
//!  +-------------------------------+-------------------------------+
//!  | a stream that skips           | reserved                    |U|
//!  +-------------------------------+-------------------------------+
//!  | the last message identifier that it skips                     |
//!  +---------------------------------------------------------------+
//!  | and so on for every stream that skips                         |
//!  +---------------------------------------------------------------+
//! ```

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{Items, WireList, item};
use crate::serial::{Mid, StreamId, Tsn};
use crate::writer::PacketWriter;

/// Length of an I-FORWARD-TSN up to its streams, in bytes.
pub const I_FORWARD_TSN_HEADER_LEN: usize = 8;

/// Returns the length of an I-FORWARD-TSN with this number of entries.
pub const fn i_forward_tsn_len(entries: usize) -> usize {
    I_FORWARD_TSN_HEADER_LEN.saturating_add(entries.saturating_mul(8))
}

/// Entry of an I-FORWARD-TSN: the last message that the ordered or unordered messages of a stream skip.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SkippedMid {
    /// Stream identifier.
    pub stream: StreamId,
    /// U bit: the message identifier counts the unordered messages of the stream.
    pub unordered: bool,
    /// Last message identifier that is skipped.
    pub mid: Mid,
}

impl SkippedMid {
    const UNORDERED: u8 = 0x01;

    const fn from_wire([s1, s0, _, flags, m3, m2, m1, m0]: [u8; 8]) -> Self {
        Self {
            stream: StreamId::new(u16::from_be_bytes([s1, s0])),
            unordered: flags & Self::UNORDERED != 0,
            mid: Mid::new(u32::from_be_bytes([m3, m2, m1, m0])),
        }
    }

    const fn to_wire(self) -> [u8; 8] {
        let ([s1, s0], [m3, m2, m1, m0]) = (self.stream.get().to_be_bytes(), self.mid.get().to_be_bytes());
        [s1, s0, 0, if self.unordered { Self::UNORDERED } else { 0 }, m3, m2, m1, m0]
    }
}

item!(SkippedMid, 8, SkippedMid::from_wire, SkippedMid::to_wire);

/// Received I-FORWARD-TSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IForwardTsnView<'a> {
    new_cum_tsn: Tsn,
    skipped: WireList<'a, SkippedMid>,
}

impl<'a> IForwardTsnView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let new_cum_tsn = Tsn::new(fields.u32()?);
        let skipped = WireList::new(fields.rest()).ok_or(fields.error(ParseErrorKind::WrongLength))?;
        Ok(Self { new_cum_tsn, skipped })
    }

    /// Returns the new cumulative TSN: the receiver treats everything up to it as received.
    pub const fn new_cum_tsn(&self) -> Tsn {
        self.new_cum_tsn
    }

    /// Iterates over the streams that skip messages.
    pub fn skipped(&self) -> Items<'a, SkippedMid> {
        self.skipped.iter()
    }
}

impl PacketWriter<'_> {
    /// Adds an I-FORWARD-TSN.
    pub fn i_forward_tsn(
        &mut self,
        new_cum_tsn: Tsn,
        skipped: impl IntoIterator<Item = SkippedMid, IntoIter: ExactSizeIterator>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::I_FORWARD_TSN, 0, |cursor| {
            cursor.u32(new_cum_tsn.get())?;
            cursor.items(skipped).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{decode, only, only_chunk, write};
    use proptest::prelude::*;

    #[test]
    fn partial_entry_is_an_error() {
        for len in (0..21).filter(|len| len % 8 != 4) {
            assert_eq!(decode(0xC2, 0, &[0; 21][..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
    }

    #[test]
    fn set_reserved_bits_are_ignored_and_written_as_zero() {
        for (low, unordered) in [(0xFE, false), (0xFF, true)] {
            let entry = SkippedMid::from_wire([0, 3, 0xFF, low, 0, 0, 0, 7]);
            assert_eq!(entry, SkippedMid { stream: StreamId::new(3), unordered, mid: Mid::new(7) });
            assert_eq!(entry.to_wire(), [0, 3, 0, low & 1, 0, 0, 0, 7]);
        }
    }

    proptest! {
        #[test]
        fn round_trip(tsn: u32, entries in prop::collection::vec(any::<(u16, bool, u32)>(), 0..50)) {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(id, unordered, mid)| SkippedMid { stream: StreamId::new(id), unordered, mid: Mid::new(mid) })
                .collect();
            let packet = write(|packet| packet.i_forward_tsn(Tsn::new(tsn), entries.iter().copied()));
            let view = only!(IForwardTsn, &packet);
            prop_assert_eq!(view.new_cum_tsn(), Tsn::new(tsn));
            prop_assert!(view.skipped().eq(entries.iter().copied()));
            prop_assert_eq!(only_chunk(&packet).bytes().len(), i_forward_tsn_len(entries.len()));
        }
    }
}
