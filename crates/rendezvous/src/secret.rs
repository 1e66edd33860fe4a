//! Values that only one party can compute, from a seed.

use std::net::{IpAddr, SocketAddr};

use anabranch_core::Source;
use anabranch_core::time::{Span, Time};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::message::{Cookie, Nonce};

/// Time for which a cookie is valid.
const COOKIE_LIFETIME: Span = Span::from_secs(120);

/// Secret of one server or client.
#[derive(Clone)]
pub(crate) struct Secret {
    key: [u8; 32],
    drawn: u64,
}

impl Secret {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Secret { key: seed, drawn: 0 }
    }

    fn code(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is valid");
        mac.update(purpose);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Returns bytes that differ at each call. `N` is at most 32.
    pub(crate) fn draw<const N: usize>(&mut self) -> [u8; N] {
        self.drawn += 1;
        let code = self.code(b"drawn", &[&self.drawn.to_be_bytes()]);
        *code.first_chunk().expect("at most 32 bytes are drawn at a time")
    }

    /// Returns a number of a source that others cannot predict.
    pub(crate) fn hash(&self, source: Source) -> u32 {
        let code = match source {
            Source::V4(octets) => self.code(b"source", &[&octets]),
            Source::V6(prefix) => self.code(b"source", &[&prefix]),
        };
        u32::from_be_bytes([code[0], code[1], code[2], code[3]])
    }

    /// Returns the number of probes from a socket to an address.
    pub(crate) fn nonce(&self, socket: usize, remote: SocketAddr) -> Nonce {
        let socket = (socket as u64).to_be_bytes();
        let code = self.code(b"probe", &[&socket, &octets(remote), &remote.port().to_be_bytes()]);
        *code.first_chunk().expect("a code is longer")
    }

    /// Returns the cookie of an address.
    pub(crate) fn cookie(&self, now: Time, address: SocketAddr) -> Cookie {
        self.cookie_of(seconds(now), address)
    }

    /// Returns `true` if the cookie is that of the address and has not expired.
    pub(crate) fn accepts(&self, now: Time, address: SocketAddr, cookie: &Cookie) -> bool {
        let [a, b, c, d, ..] = *cookie;
        let made = u32::from_be_bytes([a, b, c, d]);
        let age = u64::from(seconds(now).wrapping_sub(made));
        Span::from_secs(age) <= COOKIE_LIFETIME && is_equal(&self.cookie_of(made, address), cookie)
    }

    fn cookie_of(&self, made: u32, address: SocketAddr) -> Cookie {
        let made = made.to_be_bytes();
        let code = self.code(b"cookie", &[&made, &octets(address), &address.port().to_be_bytes()]);
        let mut cookie = [0; 20];
        cookie[..4].copy_from_slice(&made);
        cookie[4..].copy_from_slice(&code[..16]);
        cookie
    }
}

fn octets(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn seconds(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

/// Compares in constant time.
pub(crate) fn is_equal<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    std::hint::black_box(one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b))) == 0
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_valid_for_its_address_and_time_only() {
        let secret = Secret::new([7; 32]);
        let address = SocketAddr::from(([192, 0, 2, 1], 1000));
        let made = Time::ZERO + Span::from_secs(1000);
        let cookie = secret.cookie(made, address);
        assert!(secret.accepts(made, address, &cookie));
        assert!(secret.accepts(made + Span::from_secs(119), address, &cookie));
        assert!(!secret.accepts(made + Span::from_secs(122), address, &cookie));
        assert!(!secret.accepts(Time::ZERO, address, &cookie), "it was made in the future");
        for other in ["192.0.2.1:1001", "192.0.2.2:1000"] {
            assert!(!secret.accepts(made, other.parse().expect("an address"), &cookie), "{other}");
        }
        for at in 0..cookie.len() {
            let mut changed = cookie;
            changed[at] ^= 1;
            assert!(!secret.accepts(made, address, &changed), "byte {at}");
        }
        assert!(!Secret::new([8; 32]).accepts(made, address, &cookie));
    }

    #[test]
    fn drawn_values_differ() {
        let mut secret = Secret::new([7; 32]);
        let drawn: [[u8; 16]; 3] = std::array::from_fn(|_| secret.draw());
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
    }
}
