//! Parameters of ASCONF and ASCONF-ACK (RFC 5061 section 4.2).
//!
//! ```text
//!  | type = 0xC001                 | length                        |  add IP address
//!  | type = 0xC002                 | length                        |  delete IP address
//!  | type = 0xC004                 | length                        |  set primary address
//!  | correlation identifier                                        |
//!  | an address parameter, its own header included                 |
//!
//!  | type = 0xC003                 | length                        |  error cause indication
//!  | correlation identifier                                        |
//!  | error causes, their own headers included                      |
//!
//!  | type = 0xC005                 | length = 8                    |  success indication
//!  | correlation identifier                                        |
//! ```

use std::net::IpAddr;

use super::{Param, RawParam, address_param};
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::reader::Reader;

/// Reads a correlation identifier and an address parameter. Further bytes are an error.
pub(super) fn read_request(mut value: Reader<'_>) -> Result<(u32, IpAddr), ParseError> {
    let correlation = value.u32()?;
    let wrong = value.error(ParseErrorKind::WrongLength);
    let quoted = RawParam::parse(value.rest()).map_err(|error| error.shifted(value.offset()))?;
    if quoted.bytes().len() != value.rest().len() {
        return Err(wrong);
    }
    let address = quoted.decode().ok().and_then(|param| param.address()).ok_or(wrong)?;
    Ok((correlation, address))
}

pub(super) fn write_request(
    value: &mut Cursor<'_>,
    correlation: u32,
    address: IpAddr,
) -> Result<(), NoSpace> {
    value.u32(correlation)?;
    address_param(address).write(value)
}

pub(super) fn read_success(mut value: Reader<'_>) -> Result<u32, ParseError> {
    let correlation = value.u32()?;
    value.end().map(|()| correlation)
}

impl Param<'_> {
    /// Returns the address, or `None` if this is not an address parameter.
    pub const fn address(&self) -> Option<IpAddr> {
        match *self {
            Self::Ipv4Address(address) => Some(IpAddr::V4(address)),
            Self::Ipv6Address(address) => Some(IpAddr::V6(address)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_param, param_error};

    const QUOTED: [u8; 12] = [1, 2, 3, 4, 0, 5, 0, 8, 192, 0, 2, 1];

    #[test]
    fn layouts() {
        let (correlation, address) = (0x0102_0304, IpAddr::from([192, 0, 2, 1]));
        assert_param(0xC001, &QUOTED, Param::AddIp { correlation, address });
        assert_param(0xC002, &QUOTED, Param::DeleteIp { correlation, address });
        assert_param(0xC004, &QUOTED, Param::SetPrimary { correlation, address });
        assert_param(0xC005, &QUOTED[..4], Param::Success { correlation });
        let causes = &[0, 0xA0, 0, 4][..];
        assert_param(0xC003, &[&QUOTED[..4], causes].concat(), Param::ErrorCause { correlation, causes });
        let v6 = [&[1, 2, 3, 4, 0, 6, 0, 20][..], &[0; 16]].concat();
        let address = IpAddr::from([0; 16]);
        assert_param(0xC001, &v6, Param::AddIp { correlation, address });
    }

    #[test]
    fn other_lengths_are_errors() {
        for kind in [0xC001, 0xC002, 0xC004] {
            for len in 0..QUOTED.len() {
                let kind = param_error(kind, &QUOTED[..len]);
                assert_ne!(kind, ParseErrorKind::CountMismatch, "{len} bytes");
            }
            let longer = [&QUOTED[..], &[0]].concat();
            assert_eq!(param_error(kind, &longer), ParseErrorKind::WrongLength);
        }
        assert_eq!(param_error(0xC003, &[0; 3]), ParseErrorKind::WrongLength);
        assert_eq!(param_error(0xC005, &[0; 5]), ParseErrorKind::WrongLength);
    }

    #[test]
    fn quoted_parameter_must_be_an_address() {
        let cookie = [0, 0, 0, 1, 0, 7, 0, 8, 192, 0, 2, 1];
        assert_eq!(param_error(0xC001, &cookie), ParseErrorKind::WrongLength);
        let short = [0, 0, 0, 1, 0, 5, 0, 7, 192, 0, 2];
        assert_eq!(param_error(0xC001, &short), ParseErrorKind::WrongLength);
    }
}
