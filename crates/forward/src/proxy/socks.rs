//! SOCKS5 (RFC 1928), without authentication.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Parsed;
use crate::failure::Failure;
use crate::message::{IPV4, IPV6, NAME, put_address, put_target};
use crate::target::{Target, TargetHost};

/// First byte of a message.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xFF;
const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;

/// Request of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Connect to the target.
    Connect(Target),
    /// Forward datagrams until the connection ends.
    Associate,
}

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

/// Reads a request.
pub(super) fn read_request(bytes: &[u8]) -> Result<Parsed<Request>, Refused> {
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
    if !matches!(*command, CONNECT | UDP_ASSOCIATE) {
        return Err(Refused(reply_with(COMMAND_NOT_SUPPORTED)));
    }
    let Some((host, length)) = read_host(*kind, rest)? else { return Ok(Parsed::Incomplete) };
    let Some([high, low]) = rest.get(length..length + 2) else { return Ok(Parsed::Incomplete) };
    let request = match (*command, u16::from_be_bytes([*high, *low])) {
        // The address from which the program will send need not be known yet.
        (UDP_ASSOCIATE, _) => Request::Associate,
        (_, 0) => return Err(malformed()),
        (_, port) => Request::Connect(Target { host, port }),
    };
    Ok(Parsed::Done(request, 4 + length + 2))
}

/// Reads the header of a datagram. Returns its target, and the position of its content. Fragments are not supported.
pub(super) fn read_datagram(bytes: &[u8]) -> Option<(Target, usize)> {
    let [0, 0, 0, kind, rest @ ..] = bytes else { return None };
    let (host, length) = read_host(*kind, rest).ok().flatten()?;
    let port = rest.get(length..length + 2)?.try_into().map(u16::from_be_bytes).ok()?;
    (port > 0).then_some((Target { host, port }, 4 + length + 2))
}

/// Returns a datagram with the header for its source.
pub(super) fn datagram_from(source: &Target, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0];
    put_target(&mut bytes, source);
    bytes.extend(payload);
    bytes
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
    reply_at(code, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
}

fn reply_at(code: u8, address: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![VERSION, code, 0];
    put_address(&mut bytes, address.ip());
    bytes.extend(address.port().to_be_bytes());
    bytes
}

/// Returns the reply with the address to which the program sends datagrams.
pub(super) fn associated(address: SocketAddr) -> Vec<u8> {
    reply_at(0, address)
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
            assert_eq!(read_request(&longer), Ok(Parsed::Done(Request::Connect(target), bytes.len())));
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
    fn request_to_associate_may_name_no_port() {
        let request = b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00";
        assert_eq!(read_request(request), Ok(Parsed::Done(Request::Associate, request.len())));
        let address = "127.0.0.1:258".parse().expect("an address");
        assert_eq!(associated(address), b"\x05\x00\x00\x01\x7f\x00\x00\x01\x01\x02");
    }

    #[test]
    fn datagrams_are_read_as_they_were_written_and_fragments_are_dropped() {
        for text in ["192.0.2.1:53", "[2001:db8::1]:53", "example.org:53"] {
            let peer: Target = text.parse().expect(text);
            let bytes = datagram_from(&peer, b"data");
            assert_eq!(read_datagram(&bytes), Some((peer.clone(), bytes.len() - 4)));
            for length in 0..bytes.len() - 4 {
                assert_eq!(read_datagram(&bytes[..length]), None, "{length}");
            }
            assert_eq!(read_datagram(&[&[0, 0, 1], &bytes[3..]].concat()), None);
        }
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
