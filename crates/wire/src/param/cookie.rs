//! State cookie and related parameters (RFC 9260 sections 3.3.2.1.3, 3.3.3.1.1 and 3.3.3.1.2).
//!
//! ```text
//!  | type = 7                      | length                        |  state cookie
//!  | cookie                                                        |
//!
//!  | type = 8                      | length                        |  unrecognized parameter
//!  | a parameter of the INIT, its own header included              |
//!
//!  | type = 9                      | length = 8                    |  cookie preservative
//!  | increment of the life span in milliseconds                    |
//! ```

use crate::error::ParseError;
use crate::reader::Reader;

pub(super) fn read_increment(mut value: Reader<'_>) -> Result<u32, ParseError> {
    let increment_ms = value.u32()?;
    value.end().map(|()| increment_ms)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_param, param_error};
    use crate::{Param, ParseErrorKind, RawParam};

    #[test]
    fn layouts() {
        assert_param(7, b"cookie", Param::StateCookie(b"cookie"));
        assert_param(8, &[0x80, 1, 0, 5, 9], Param::UnrecognizedParameter(&[0x80, 1, 0, 5, 9]));
        assert_param(9, &[0, 0, 3, 0xE8], Param::CookiePreservative { increment_ms: 1000 });
    }

    #[test]
    fn other_lengths_are_errors() {
        assert_eq!(param_error(9, &[0; 3]), ParseErrorKind::WrongLength);
        assert_eq!(param_error(9, &[0; 5]), ParseErrorKind::WrongLength);
    }

    #[test]
    fn a_quoted_parameter_reads_like_any_other() {
        let quoted = RawParam::parse(&[0xC0, 6, 0, 8, 0, 0, 0, 2]).unwrap();
        assert_eq!(quoted.decode(), Ok(Param::AdaptationIndication(2)));
        assert_eq!(RawParam::parse(&[0, 5, 0, 8]).unwrap_err().kind, ParseErrorKind::LengthTooLong);
    }
}
