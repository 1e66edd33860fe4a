//! SOCKS5 (RFC 1928), without authentication.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Parsed;
use crate::failure::Failure;
use crate::target::{Target, TargetHost};

/// First byte of a message.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xFF;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Error in a message, with the reply that the program gets before the connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Vec<u8>);

/// Reads the authentication methods that the program offers, and returns the reply.
pub(super) fn read_methods(bytes: &[u8]) -> Result<Parsed<Vec<u8>>, Refused> {
    let (version, count) = match bytes {
        [] | [VERSION] => return Ok(Parsed::Incomplete),
        [version, count, ..] => (*version, usize::from(*count)),
        [version] => (*version, 0),
    };
    if version != VERSION {
        return Err(Refused(Vec::new()));
    }
    match bytes.get(2..2 + count) {
        None => Ok(Parsed::Incomplete),
        Some(methods) if methods.contains(&NO_AUTHENTICATION) => {
            Ok(Parsed::Done(vec![VERSION, NO_AUTHENTICATION], 2 + count))
        }
        Some(_) => Err(Refused(vec![VERSION, NO_ACCEPTABLE_METHOD])),
    }
}

/// Reads a request to connect.
pub(super) fn read_request(bytes: &[u8]) -> Result<Parsed<Target>, Refused> {
    let malformed = || Refused(reply(Some(Failure::Malformed)));
    if let [version, ..] = bytes
        && *version != VERSION
    {
        return Err(malformed());
    }
    let [_, command, reserved, kind, rest @ ..] = bytes else { return Ok(Parsed::Incomplete) };
    if *reserved != 0 {
        return Err(malformed());
    }
    if *command != CONNECT {
        return Err(Refused(reply_with(COMMAND_NOT_SUPPORTED)));
    }
    let Some((host, length)) = read_host(*kind, rest)? else { return Ok(Parsed::Incomplete) };
    let Some([high, low]) = rest.get(length..length + 2) else { return Ok(Parsed::Incomplete) };
    let port = u16::from_be_bytes([*high, *low]);
    if port == 0 {
        return Err(malformed());
    }
    Ok(Parsed::Done(Target { host, port }, 4 + length + 2))
}

/// Reads a host of this type. Returns it with the number of its bytes, or `None` if more bytes are needed.
fn read_host(kind: u8, bytes: &[u8]) -> Result<Option<(TargetHost, usize)>, Refused> {
    let address = |address: Option<IpAddr>, length| Ok(address.map(|ip| (TargetHost::address(ip), length)));
    match kind {
        IPV4 => address(bytes.first_chunk::<4>().map(|octets| IpAddr::from(*octets)), 4),
        IPV6 => address(bytes.first_chunk::<16>().map(|octets| IpAddr::from(*octets)), 16),
        NAME => {
            let Some((&length, rest)) = bytes.split_first() else { return Ok(None) };
            let Some(name) = rest.get(..usize::from(length)) else { return Ok(None) };
            // Some programs send an address as a name.
            let host = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            let host = host.ok_or_else(|| Refused(reply(Some(Failure::Malformed))))?;
            Ok(Some((host, 1 + usize::from(length))))
        }
        _ => Err(Refused(reply_with(ADDRESS_TYPE_NOT_SUPPORTED))),
    }
}

const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// Returns the reply to a request that has succeeded or failed.
pub(super) fn reply(failure: Option<Failure>) -> Vec<u8> {
    reply_with(match failure {
        None => 0,
        Some(Failure::Forbidden) => 2,
        Some(Failure::NoGateway) => 3,
        Some(Failure::Unreachable | Failure::NotResolved) => 4,
        Some(Failure::Refused) => 5,
        Some(Failure::TimedOut) => 6,
        Some(Failure::Limit | Failure::Malformed | Failure::Version | Failure::Exhausted) => 1,
    })
}

/// Returns a reply with this code. The address from which the gateway connects is not reported.
fn reply_with(code: u8) -> Vec<u8> {
    let unknown = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let mut bytes = vec![VERSION, code, 0, IPV4];
    bytes.extend([0; 4]);
    bytes.extend(unknown.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn method_without_authentication_is_selected() {
        assert_eq!(read_methods(b"\x05\x02\x02\x00rest"), Ok(Parsed::Done(vec![5, 0], 4)));
        for partial in [&b""[..], b"\x05", b"\x05\x02", b"\x05\x02\x00"] {
            assert_eq!(read_methods(partial), Ok(Parsed::Incomplete), "{partial:?}");
        }
        for refused in [&b"\x05\x01\x02"[..], b"\x05\x00"] {
            assert_eq!(read_methods(refused), Err(Refused(vec![5, 0xFF])));
        }
        assert_eq!(read_methods(b"\x04\x01\x00\x50"), Err(Refused(vec![])));
    }

    #[test]
    fn requests_to_connect_are_read_for_each_type_of_address() {
        let name = b"\x05\x01\x00\x03\x0bexample.org\x01\xbb";
        let v4 = b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50";
        let v6 = [&b"\x05\x01\x00\x04\x20\x01\x0d\xb8"[..], &[0; 11], &[1, 0, 22]].concat();
        for (bytes, expected) in
            [(&name[..], "example.org:443"), (v4, "192.0.2.1:80"), (&v6, "[2001:db8::1]:22")]
        {
            for length in 0..bytes.len() {
                assert_eq!(read_request(&bytes[..length]), Ok(Parsed::Incomplete), "{length}");
            }
            let target = expected.parse().expect("a target");
            let longer = [bytes, b"data"].concat();
            assert_eq!(read_request(&longer), Ok(Parsed::Done(target, bytes.len())));
        }
    }

    #[test]
    fn other_requests_are_refused_with_the_code_of_the_reason() {
        let code = |bytes: &[u8]| read_request(bytes).expect_err("refused").0[1];
        assert_eq!(code(b"\x05\x02\x00\x01"), 7, "BIND");
        assert_eq!(code(b"\x05\x01\x00\x02"), 8);
        assert_eq!(code(b"\x04\x01\x00\x01"), 1);
        assert_eq!(code(b"\x05\x01\x01\x01"), 1);
        assert_eq!(code(b"\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x00"), 1, "port 0");
        assert_eq!(code(b"\x05\x01\x00\x03\x02a/\x00\x50"), 1);
        assert_eq!(code(b"\x05\x01\x00\x03\x00\x00\x50"), 1);
    }

    #[test]
    fn each_failure_has_a_reply_of_the_standard() {
        assert_eq!(reply(None), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for failure in Failure::ALL {
            assert!((1..=8).contains(&reply(Some(failure))[1]));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Parsed::Done(_, length)) = read_methods(&bytes) {
                prop_assert!(length <= bytes.len());
            }
            if let Ok(Parsed::Done(_, length)) = read_request(&[b"\x05\x01\x00", &bytes[..]].concat()) {
                prop_assert!(length <= bytes.len() + 3);
            }
        }

        #[test]
        fn complete_greeting_of_any_methods_is_decided(methods in prop::collection::vec(any::<u8>(), 0..256)) {
            let bytes = [&[VERSION, methods.len() as u8][..], &methods].concat();
            prop_assert_ne!(read_methods(&bytes), Ok(Parsed::Incomplete));
        }
    }
}
