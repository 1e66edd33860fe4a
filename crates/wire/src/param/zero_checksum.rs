//! Zero Checksum Acceptable parameter (RFC 9653 section 4).
//!
//! ```text
//!  | type = 0x8001                 | length = 8                    |
//!  | error detection method identifier                             |
//! ```

use std::fmt;

use crate::error::ParseError;
use crate::reader::Reader;

/// Method that detects errors in packets with a zero checksum (RFC 9653 section 8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorDetectionMethod(pub u32);

impl ErrorDetectionMethod {
    /// DTLS below SCTP (RFC 9653 section 6).
    pub const LOWER_LAYER_DTLS: Self = Self(1);
}

impl fmt::Debug for ErrorDetectionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOWER_LAYER_DTLS => f.write_str("ErrorDetectionMethod(DTLS)"),
            Self(identifier) => write!(f, "ErrorDetectionMethod({identifier})"),
        }
    }
}

pub(super) fn read(mut value: Reader<'_>) -> Result<ErrorDetectionMethod, ParseError> {
    let method = ErrorDetectionMethod(value.u32()?);
    value.end().map(|()| method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_param, param_error};
    use crate::{Param, ParseErrorKind};

    #[test]
    fn layout() {
        let dtls = Param::ZeroChecksumAcceptable(ErrorDetectionMethod::LOWER_LAYER_DTLS);
        assert_param(0x8001, &[0, 0, 0, 1], dtls);
        let unknown = ErrorDetectionMethod(0x0102_0304);
        assert_param(0x8001, &[1, 2, 3, 4], Param::ZeroChecksumAcceptable(unknown));
    }

    #[test]
    fn other_lengths_are_errors() {
        for length in (0..=16).filter(|length| *length != 4) {
            let error = param_error(0x8001, &vec![0; length]);
            assert_eq!(error, ParseErrorKind::WrongLength, "{length} bytes");
        }
    }

    #[test]
    fn methods_are_named_in_debug_output() {
        assert_eq!(format!("{:?}", ErrorDetectionMethod::LOWER_LAYER_DTLS), "ErrorDetectionMethod(DTLS)");
        assert_eq!(format!("{:?}", ErrorDetectionMethod(7)), "ErrorDetectionMethod(7)");
    }
}
