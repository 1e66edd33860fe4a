//! Requests for more streams (RFC 6525 sections 4.5 and 4.6).
//!
//! ```text
//!  | type = 17                     | length = 12                   |  add outgoing streams
//!  | type = 18                     | length = 12                   |  add incoming streams
//!  | sequence number of this request                               |
//!  | number of new streams         | 0                             |
//! ```

use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::reader::Reader;

/// Reads the sequence number and the number of new streams. The last two bytes are reserved and ignored.
pub(super) fn read(mut value: Reader<'_>) -> Result<(u32, u16), ParseError> {
    let (request, streams) = (value.u32()?, value.u16()?);
    value.u16()?;
    value.end().map(|()| (request, streams))
}

pub(super) fn write(value: &mut Cursor<'_>, request: u32, streams: u16) -> Result<(), NoSpace> {
    value.u32(request)?;
    value.u32(u32::from(streams) << 16)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_param, param_error, tlv};
    use crate::{Param, ParseErrorKind, RawParam};

    #[test]
    fn layouts() {
        let value = [1, 2, 3, 4, 0, 9, 0, 0];
        let (request, streams) = (0x0102_0304, 9);
        assert_param(17, &value, Param::AddOutgoingStreams { request, streams });
        assert_param(18, &value, Param::AddIncomingStreams { request, streams });
    }

    #[test]
    fn reserved_bytes_are_ignored() {
        let bytes = tlv(17, &[0, 0, 0, 1, 0, 2, 0xFF, 0xFF]);
        let found = RawParam::parse(&bytes).unwrap().decode();
        assert_eq!(found, Ok(Param::AddOutgoingStreams { request: 1, streams: 2 }));
    }

    #[test]
    fn other_lengths_are_errors() {
        for len in (0..12).filter(|len| *len != 8) {
            assert_eq!(param_error(17, &[0; 12][..len]), ParseErrorKind::WrongLength);
            assert_eq!(param_error(18, &[0; 12][..len]), ParseErrorKind::WrongLength);
        }
    }
}
