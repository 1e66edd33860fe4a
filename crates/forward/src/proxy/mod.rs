//! Proxy for local programs: SOCKS5 (RFC 1928) and HTTP CONNECT (RFC 9110 section 9.3.6) on one port.

mod associate;
mod http;
mod serve;
mod socks;

pub(crate) use serve::serve;

/// Result of reading the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<T> {
    /// More bytes are needed.
    Incomplete,
    /// The message, and its length in bytes.
    Done(T, usize),
}

/// Reads bytes by both parsers, for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let _ = (socks::read_methods(bytes), socks::read_request(bytes), http::read_request(bytes));
    let _ = socks::read_datagram(bytes);
}
