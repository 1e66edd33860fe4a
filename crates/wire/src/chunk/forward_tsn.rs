//! FORWARD TSN chunk: moves the receiver past data that the sender has abandoned (RFC 3758 section 3.2).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 192    | flags = 0     | length = 8 + 4 * streams      |
//!  +---------------+---------------+---------------+---------------+
//!  | new cumulative TSN                                            |
//!  +-------------------------------+-------------------------------+
//!  | a stream that skips           | the last SSN that it skips    |
//!  +-------------------------------+-------------------------------+
//!  | and so on for every ordered stream that skips                 |
//!  +---------------------------------------------------------------+
//! ```

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{Items, WireList};
use crate::serial::{Ssn, StreamId, Tsn};
use crate::writer::PacketWriter;

/// Length of a FORWARD TSN up to its streams, in bytes.
pub const FORWARD_TSN_HEADER_LEN: usize = 8;

/// Returns the length of a FORWARD TSN with this number of streams.
pub const fn forward_tsn_len(streams: usize) -> usize {
    FORWARD_TSN_HEADER_LEN.saturating_add(streams.saturating_mul(4))
}

/// Received FORWARD TSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardTsnView<'a> {
    new_cum_tsn: Tsn,
    streams: WireList<'a, (StreamId, Ssn)>,
}

impl<'a> ForwardTsnView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let new_cum_tsn = Tsn::new(fields.u32()?);
        let streams = WireList::new(fields.rest()).ok_or(fields.error(ParseErrorKind::WrongLength))?;
        Ok(Self { new_cum_tsn, streams })
    }

    /// Returns the new cumulative TSN: the receiver treats everything up to it as received.
    pub const fn new_cum_tsn(&self) -> Tsn {
        self.new_cum_tsn
    }

    /// Iterates over the streams that skip messages, each with the last stream sequence number that it skips.
    pub fn streams(&self) -> Items<'a, (StreamId, Ssn)> {
        self.streams.iter()
    }
}

impl PacketWriter<'_> {
    /// Adds a FORWARD TSN.
    pub fn forward_tsn(
        &mut self,
        new_cum_tsn: Tsn,
        streams: impl IntoIterator<Item = (StreamId, Ssn), IntoIter: ExactSizeIterator>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::FORWARD_TSN, 0, |cursor| {
            cursor.u32(new_cum_tsn.get())?;
            cursor.items(streams).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{decode, only, only_chunk, write};
    use proptest::prelude::*;

    #[test]
    fn streams_have_to_be_whole() {
        for len in (0..12).filter(|len| len % 4 != 0 || *len == 0) {
            assert_eq!(decode(0xC0, 0, &[0; 12][..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
    }

    proptest! {
        #[test]
        fn round_trip(tsn: u32, streams in prop::collection::vec(any::<(u16, u16)>(), 0..50)) {
            let streams: Vec<_> = streams.into_iter().map(|(id, n)| (StreamId::new(id), Ssn::new(n))).collect();
            let packet = write(|packet| packet.forward_tsn(Tsn::new(tsn), streams.iter().copied()));
            let view = only!(ForwardTsn, &packet);
            prop_assert_eq!(view.new_cum_tsn(), Tsn::new(tsn));
            prop_assert!(view.streams().eq(streams.iter().copied()));
            prop_assert_eq!(only_chunk(&packet).bytes().len(), forward_tsn_len(streams.len()));
        }
    }
}
