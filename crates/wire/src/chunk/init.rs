//! INIT and INIT ACK chunks: open an association (RFC 9260 sections 3.3.2 and 3.3.3).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 1 or 2 | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | initiate tag: what the other side has to send as the tag      |
//!  +---------------------------------------------------------------+
//!  | advertised receiver window                                    |
//!  +-------------------------------+-------------------------------+
//!  | outbound streams wanted       | inbound streams allowed       |
//!  +-------------------------------+-------------------------------+
//!  | initial TSN                                                   |
//!  +---------------------------------------------------------------+
//!  | parameters; an INIT ACK has at least a state cookie           |
//!  +---------------------------------------------------------------+
//! ```
//!
//! The endpoint checks for a zero tag, a zero stream count and a missing cookie, because its answer depends on more than the chunk.

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError};
use crate::param::{Param, Params, RawParams};
use crate::serial::Tsn;
use crate::writer::PacketWriter;

/// Length of an INIT or INIT ACK up to its parameters, in bytes.
pub const INIT_HEADER_LEN: usize = 20;

/// Fields of an INIT or INIT ACK except its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct InitRepr {
    /// Verification tag for packets to the sender of the chunk.
    pub initiate_tag: u32,
    /// Advertised receiver window, in bytes.
    pub a_rwnd: u32,
    /// Number of outbound streams that the sender requests.
    pub outbound_streams: u16,
    /// Maximum number of streams that the sender can receive on.
    pub inbound_streams: u16,
    /// TSN of the sender's first DATA chunk.
    pub initial_tsn: Tsn,
}

/// Received INIT or INIT ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitView<'a> {
    repr: InitRepr,
    params: RawParams<'a>,
}

impl<'a> InitView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let repr = InitRepr {
            initiate_tag: fields.u32()?,
            a_rwnd: fields.u32()?,
            outbound_streams: fields.u16()?,
            inbound_streams: fields.u16()?,
            initial_tsn: Tsn::new(fields.u32()?),
        };
        Ok(Self { repr, params: RawParams::new(fields.rest(), fields.offset()) })
    }

    /// Returns all fields except the parameters.
    pub const fn repr(&self) -> InitRepr {
        self.repr
    }

    /// Returns the verification tag for packets to the sender.
    pub const fn initiate_tag(&self) -> u32 {
        self.repr.initiate_tag
    }

    /// Returns the advertised receiver window, in bytes.
    pub const fn a_rwnd(&self) -> u32 {
        self.repr.a_rwnd
    }

    /// Returns the number of outbound streams that the sender requests.
    pub const fn outbound_streams(&self) -> u16 {
        self.repr.outbound_streams
    }

    /// Returns the maximum number of streams that the sender can receive on.
    pub const fn inbound_streams(&self) -> u16 {
        self.repr.inbound_streams
    }

    /// Returns the TSN of the sender's first DATA chunk.
    pub const fn initial_tsn(&self) -> Tsn {
        self.repr.initial_tsn
    }

    /// Iterates over the parameters and decodes them.
    pub const fn params(&self) -> Params<'a> {
        self.params.decoded()
    }

    /// Iterates over the undecoded parameters, for quoting them in an answer.
    pub const fn raw_params(&self) -> RawParams<'a> {
        self.params
    }
}

impl PacketWriter<'_> {
    /// Adds an INIT with these parameters, which must be the only chunk of its packet (RFC 9260 section 3.3.2).
    pub fn init<'p>(
        &mut self,
        repr: &InitRepr,
        params: impl IntoIterator<Item = Param<'p>>,
    ) -> Result<(), NoSpace> {
        self.init_of(ChunkType::INIT, repr, params)
    }

    /// Adds an INIT ACK with these parameters, which must be the only chunk of its packet (RFC 9260 section 3.3.3).
    pub fn init_ack<'p>(
        &mut self,
        repr: &InitRepr,
        params: impl IntoIterator<Item = Param<'p>>,
    ) -> Result<(), NoSpace> {
        self.init_of(ChunkType::INIT_ACK, repr, params)
    }

    fn init_of<'p>(
        &mut self,
        kind: ChunkType,
        repr: &InitRepr,
        params: impl IntoIterator<Item = Param<'p>>,
    ) -> Result<(), NoSpace> {
        //= docs/rfc9260.txt#section-3.3.2
        //# The Chunk Flags field in INIT chunks is reserved, and all bits in it SHOULD be set to 0 by the sender and
        //# ignored by the receiver.
        //= docs/rfc9260.txt#section-3.3.3
        //# The Chunk Flags field in INIT ACK chunks is reserved, and all bits in it SHOULD be set to 0 by the sender and
        //# ignored by the receiver.
        self.chunk(kind, 0, |cursor| {
            cursor.u32(repr.initiate_tag)?;
            cursor.u32(repr.a_rwnd)?;
            cursor.u16(repr.outbound_streams)?;
            cursor.u16(repr.inbound_streams)?;
            cursor.u32(repr.initial_tsn.get())?;
            //= docs/rfc9260.txt#section-3.3.2.1
            //# Any Type-Length-Value fields MUST be placed after the fixed-length fields.
            //= docs/rfc9260.txt#section-3.3.3.1
            //# Any Type-Length-Value fields MUST be placed after the fixed-length fields.
            params.into_iter().try_for_each(|param| param.write(cursor))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseErrorKind;
    use crate::testing::{decode, only, param, write};
    use proptest::prelude::*;

    fn repr() -> impl Strategy<Value = InitRepr> {
        any::<(u32, u32, u16, u16, u32)>().prop_map(|(tag, a_rwnd, outbound, inbound, tsn)| InitRepr {
            initiate_tag: tag,
            a_rwnd,
            outbound_streams: outbound,
            inbound_streams: inbound,
            initial_tsn: Tsn::new(tsn),
        })
    }

    #[test]
    fn shorter_than_its_fields_is_an_error() {
        for len in 0..16 {
            assert_eq!(decode(1, 0, &[0; 16][..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
        assert!(decode(2, 0, &[0; 16]).is_ok());
    }

    //= docs/rfc9260.txt#section-3.2.1
    //= type=test
    //# The total length of a parameter (including Parameter Type, Parameter Length, and Parameter Value fields) MUST be a
    //# multiple of 4 bytes.
    #[test]
    fn the_length_leaves_out_the_padding_of_the_last_parameter_only() {
        let params = [Param::StateCookie(b"a"), Param::StateCookie(b"bc")];
        let packet = write(|packet| packet.init_ack(&InitRepr::default(), params));
        assert_eq!(packet[12 + 3], 20 + 8 + 6);
        assert_eq!(&packet[12 + 20..], b"\0\x07\0\x05a\0\0\0\0\x07\0\x06bc\0\0");
    }

    #[test]
    fn init_ack_is_distinguished_from_init() {
        let repr =
            InitRepr { initiate_tag: 7, outbound_streams: 2, inbound_streams: 3, ..InitRepr::default() };
        let packet = write(|packet| packet.init_ack(&repr, [Param::StateCookie(b"cookie")]));
        let view = only!(InitAck, &packet);
        assert_eq!(view.repr(), repr);
        assert!(view.params().eq([Ok(Param::StateCookie(b"cookie"))]));
    }

    #[test]
    fn a_bad_value_does_not_hide_the_parameters_behind_it() {
        let mut value = [0; 16].to_vec();
        value.extend_from_slice(&[0, 5, 0, 5, 0, 0, 0, 0]);
        value.extend_from_slice(&[0xC0, 0, 0, 4]);
        value.extend_from_slice(&[0, 5, 0, 3, 0xC0, 0, 0, 4]);
        let packet = write(|packet| packet.raw_parts(ChunkType::INIT, 0, &value));
        let found: Vec<_> = only!(Init, &packet).params().collect();
        let expected = [
            Err(ParseError::new(ParseErrorKind::WrongLength, 20 + 4)),
            Ok(Param::ForwardTsnSupported),
            Err(ParseError::new(ParseErrorKind::LengthTooShort, 20 + 12)),
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn round_trip(repr in repr(), params in prop::collection::vec(param(), 0..6)) {
            let packet = write(|packet| packet.init(&repr, params.iter().copied()));
            let view = only!(Init, &packet);
            prop_assert_eq!(view.repr(), repr);
            prop_assert_eq!((view.initiate_tag(), view.a_rwnd()), (repr.initiate_tag, repr.a_rwnd));
            prop_assert_eq!(view.outbound_streams(), repr.outbound_streams);
            prop_assert_eq!(view.inbound_streams(), repr.inbound_streams);
            prop_assert_eq!(view.initial_tsn(), repr.initial_tsn);
            prop_assert!(view.params().eq(params.iter().copied().map(Ok)));
            prop_assert!(view.raw_params().map(|raw| raw.unwrap().decode()).eq(view.params()));

            let mut answer = packet.clone();
            answer[12] = ChunkType::INIT_ACK.0;
            crate::crc::write_field(&mut answer);
            prop_assert_eq!(write(|packet| packet.init_ack(&repr, params.iter().copied())), answer);
        }
    }
}
