//! Address parameters (RFC 9260 sections 3.3.2.1.1, 3.3.2.1.2, 3.3.2.1.4 and 3.3.2.1.5).
//!
//! ```text
//!  | type = 5                      | length = 8                    |  IPv4
//!  | address: 4 bytes                                              |
//!
//!  | type = 6                      | length = 20                   |  IPv6
//!  | address: 16 bytes                                             |
//!
//!  | type = 11                     | length                        |  host name, no longer in use
//!  | name with a zero byte at its end                              |
//!
//!  | type = 12                     | length = 4 + 2 * types        |  supported address types
//!  | 5 or 6                        | and so on                     |
//! ```

use crate::error::ParseError;
use crate::reader::Reader;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) fn read_ipv4(mut value: Reader<'_>) -> Result<Ipv4Addr, ParseError> {
    let octets: [u8; 4] = value.bytes()?;
    value.end().map(|()| octets.into())
}

pub(super) fn read_ipv6(mut value: Reader<'_>) -> Result<Ipv6Addr, ParseError> {
    let octets: [u8; 16] = value.bytes()?;
    value.end().map(|()| octets.into())
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_param, param_error};
    use crate::{List, Param, ParamType, ParseErrorKind};

    #[test]
    fn layouts() {
        assert_param(5, &[192, 0, 2, 1], Param::Ipv4Address([192, 0, 2, 1].into()));
        let v6 = [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_param(6, &v6, Param::Ipv6Address(v6.into()));
        assert_param(11, b"host\0", Param::HostNameAddress(b"host\0"));
        let types = [ParamType::IPV4_ADDRESS, ParamType::IPV6_ADDRESS];
        assert_param(12, &[0, 5, 0, 6], Param::SupportedAddressTypes(List::new(&types)));
    }

    #[test]
    fn other_lengths_are_errors() {
        for len in (0..20).filter(|&len| len != 4) {
            assert_eq!(param_error(5, &[0; 20][..len]), ParseErrorKind::WrongLength);
        }
        for len in (0..20).filter(|&len| len != 16) {
            assert_eq!(param_error(6, &[0; 20][..len]), ParseErrorKind::WrongLength);
        }
        assert_eq!(param_error(12, &[0, 5, 0]), ParseErrorKind::WrongLength);
    }
}
