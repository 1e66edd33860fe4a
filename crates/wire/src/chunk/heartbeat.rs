//! HEARTBEAT and HEARTBEAT ACK chunks: probe a path (RFC 9260 sections 3.3.5 and 3.3.6).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 4 or 5 | flags = 0     | length = 8 + information      |
//!  +---------------+---------------+---------------+---------------+
//!  | parameter type = 1            | parameter length              |
//!  +-------------------------------+-------------------------------+
//!  | information that only its sender understands                  |
//!  +---------------------------------------------------------------+
//!  | optional: parameter type = 0xBF70 | length = 5 | cost, padding |
//!  +---------------------------------------------------------------+
//! ```

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::param::{ParamType, RawParam};
use crate::reader::{TLV_HEADER_LEN, Tlvs};
use crate::writer::PacketWriter;

/// Length of a HEARTBEAT or HEARTBEAT ACK up to its information, in bytes.
pub const HEARTBEAT_HEADER_LEN: usize = 8;

/// Length of the path cost in a HEARTBEAT with its padding, in bytes.
pub const PATH_COST_LEN: usize = 8;

/// Returns the length of a HEARTBEAT or HEARTBEAT ACK with `info_len` bytes of information, without padding.
pub const fn heartbeat_len(info_len: usize) -> usize {
    HEARTBEAT_HEADER_LEN.saturating_add(info_len)
}

/// Received HEARTBEAT or HEARTBEAT ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatView<'a> {
    info: &'a [u8],
    path_cost: Option<u8>,
}

impl<'a> HeartbeatView<'a> {
    /// Requires the Heartbeat Info parameter first, reads a path cost of one byte behind it in a HEARTBEAT, and ignores everything
    /// else.
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut params = Tlvs::new(chunk.value(), TLV_HEADER_LEN);
        let param = params.first().map(RawParam::from_tlv)?;
        if param.kind() != ParamType::HEARTBEAT_INFO {
            return Err(ParseError::new(ParseErrorKind::WrongParameter, TLV_HEADER_LEN));
        }
        let second = params.nth(1).and_then(Result::ok).map(RawParam::from_tlv);
        let path_cost = second.filter(|_| chunk.kind() == ChunkType::HEARTBEAT).and_then(|param| {
            match (param.kind(), param.value()) {
                (ParamType::PATH_COST, [cost]) => Some(*cost),
                _ => None,
            }
        });
        Ok(Self { info: param.value(), path_cost })
    }

    /// Returns the sender's information, which the HEARTBEAT ACK carries back unchanged.
    pub const fn info(&self) -> &'a [u8] {
        self.info
    }

    /// Returns the value of the path cost of a HEARTBEAT, if there is one. It may be undefined.
    pub const fn path_cost(&self) -> Option<u8> {
        self.path_cost
    }
}

impl PacketWriter<'_> {
    /// Adds a HEARTBEAT with this information.
    pub fn heartbeat(&mut self, info: &[u8]) -> Result<(), NoSpace> {
        self.heartbeat_of(ChunkType::HEARTBEAT, info)
    }

    /// Adds a HEARTBEAT with this information and the cost of its path.
    pub fn heartbeat_with_path_cost(&mut self, info: &[u8], cost: u8) -> Result<(), NoSpace> {
        self.chunk(ChunkType::HEARTBEAT, 0, |cursor| {
            cursor.tlv(ParamType::HEARTBEAT_INFO.0.to_be_bytes(), |value| value.put(info))?;
            cursor.tlv(ParamType::PATH_COST.0.to_be_bytes(), |value| value.put(&[cost]))
        })
    }

    /// Adds a HEARTBEAT ACK with the information of the HEARTBEAT.
    pub fn heartbeat_ack(&mut self, info: &[u8]) -> Result<(), NoSpace> {
        self.heartbeat_of(ChunkType::HEARTBEAT_ACK, info)
    }

    fn heartbeat_of(&mut self, kind: ChunkType, info: &[u8]) -> Result<(), NoSpace> {
        self.chunk(kind, 0, |cursor| {
            cursor.tlv(ParamType::HEARTBEAT_INFO.0.to_be_bytes(), |value| value.put(info))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bytes, decode, only, only_chunk, write};
    use proptest::prelude::*;

    #[test]
    fn only_the_information_may_come_first() {
        for (value, kind) in [
            (&[][..], ParseErrorKind::TruncatedHeader),
            (&[0, 1, 0], ParseErrorKind::TruncatedHeader),
            (&[0, 1, 0, 3], ParseErrorKind::LengthTooShort),
            (&[0, 1, 0, 5], ParseErrorKind::LengthTooLong),
            (&[0, 2, 0, 4], ParseErrorKind::WrongParameter),
        ] {
            assert_eq!(decode(4, 0, value).unwrap_err(), ParseError::new(kind, 4));
        }
    }

    #[test]
    fn a_length_that_counts_the_last_padding_is_understood() {
        let packet = write(|packet| packet.raw_parts(ChunkType::HEARTBEAT, 0, b"\x00\x01\x00\x05i\0\0\0"));
        assert_eq!(only!(Heartbeat, &packet).info(), b"i");
    }

    #[test]
    fn malformed_or_misplaced_path_cost_is_ignored() {
        let cost = |value: &[u8]| {
            let packet = write(|packet| packet.raw_parts(ChunkType::HEARTBEAT, 0, value));
            only!(Heartbeat, &packet).path_cost()
        };
        assert_eq!(cost(b"\x00\x01\x00\x05i\0\0\0\xBF\x70\x00\x05\x02\0\0\0"), Some(2));
        for value in [
            &b"\x00\x01\x00\x05i\0\0\0\xBF\x70\x00\x04"[..],
            b"\x00\x01\x00\x05i\0\0\0\xBF\x70\x00\x06\x01\x01\0\0",
            b"\x00\x01\x00\x05i\0\0\0\xBF\x70\x00\xFF\x01",
            b"\x00\x01\x00\x05i\0\0\0\xBF\x71\x00\x05\x01\0\0\0",
            b"\x00\x01\x00\x05i\0\0\0\x80\x05\x00\x04\xBF\x70\x00\x05\x01\0\0\0",
        ] {
            assert_eq!(cost(value), None, "{value:?}");
        }
    }

    #[test]
    fn path_cost_in_an_ack_is_ignored() {
        let value = b"\x00\x01\x00\x05i\0\0\0\xBF\x70\x00\x05\x02\0\0\0";
        let packet = write(|packet| packet.raw_parts(ChunkType::HEARTBEAT_ACK, 0, value));
        let view = only!(HeartbeatAck, &packet);
        assert_eq!((view.info(), view.path_cost()), (&b"i"[..], None));
    }

    proptest! {
        #[test]
        fn path_cost_follows_the_information(info in bytes(0..200), cost: u8) {
            let packet = write(|packet| packet.heartbeat_with_path_cost(&info, cost));
            let view = only!(Heartbeat, &packet);
            prop_assert_eq!((view.info(), view.path_cost()), (&info[..], Some(cost)));
            let padded = crate::padded_len(heartbeat_len(info.len())) + PATH_COST_LEN;
            prop_assert_eq!(crate::padded_len(only_chunk(&packet).bytes().len()), padded);
        }

        #[test]
        fn round_trip(info in bytes(0..200)) {
            let packet = write(|packet| packet.heartbeat(&info));
            prop_assert_eq!(only!(Heartbeat, &packet).info(), &info);
            prop_assert_eq!(only_chunk(&packet).bytes().len(), heartbeat_len(info.len()));
            let packet = write(|packet| packet.heartbeat_ack(&info));
            prop_assert_eq!(only!(HeartbeatAck, &packet).info(), &info);
        }
    }
}
