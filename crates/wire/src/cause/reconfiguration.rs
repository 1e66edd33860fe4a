//! Error causes of address reconfiguration (RFC 5061 section 4.3) and AUTH (RFC 4895 section 3.4).
//!
//! ```text
//!  | code = 0xA0                   | length                        |  request to delete last remaining address
//!  | code = 0xA1                   | length                        |  refused for a shortage of resources
//!  | code = 0xA2                   | length                        |  request to delete source address
//!  | code = 0xA4                   | length                        |  refused, no authorization
//!  | the parameter of the ASCONF, its own header included          |
//!
//!  | code = 0xA3                   | length = 4                    |  aborted due to illegal ASCONF-ACK
//!
//!  | code = 0x0105                 | length = 6                    |  unsupported HMAC identifier
//!  | number of the HMAC            |
//! ```

use crate::error::ParseError;
use crate::reader::Reader;

pub(super) fn read_hmac(mut info: Reader<'_>) -> Result<u16, ParseError> {
    let hmac_id = info.u16()?;
    info.end().map(|()| hmac_id)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_cause, cause_error};
    use crate::{Cause, NoSpace, ParseErrorKind, RawCauses};

    #[test]
    fn layouts() {
        let quoted = &[0xC0, 2, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 1][..];
        assert_cause(0xA0, quoted, Cause::DeleteLastAddress(quoted));
        assert_cause(0xA1, quoted, Cause::ResourceShortage(quoted));
        assert_cause(0xA2, quoted, Cause::DeleteSourceAddress(quoted));
        assert_cause(0xA3, &[], Cause::IllegalAsconfAck);
        assert_cause(0xA4, quoted, Cause::NoAuthorization(quoted));
        assert_cause(0x105, &[1, 2], Cause::UnsupportedHmac { hmac_id: 0x0102 });
    }

    #[test]
    fn other_lengths_are_errors() {
        for (code, info) in [(0xA3, &[0; 4][..]), (0x105, &[0; 1]), (0x105, &[0; 4])] {
            assert_eq!(cause_error(code, info), ParseErrorKind::WrongLength);
        }
    }

    #[test]
    fn single_cause_equals_a_list_of_one() {
        let cause = Cause::UnsupportedHmac { hmac_id: 2 };
        let mut space = [0xEE; 8];
        let len = cause.put(&mut space).unwrap();
        assert_eq!(space[..len], [1, 5, 0, 6, 0, 2]);
        assert!(RawCauses::parse(&space[..len]).decoded().eq([Ok(cause)]));
        assert_eq!(cause.put(&mut space[..5]), Err(NoSpace));
    }
}
