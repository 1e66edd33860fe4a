//! HTTP CONNECT (RFC 9110 section 9.3.6).

use super::Parsed;
use crate::failure::Failure;
use crate::target::Target;

/// Maximum length of a request with its header fields, in bytes.
pub(super) const MAX_REQUEST_BYTES: usize = 8 << 10;

const END: &[u8] = b"\r\n\r\n";

/// Error in a request, with the response that the program gets before the connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Vec<u8>);

/// Reads a request to connect, with its header fields.
pub(super) fn read_request(bytes: &[u8]) -> Result<Parsed<Target>, Refused> {
    let malformed = || Refused(response(400, "Bad Request", "the request cannot be read"));
    let is_plain =
        |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x80..);
    let end = bytes.windows(END.len()).position(|window| window == END);
    let head = &bytes[..end.unwrap_or(bytes.len())];
    if !head.iter().all(is_plain) {
        return Err(malformed());
    }
    let Some(end) = end else {
        return if bytes.len() < MAX_REQUEST_BYTES { Ok(Parsed::Incomplete) } else { Err(malformed()) };
    };
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("CONNECT"), Some(target), Some("HTTP/1.0" | "HTTP/1.1"), None) => {
            let target = target.parse().map_err(|_| malformed())?;
            Ok(Parsed::Done(target, end + END.len()))
        }
        (Some(_), Some(_), Some("HTTP/1.0" | "HTTP/1.1"), None) => {
            let text =
                "this proxy only has the method CONNECT; use a SOCKS5 proxy at the same port for plain http";
            Err(Refused(response(405, "Method Not Allowed", text)))
        }
        _ => Err(malformed()),
    }
}

/// Returns the response to a request that has succeeded or failed.
pub(super) fn reply(failure: Option<Failure>) -> Vec<u8> {
    let Some(failure) = failure else { return b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec() };
    let (status, phrase) = match failure {
        Failure::Forbidden => (403, "Forbidden"),
        Failure::Malformed => (400, "Bad Request"),
        Failure::TimedOut => (504, "Gateway Timeout"),
        Failure::Limit | Failure::Exhausted | Failure::NoGateway => (503, "Service Unavailable"),
        Failure::Refused | Failure::Unreachable | Failure::NotResolved | Failure::Version => {
            (502, "Bad Gateway")
        }
    };
    response(status, phrase, &failure.to_string())
}

fn response(status: u16, phrase: &str, text: &str) -> Vec<u8> {
    let allow = if status == 405 { "Allow: CONNECT\r\n" } else { "" };
    let text = format!("anabranch: {text}\n");
    let length = text.len();
    format!(
        "HTTP/1.1 {status} {phrase}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(refused: Result<Parsed<Target>, Refused>) -> String {
        String::from_utf8(refused.expect_err("refused").0).expect("a text")[9..12].to_owned()
    }

    #[test]
    fn request_to_connect_is_read_with_its_header_fields() {
        let request =
            b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nUser-Agent: \xc3\xa9\r\n\r\n";
        for length in 0..request.len() {
            assert_eq!(read_request(&request[..length]), Ok(Parsed::Incomplete));
        }
        let target: Target = "example.org:443".parse().expect("a target");
        let longer = [&request[..], b"\0data"].concat();
        assert_eq!(read_request(&longer), Ok(Parsed::Done(target, request.len())));
        assert!(matches!(read_request(b"CONNECT [::1]:1 HTTP/1.0\r\n\r\n"), Ok(Parsed::Done(_, 28))));
    }

    #[test]
    fn other_requests_are_refused() {
        assert_eq!(status(read_request(b"GET http://a/ HTTP/1.1\r\n\r\n")), "405");
        assert_eq!(status(read_request(b"POST / HTTP/1.1\r\n\r\n")), "405");
        for bytes in [
            &b"CONNECT a HTTP/1.1\r\n\r\n"[..],
            b"CONNECT a:1 HTTP/2.0\r\n\r\n",
            b"CONNECT  a:1 HTTP/1.1\r\n\r\n",
            b"CONNECT a:1\r\n\r\n",
            b"\r\n\r\n",
            b"CONNECT a:1 HTTP/1.1\0",
        ] {
            assert_eq!(status(read_request(bytes)), "400", "{bytes:?}");
        }
        assert_eq!(status(read_request(&[b'a'; MAX_REQUEST_BYTES])), "400");
    }

    #[test]
    fn each_failure_has_a_response_with_its_text() {
        assert!(reply(None).starts_with(b"HTTP/1.1 200 "));
        for failure in Failure::ALL {
            let text = String::from_utf8(reply(Some(failure))).expect("a text");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            assert!(body.contains(&failure.to_string()), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&b"CONNECT "[..], &bytes, b"\r\n\r\n"].concat();
            if let Ok(Parsed::Done(_, length)) = read_request(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
