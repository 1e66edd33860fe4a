//! Error causes of association setup (RFC 9260 sections 3.3.10.2 to 3.3.10.5, 3.3.10.7, 3.3.10.8 and 3.3.10.11).
//!
//! ```text
//!  | code = 2                      | length = 8 + 2 * N            |  missing mandatory parameter
//!  | N                                                             |
//!  | N times: a parameter type     | and so on                     |
//!
//!  | code = 3                      | length = 8                    |  stale cookie
//!  | measure of staleness in microseconds                          |
//!
//!  | code = 4                      | length = 4                    |  out of resource
//!
//!  | code = 5                      | length                        |  unresolvable address
//!  | an address parameter, its own header included                 |
//!
//!  | code = 7                      | length = 4                    |  invalid mandatory parameter
//!
//!  | code = 8                      | length                        |  unrecognized parameters
//!  | code = 11                     | length                        |  restart with new addresses
//!  | parameters, each but the last padded                          |
//! ```

use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::List;
use crate::param::ParamType;
use crate::reader::Reader;

pub(super) fn read_missing(mut info: Reader<'_>) -> Result<List<'_, ParamType>, ParseError> {
    let mismatch = info.error(ParseErrorKind::CountMismatch);
    let count = info.u32()?;
    let types = List::read(info.rest()).ok_or(mismatch)?;
    if usize::try_from(count) == Ok(types.len()) { Ok(types) } else { Err(mismatch) }
}

pub(super) fn write_missing(info: &mut Cursor<'_>, types: List<'_, ParamType>) -> Result<(), NoSpace> {
    info.u32(u32::try_from(types.len()).map_err(|_| NoSpace)?)?;
    info.items(types.iter()).map(drop)
}

pub(super) fn read_staleness(mut info: Reader<'_>) -> Result<u32, ParseError> {
    let staleness_us = info.u32()?;
    info.end().map(|()| staleness_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_cause, cause_error};
    use crate::{Cause, Param, ParamList};

    #[test]
    fn layouts() {
        let types = [ParamType::STATE_COOKIE, ParamType::IPV4_ADDRESS];
        assert_cause(2, &[0, 0, 0, 2, 0, 7, 0, 5], Cause::MissingParameter(List::new(&types)));
        assert_cause(3, &[0, 0, 1, 0], Cause::StaleCookie { staleness_us: 256 });
        assert_cause(4, &[], Cause::OutOfResource);
        assert_cause(5, &[0, 11, 0, 5, 0], Cause::UnresolvableAddress(&[0, 11, 0, 5, 0]));
        assert_cause(7, &[], Cause::InvalidParameter);
        let params = [Param::StateCookie(b"a"), Param::StateCookie(b"b")];
        let bytes = [0, 7, 0, 5, b'a', 0, 0, 0, 0, 7, 0, 5, b'b'];
        assert_cause(8, &bytes, Cause::UnrecognizedParameters(ParamList::new(&params)));
        assert_cause(11, &bytes, Cause::RestartWithNewAddresses(ParamList::new(&params)));
    }

    #[test]
    fn other_lengths_are_errors() {
        for (code, info) in [(2, &[0; 3][..]), (3, &[0; 3]), (3, &[0; 5]), (4, &[0]), (7, &[0; 4])] {
            assert_eq!(cause_error(code, info), ParseErrorKind::WrongLength);
        }
    }

    #[test]
    fn the_count_of_missing_parameters_has_to_match() {
        for info in
            [&[0, 0, 0, 1][..], &[0, 0, 0, 1, 0], &[0, 0, 0, 0, 0, 7], &[0xFF, 0xFF, 0xFF, 0xFF, 0, 7]]
        {
            assert_eq!(cause_error(2, info), ParseErrorKind::CountMismatch);
        }
    }
}
