//! Error causes that concern a DATA chunk or an unknown chunk type (RFC 9260 sections 3.3.10.1, 3.3.10.6 and 3.3.10.9).
//!
//! ```text
//!  | code = 1                      | length = 8                    |  invalid stream identifier
//!  | stream identifier             | reserved = 0                  |
//!
//!  | code = 6                      | length                        |  unrecognized chunk type
//!  | the chunk, its own header included                            |
//!
//!  | code = 9                      | length = 8                    |  no user data
//!  | TSN of the empty chunk                                        |
//! ```

use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::reader::Reader;
use crate::serial::{StreamId, Tsn};

pub(super) fn read_stream(mut info: Reader<'_>) -> Result<StreamId, ParseError> {
    let stream = StreamId::new(info.u16()?);
    let _reserved = info.u16()?;
    info.end().map(|()| stream)
}

pub(super) fn write_stream(info: &mut Cursor<'_>, stream: StreamId) -> Result<(), NoSpace> {
    info.u16(stream.get())?;
    info.u16(0)
}

pub(super) fn read_tsn(mut info: Reader<'_>) -> Result<Tsn, ParseError> {
    let tsn = Tsn::new(info.u32()?);
    info.end().map(|()| tsn)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_cause, cause_error};
    use crate::{Cause, ParseErrorKind, StreamId, Tsn};

    #[test]
    fn layouts() {
        assert_cause(1, &[1, 2, 0, 0], Cause::InvalidStream(StreamId::new(0x0102)));
        assert_cause(6, &[0xFF, 1, 0, 5, 9], Cause::UnrecognizedChunk(&[0xFF, 1, 0, 5, 9]));
        assert_cause(9, &[1, 2, 3, 4], Cause::NoUserData(Tsn::new(0x0102_0304)));
    }

    #[test]
    fn other_lengths_are_errors() {
        for code in [1, 9] {
            for len in (0..8).filter(|&len| len != 4) {
                assert_eq!(cause_error(code, &[0; 8][..len]), ParseErrorKind::WrongLength);
            }
        }
    }
}
