//! Answer to a request of a RE-CONFIG chunk (RFC 6525 section 4.4).
//!
//! ```text
//!  | type = 16                     | length = 12 or 20             |
//!  | sequence number of the request                                |
//!  | result                                                        |
//!  | next TSN of the sender, in answers to an SSN/TSN reset only   |
//!  | next TSN of the receiver, with the former only                |
//! ```

use super::Param;
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::reader::Reader;
use crate::serial::Tsn;
use std::fmt;

/// Result of a request (RFC 6525 section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReconfigResult(pub u32);

macro_rules! results {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl ReconfigResult {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns the text of the result, or `None` if RFC 6525 does not define it.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

results! {
    /// The request was accepted and changes nothing.
    NOTHING_TO_DO = 0, "Success - Nothing to do";
    /// The request was performed.
    PERFORMED = 1, "Success - Performed";
    /// The peer does not permit the request.
    DENIED = 2, "Denied";
    /// A stream of the request does not exist, or the peer waits for an earlier message on it.
    WRONG_SSN = 3, "Error - Wrong SSN";
    /// The peer has another request in progress.
    ALREADY_IN_PROGRESS = 4, "Error - Request already in progress";
    /// The sequence number of the request was not the next one.
    BAD_SEQUENCE_NUMBER = 5, "Error - Bad Sequence Number";
    /// The peer performs the request later. The sender repeats the request until it gets another result.
    IN_PROGRESS = 6, "In progress";
}

impl fmt::Display for ReconfigResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "result {}", self.0),
        }
    }
}

impl fmt::Debug for ReconfigResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReconfigResult({self})")
    }
}

pub(super) fn read(mut value: Reader<'_>) -> Result<Param<'_>, ParseError> {
    let (response, result) = (value.u32()?, ReconfigResult(value.u32()?));
    let next_tsns = match value.end() {
        Ok(()) => None,
        Err(_) => Some((Tsn::new(value.u32()?), Tsn::new(value.u32()?))),
    };
    value.end().map(|()| Param::ReconfigResponse { response, result, next_tsns })
}

pub(super) fn write(
    value: &mut Cursor<'_>,
    response: u32,
    result: ReconfigResult,
    next_tsns: Option<(Tsn, Tsn)>,
) -> Result<(), NoSpace> {
    value.u32(response)?;
    value.u32(result.0)?;
    let Some((sender, receiver)) = next_tsns else { return Ok(()) };
    value.u32(sender.get())?;
    value.u32(receiver.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ParseErrorKind;
    use crate::testing::{assert_param, param_error};

    #[test]
    fn layouts() {
        let value = [1, 2, 3, 4, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 9];
        let (response, result) = (0x0102_0304, ReconfigResult::IN_PROGRESS);
        assert_param(16, &value[..8], Param::ReconfigResponse { response, result, next_tsns: None });
        let next_tsns = Some((Tsn::new(8), Tsn::new(9)));
        assert_param(16, &value, Param::ReconfigResponse { response, result, next_tsns });
    }

    #[test]
    fn one_tsn_and_other_lengths_are_errors() {
        for len in (0..20).filter(|len| ![8, 16].contains(len)) {
            assert_eq!(param_error(16, &[0; 20][..len]), ParseErrorKind::WrongLength, "{len} bytes");
        }
    }

    #[test]
    fn known_and_unknown_results_have_a_name() {
        assert_eq!(ReconfigResult::DENIED.to_string(), "Denied");
        assert_eq!(format!("{:?}", ReconfigResult(9)), "ReconfigResult(result 9)");
    }
}
