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
//! ```

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::param::{ParamType, RawParam};
use crate::reader::{TLV_HEADER_LEN, Tlvs};
use crate::writer::PacketWriter;

/// Length of a HEARTBEAT or HEARTBEAT ACK up to its information, in bytes.
pub const HEARTBEAT_HEADER_LEN: usize = 8;

/// Returns the length of a HEARTBEAT or HEARTBEAT ACK with `info_len` bytes of information, without padding.
pub const fn heartbeat_len(info_len: usize) -> usize {
    HEARTBEAT_HEADER_LEN.saturating_add(info_len)
}

/// Received HEARTBEAT or HEARTBEAT ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatView<'a> {
    info: &'a [u8],
}

impl<'a> HeartbeatView<'a> {
    /// Requires the Heartbeat Info parameter first and ignores further parameters, since none are defined.
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let param = Tlvs::new(chunk.value(), TLV_HEADER_LEN).first().map(RawParam::from_tlv)?;
        if param.kind() != ParamType::HEARTBEAT_INFO {
            return Err(ParseError::new(ParseErrorKind::WrongParameter, TLV_HEADER_LEN));
        }
        Ok(Self { info: param.value() })
    }

    /// Returns the sender's information, which the HEARTBEAT ACK carries back unchanged.
    pub const fn info(&self) -> &'a [u8] {
        self.info
    }
}

impl PacketWriter<'_> {
    /// Adds a HEARTBEAT with this information.
    pub fn heartbeat(&mut self, info: &[u8]) -> Result<(), NoSpace> {
        self.heartbeat_of(ChunkType::HEARTBEAT, info)
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

    proptest! {
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
