//! RE-CONFIG chunk: requests and answers changes of the streams of an association (RFC 6525 section 3.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 130    | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | parameters: one or two requests or responses                  |
//!  +---------------------------------------------------------------+
//! ```

use super::{ChunkType, RawChunk};
use crate::error::NoSpace;
use crate::param::{Param, Params, RawParams};
use crate::writer::PacketWriter;

/// Received RE-CONFIG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReConfigView<'a> {
    params: RawParams<'a>,
}

impl<'a> ReConfigView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Self {
        let fields = chunk.fields();
        Self { params: RawParams::new(fields.rest(), fields.offset()) }
    }

    /// Iterates over the requests and responses and decodes them. The number of parameters is not checked.
    pub const fn params(&self) -> Params<'a> {
        self.params.decoded()
    }
}

impl PacketWriter<'_> {
    /// Adds a RE-CONFIG.
    pub fn re_config<'p>(&mut self, params: impl IntoIterator<Item = Param<'p>>) -> Result<(), NoSpace> {
        self.chunk(ChunkType::RE_CONFIG, 0, |cursor| {
            params.into_iter().try_for_each(|param| param.write(cursor))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{only, param, write};
    use crate::{List, OutgoingReset, ReconfigResult, StreamId, Tsn};
    use proptest::prelude::*;

    #[test]
    fn a_re_config_made_by_hand() {
        let streams = [StreamId::new(5)];
        let params = [
            Param::ReconfigResponse { response: 7, result: ReconfigResult::PERFORMED, next_tsns: None },
            Param::OutgoingReset(OutgoingReset {
                request: 0x0102_0304,
                response: 7,
                last_tsn: Tsn::new(9),
                streams: List::new(&streams),
            }),
        ];
        let packet = write(|packet| packet.re_config(params));
        let expected = [
            0x82, 0, 0, 34, // RE-CONFIG of 34 bytes
            0, 16, 0, 12, 0, 0, 0, 7, 0, 0, 0, 1, // request 7 was performed
            0, 13, 0, 18, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 9, 0, 5, // reset of stream 5
            0, 0, // padding
        ];
        assert_eq!(packet[12..], expected);
    }

    #[test]
    fn wrong_length_of_a_parameter_is_reported_in_its_place() {
        let value = [0, 15, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 15, 0, 8, 0, 0, 0, 2];
        let packet = write(|packet| packet.raw_parts(ChunkType::RE_CONFIG, 0, &value));
        let mut params = only!(ReConfig, &packet).params();
        assert!(params.next().is_some_and(|param| param.is_err()));
        assert_eq!(params.next(), Some(Ok(Param::SsnTsnReset { request: 2 })));
        assert_eq!(params.next(), None);
    }

    proptest! {
        #[test]
        fn round_trip(params in prop::collection::vec(param(), 0..4)) {
            let packet = write(|packet| packet.re_config(params.iter().copied()));
            prop_assert!(only!(ReConfig, &packet).params().eq(params.iter().copied().map(Ok)));
        }
    }
}
