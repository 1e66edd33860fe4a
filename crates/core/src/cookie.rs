//! State Cookie, which saves the memory of an association until the peer has proved its address (RFC 9260 section 5.1.3).
//!
//! The endpoint that answers an INIT keeps no state. The state travels to the peer in the INIT ACK and comes back in the COOKIE
//! ECHO, under a message authentication code that only this endpoint can compute. The code (HMAC-SHA256) covers every byte of the
//! cookie, so a changed cookie is refused. It also covers the local tag and the two ports. The packet with the cookie carries
//! these, so the cookie need not, and is short enough for an INIT ACK of at most three times the length of an INIT.
//!
//! Four bytes of a keyed hash over the same bytes precede the HMAC: the *screen*, which costs about a tenth of the HMAC. Forged
//! bytes pass it with probability 2^-32, so a flood of forged cookies costs hardly any HMACs and needs no limit. The hash is a
//! pseudorandom function (SipHash-2-4): genuine cookies do not help an attacker to compute the screen of another or a changed one.
//! The HMAC alone decides whether a cookie is genuine.

use crate::authentication::{AuthOffer, RANDOM_LEN};
use crate::entropy::Entropy;
use crate::protection::{ParameterBytes, ParameterPair, Transcript};
use crate::time::{Span, Time};
use anabranch_wire::Header;
use arrayvec::ArrayVec;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;
use std::net::IpAddr;
use thiserror::Error;

/// First byte of a cookie. A cookie of another layout is refused rather than misread.
const LAYOUT: u8 = 2;
/// Bit in the first byte: the cookie contains a UDP port.
const HAS_UDP_PORT: u8 = 0x80;
/// Bit in the first byte: the cookie contains Tie-Tags.
const HAS_TIE_TAGS: u8 = 0x40;
/// Bit in the first byte: the cookie contains the offers of both sides for protection.
const HAS_PARAMETERS: u8 = 0x10;
/// Bit in the first byte: the cookie contains the digest of the handshake.
const HAS_TRANSCRIPT: u8 = 0x08;
/// Bit in the first byte: the cookie contains the offers of both sides for authentication.
const HAS_OFFERS: u8 = 0x20;
/// Bit in the first byte: the cookie contains the high byte of the features. Few peers announce one of these.
const HAS_HIGH_FEATURES: u8 = 0x04;
/// Bits in the first byte that announce optional parts.
const OPTIONAL_PARTS: u8 =
    HAS_UDP_PORT | HAS_TIE_TAGS | HAS_OFFERS | HAS_PARAMETERS | HAS_TRANSCRIPT | HAS_HIGH_FEATURES;
/// Length in bytes of the HMAC-SHA256 at the end of a cookie: the minimum of RFC 2104 section 5.
const MAC_LEN: usize = 16;
/// Length of the screen in bytes. A screen of eight bytes would make the answer too long for the shortest INIT.
const SCREEN_LEN: usize = 4;
/// Number of zeros that pad a cookie whose answer need not be short. Padded cookies over IPv4 are as long as cookies that contain
/// all covered fields, which keeps the duration of simulated handshakes.
const FILLER: usize = 34;
/// Maximum number of listed addresses of an INIT in a cookie.
pub(crate) const MAX_PEER_ADDRESSES: usize = 8;

/// State that the endpoint needs between its INIT ACK and the peer's COOKIE ECHO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CookieBody {
    /// Verification tag of packets to this endpoint.
    pub(crate) local_tag: u32,
    /// Verification tag of packets to the peer.
    pub(crate) peer_tag: u32,
    /// Initial TSN of this endpoint.
    pub(crate) local_initial_tsn: u32,
    /// Initial TSN of the peer.
    pub(crate) peer_initial_tsn: u32,
    /// Receive window that the peer's INIT advertised.
    pub(crate) peer_a_rwnd: u32,
    /// SCTP port of this endpoint.
    pub(crate) local_port: u16,
    /// SCTP port of the peer.
    pub(crate) peer_port: u16,
    /// Number of streams on which this endpoint may send, after the negotiation.
    pub(crate) outbound_streams: u16,
    /// Number of streams on which the peer may send, after the negotiation.
    pub(crate) inbound_streams: u16,
    /// Tie-Tags of an existing association, local then peer; zeros if there was none (RFC 9260 section 5.2.2).
    pub(crate) tie_tags: (u32, u32),
    /// Source address of the INIT.
    pub(crate) peer_address: IpAddr,
    /// Source UDP port of the INIT, if it was encapsulated (RFC 6951).
    pub(crate) peer_udp_port: Option<u16>,
    /// Addresses that the INIT listed.
    pub(crate) peer_addresses: ArrayVec<IpAddr, MAX_PEER_ADDRESSES>,
    /// Extensions that the INIT announced, one bit each; the caller defines the bits.
    pub(crate) peer_features: u16,
    /// Offers of both sides for authentication, if they use it.
    pub(crate) authentication: Option<Offers>,
    /// Offers of both sides for protection, if they agree.
    pub(crate) protection: Option<ParameterPair>,
    /// Digest of the INIT and the INIT ACK, if both sides are to confirm it.
    pub(crate) transcript: Option<Transcript>,
}

/// Offers of both sides of a handshake for authentication (RFC 4895 section 6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Random number of the own INIT ACK.
    pub(crate) local_random: [u8; RANDOM_LEN],
    /// Offer of the INIT.
    pub(crate) peer: AuthOffer,
}

/// Genuine cookie of any age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenuineCookie {
    /// Sealed content.
    pub(crate) body: CookieBody,
    created: Time,
}

impl GenuineCookie {
    /// Returns the time at which the cookie was sealed.
    pub(crate) fn created(&self) -> Time {
        self.created
    }

    /// Returns the time by which the cookie has exceeded `lifetime`; `None` while it is valid.
    pub(crate) fn stale_by(&self, now: Time, lifetime: Span) -> Option<Span> {
        let by = now.since(self.created) - lifetime;
        (!by.is_zero()).then_some(by)
    }
}

/// Cookie that has passed the screen, and is therefore genuine except for a lucky guess.
#[derive(Clone, Copy)]
pub(crate) struct Screened<'a> {
    sealed: &'a [u8],
    seal: &'a [u8],
    header: Header,
    secret: &'a Hmac<Sha256>,
}

impl Screened<'_> {
    /// Returns the stated creation time and tag of the cookie, which distinguish it from all others.
    pub(crate) fn name(&self) -> (Time, u32) {
        let created = self.sealed.get(CREATED_AT..).and_then(|rest| rest.first_chunk());
        let created = Time::from_nanos(u64::from_be_bytes(*created.unwrap_or(&[0; 8])));
        (created, self.header.verification_tag)
    }

    /// Returns the content of the cookie, regardless of its age. RFC 9260 section 5.2.4 needs this: a cookie whose two tags are
    /// those of an existing association is valid even after its lifetime.
    pub(crate) fn open_at_any_age(&self) -> Result<GenuineCookie, CookieError> {
        // The comparison takes the same time independent of the position of a difference, so its duration reveals nothing.
        let mac = mac(self.secret, self.sealed, self.header);
        //= docs/rfc9260.txt#section-5.1.5
        //# If this comparison fails, the SCTP packet, including the COOKIE ECHO chunk and any DATA chunks, MUST be
        //# silently discarded.
        mac.verify_truncated_left(self.seal).map_err(|_| CookieError::BadMac)?;
        read_body(self.sealed, self.header).ok_or(CookieError::Malformed)
    }
}

/// Reason for which a cookie is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum CookieError {
    /// The cookie is shorter than any cookie of this endpoint.
    #[error("the cookie is too short")]
    TooShort,
    /// The cookie was not sealed with a current secret, or was changed.
    #[error("the cookie was not made here or has been changed")]
    BadMac,
    /// The cookie is genuine, but has an unknown layout.
    #[error("the cookie has an unknown layout")]
    Malformed,
}

/// Sealer of cookies, which also opens cookies that it sealed recently.
///
/// There are two secrets at any time. The current one seals; the previous one still opens, so that no handshake is lost because the
/// secret changed in the middle of it. The period between changes should therefore not be shorter than the lifetime of a cookie.
#[derive(Clone)]
pub(crate) struct CookieJar {
    current: Secret,
    previous: Secret,
    rotated: Time,
    period: Span,
    fills_up: bool,
}

impl CookieJar {
    /// Returns a jar with new secrets, which are replaced once per `period`. `fills_up` pads its cookies.
    pub(crate) fn new(now: Time, period: Span, fills_up: bool, entropy: &mut Entropy) -> Self {
        Self {
            current: Secret::fresh(entropy),
            previous: Secret::fresh(entropy),
            rotated: now,
            period,
            fills_up,
        }
    }

    /// Replaces the current secret if it has been in use for a period.
    ///
    /// RFC 9260 section 5.1.3 asks for a secret that changes reasonably often. After a long silence both secrets are replaced,
    /// because one that is two periods old must not open a cookie.
    //= docs/rfc9260.txt#section-5.1.3
    //# The secret key SHOULD be changed reasonably frequently (e.g., hourly), and the timestamp in the State Cookie MAY
    //# be used to determine which key is used to verify the MAC.
    pub(crate) fn rotate_if_due(&mut self, now: Time, entropy: &mut Entropy) {
        let age = now.since(self.rotated);
        if age < self.period {
            return;
        }
        self.previous =
            if age < self.period.times(2) { self.current.clone() } else { Secret::fresh(entropy) };
        self.current = Secret::fresh(entropy);
        self.rotated = now;
    }

    /// Appends the cookie for `body` to `out`.
    //= docs/rfc9260.txt#section-3.3.3.1.1
    //# Cookie: variable length This parameter value MUST contain all the necessary state and parameter information
    //# required for the sender of this INIT ACK chunk to create the association, along with a Message Authentication Code
    //# (MAC).
    pub(crate) fn seal(&self, now: Time, body: &CookieBody, out: &mut Vec<u8>) {
        let start = out.len();
        write_body(now, body, out);
        if self.fills_up {
            let carried = if body.tie_tags == (0, 0) { 0 } else { 8 };
            let carried = carried + usize::from(body.peer_features > u16::from(u8::MAX));
            let wider = if body.peer_address.is_ipv6() { 12 } else { 0 };
            out.resize(out.len() + FILLER + wider - carried, 0);
        }
        let header = Header {
            source_port: body.peer_port,
            destination_port: body.local_port,
            verification_tag: body.local_tag,
        };
        let sealed = out.get(start..).unwrap_or_default();
        //= docs/rfc9260.txt#section-5.1.3
        //# Inside this State Cookie, the sender MUST include a MAC (see [RFC2104] for an example) to provide integrity
        //# protection on the State Cookie.
        let mac = mac(&self.current.mac, sealed, header).finalize().into_bytes();
        let screen = self.current.screen(sealed, header);
        out.extend_from_slice(&screen);
        out.extend(mac.iter().take(MAC_LEN));
    }

    /// Checks the screen of a cookie, at a small part of the cost of its HMAC. `header` is that of its packet.
    pub(crate) fn screen<'a>(&'a self, bytes: &'a [u8], header: Header) -> Result<Screened<'a>, CookieError> {
        let at = bytes.len().checked_sub(MAC_LEN + SCREEN_LEN).ok_or(CookieError::TooShort)?;
        let (sealed, rest) = bytes.split_at_checked(at).ok_or(CookieError::TooShort)?;
        let (screen, seal) = rest.split_at_checked(SCREEN_LEN).ok_or(CookieError::TooShort)?;
        if sealed.len() < SHORTEST_BODY {
            return Err(CookieError::TooShort);
        }
        let made_with = |secret: &&Secret| secret.screen(sealed, header) == screen;
        let secret = [&self.current, &self.previous].into_iter().find(made_with);
        //= docs/rfc9260.txt#section-5.1.5
        //# If secrets are kept only for a limited amount of time and the secret key to use is not available anymore, the
        //# packet containing the COOKIE ECHO chunk MUST be silently discarded.
        let secret = &secret.ok_or(CookieError::BadMac)?.mac;
        Ok(Screened { sealed, seal, header, secret })
    }
}

/// Omits the secrets.
impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieJar")
            .field("rotated", &self.rotated)
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}

/// Keys with which cookies are sealed for a period.
#[derive(Clone)]
struct Secret {
    /// HMAC with a random key, cloned for each cookie.
    mac: Hmac<Sha256>,
    /// Hash whose key is the HMAC of a fixed text, so that no further random number is drawn for it.
    screen: SipHasher24,
}

impl Secret {
    //= docs/rfc9260.txt#section-5.1.3
    //# The secret key SHOULD be random ([RFC4086] provides some information on randomness guidelines).
    //= docs/rfc9260.txt#section-14.1
    //# This SHOULD be a cryptographic quality random number with a sufficient length.
    fn fresh(entropy: &mut Entropy) -> Self {
        // A key of exactly one block is used as it is, so construction from this type cannot fail.
        let mut key = [0; 64];
        entropy.fill(&mut key);
        let mac: Hmac<Sha256> = Hmac::new(&key.into());
        let derived = mac.clone().chain_update(b"anabranch cookie screen 1").finalize().into_bytes();
        let mut key = [0; 16];
        key.iter_mut().zip(derived).for_each(|(to, from)| *to = from);
        Secret { mac, screen: SipHasher24::new_with_key(&key) }
    }

    /// Returns the screen over the bytes that the HMAC covers.
    fn screen(&self, sealed: &[u8], header: Header) -> [u8; SCREEN_LEN] {
        let Header { source_port, destination_port, verification_tag } = header;
        let mut hash = self.screen;
        hash.write(sealed);
        hash.write(&verification_tag.to_be_bytes());
        hash.write(&source_port.to_be_bytes());
        hash.write(&destination_port.to_be_bytes());
        ((hash.finish() >> 32) as u32).to_be_bytes()
    }
}

/// Returns the HMAC over a cookie's content, the local tag, and both ports.
//= docs/rfc9260.txt#section-5.1.3
//# A MAC with acceptable security properties SHOULD be used.
fn mac(secret: &Hmac<Sha256>, sealed: &[u8], header: Header) -> Hmac<Sha256> {
    let Header { source_port, destination_port, verification_tag } = header;
    //= docs/rfc9260.txt#section-5.1.5
    //# If these values do not match, the packet MUST be silently discarded.
    let covered = secret.clone().chain_update(sealed).chain_update(verification_tag.to_be_bytes());
    covered.chain_update(source_port.to_be_bytes()).chain_update(destination_port.to_be_bytes())
}

/// Layout, features, creation time, four 32-bit numbers, two 16-bit numbers, an IPv4 address with its family byte, and the count of
/// further addresses.
const SHORTEST_BODY: usize = 1 + 1 + 8 + 4 * 4 + 2 * 2 + 5 + 1;

/// Offset of the creation time.
const CREATED_AT: usize = 2;

/// Family byte of an IPv4 address.
const IPV4: u8 = 4;
/// Family byte of an IPv6 address.
const IPV6: u8 = 6;

/// Appends the content of a cookie, integers in network byte order.
//= docs/rfc9260.txt#section-5.1.3
//# If the State Cookie is not encrypted, it MUST NOT contain information that is not being envisioned to be shared.
fn write_body(created: Time, body: &CookieBody, out: &mut Vec<u8>) {
    let (local_tie, peer_tie) = body.tie_tags;
    let tied = body.tie_tags != (0, 0);
    //= docs/rfc9260.txt#section-3.3.11
    //# An implementation SHOULD make the cookie as small as possible to ensure interoperability.
    //= docs/rfc9260.txt#section-5.1.3
    //# An implementation SHOULD make the cookie as small as possible to ensure interoperability.
    let mut layout = LAYOUT;
    layout |= if body.peer_udp_port.is_some() { HAS_UDP_PORT } else { 0 };
    layout |= if tied { HAS_TIE_TAGS } else { 0 };
    layout |= if body.authentication.is_some() { HAS_OFFERS } else { 0 };
    layout |= if body.protection.is_some() { HAS_PARAMETERS } else { 0 };
    layout |= if body.transcript.is_some() { HAS_TRANSCRIPT } else { 0 };
    let [high_features, features] = body.peer_features.to_be_bytes();
    layout |= if high_features != 0 { HAS_HIGH_FEATURES } else { 0 };
    out.extend_from_slice(&[layout, features]);
    //= docs/rfc9260.txt#section-5.1.3
    //# The State Cookie SHOULD also contain a timestamp on when the State Cookie is created and the lifespan of the State
    //# Cookie, along with all the information necessary for it to establish the association, including the port numbers
    //# and the Verification Tags.
    out.extend_from_slice(&created.as_nanos().to_be_bytes());
    for number in [body.peer_tag, body.local_initial_tsn, body.peer_initial_tsn, body.peer_a_rwnd] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    for tie in [local_tie, peer_tie].into_iter().filter(|_| tied) {
        out.extend_from_slice(&tie.to_be_bytes());
    }
    for number in [body.outbound_streams, body.inbound_streams] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend((high_features != 0).then_some(high_features));
    out.extend(body.peer_udp_port.iter().flat_map(|port| port.to_be_bytes()));
    write_address(body.peer_address, out);
    out.push(body.peer_addresses.len() as u8);
    for &address in &body.peer_addresses {
        write_address(address, out);
    }
    if let Some(offers) = &body.authentication {
        out.extend_from_slice(&offers.local_random);
        offers.peer.seal(out);
    }
    for parameter in body.protection.iter().flat_map(|pair| [&pair.local, &pair.peer]) {
        out.push(parameter.len() as u8);
        out.extend_from_slice(parameter);
    }
    out.extend(body.transcript.iter().flatten());
}

/// Appends the family byte and the address.
fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(v4) => {
            out.push(IPV4);
            out.extend_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.push(IPV6);
            out.extend_from_slice(&v6.octets());
        }
    }
}

/// Reads the content that [`write_body`] wrote, with the fields of the packet's header; `None` for all other bytes.
fn read_body(bytes: &[u8], header: Header) -> Option<GenuineCookie> {
    let mut rest = Reader(bytes);
    let layout = rest.u8()?;
    if layout & !OPTIONAL_PARTS != LAYOUT {
        return None;
    }
    let features = rest.u8()?;
    let created = Time::from_nanos(u64::from_be_bytes(rest.take()?));
    // The fields of a struct expression are evaluated in the order in which they are written.
    let mut body = CookieBody {
        local_tag: header.verification_tag,
        local_port: header.destination_port,
        peer_port: header.source_port,
        peer_tag: rest.u32()?,
        local_initial_tsn: rest.u32()?,
        peer_initial_tsn: rest.u32()?,
        peer_a_rwnd: rest.u32()?,
        tie_tags: if layout & HAS_TIE_TAGS == 0 { (0, 0) } else { (rest.u32()?, rest.u32()?) },
        outbound_streams: rest.u16()?,
        inbound_streams: rest.u16()?,
        peer_features: u16::from_be_bytes([
            if layout & HAS_HIGH_FEATURES == 0 { 0 } else { rest.u8()? },
            features,
        ]),
        peer_udp_port: if layout & HAS_UDP_PORT == 0 { None } else { Some(rest.u16()?) },
        peer_address: rest.address()?,
        peer_addresses: ArrayVec::new(),
        authentication: None,
        protection: None,
        transcript: None,
    };
    for _ in 0..rest.u8()? {
        body.peer_addresses.try_push(rest.address()?).ok()?;
    }
    if layout & HAS_OFFERS != 0 {
        let local_random = rest.take()?;
        body.authentication = Some(Offers { local_random, peer: AuthOffer::open(&mut rest.0)? });
    }
    if layout & HAS_PARAMETERS != 0 {
        body.protection = Some(ParameterPair { local: rest.parameter()?, peer: rest.parameter()? });
    }
    if layout & HAS_TRANSCRIPT != 0 {
        body.transcript = Some(rest.take()?);
    }
    rest.0.iter().all(|&byte| byte == 0).then_some(GenuineCookie { body, created })
}

/// Bytes that are not yet read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn parameter(&mut self) -> Option<ParameterBytes> {
        let len = usize::from(self.u8()?);
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        bytes.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            IPV4 => self.take::<4>().map(IpAddr::from),
            IPV6 => self.take::<16>().map(IpAddr::from),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reason for which the cookie of an unknown peer is refused.
    #[derive(Debug, PartialEq)]
    enum Refused {
        Not(CookieError),
        Stale { by: Span },
    }

    impl CookieJar {
        fn open_at_any_age(&self, bytes: &[u8], header: Header) -> Result<GenuineCookie, CookieError> {
            self.screen(bytes, header)?.open_at_any_age()
        }

        /// Opens the cookie of an unknown peer as the endpoint does: first authentication, then age (RFC 9260 section 5.1.5).
        fn open(&self, now: Time, lifetime: Span, bytes: &[u8]) -> Result<CookieBody, Refused> {
            let cookie = self.open_at_any_age(bytes, HEADER).map_err(Refused::Not)?;
            match cookie.stale_by(now, lifetime) {
                Some(by) => Err(Refused::Stale { by }),
                None => Ok(cookie.body),
            }
        }
    }

    use proptest::prelude::*;

    /// Header of the packets that carry these cookies.
    const HEADER: Header = Header { source_port: 6, destination_port: 5, verification_tag: 1 };
    const PERIOD: Span = Span::from_secs(600);
    const LIFETIME: Span = Span::from_secs(60);

    fn jar(now: Time) -> (CookieJar, Entropy) {
        let mut entropy = Entropy::new([5; 32]);
        (CookieJar::new(now, PERIOD, false, &mut entropy), entropy)
    }

    fn sample() -> CookieBody {
        CookieBody {
            local_tag: 1,
            peer_tag: 2,
            local_initial_tsn: 3,
            peer_initial_tsn: 4,
            peer_a_rwnd: 65_536,
            local_port: 5,
            peer_port: 6,
            outbound_streams: 7,
            inbound_streams: 8,
            tie_tags: (0, 0),
            peer_address: IpAddr::from([192, 0, 2, 2]),
            peer_udp_port: None,
            peer_addresses: ArrayVec::new(),
            peer_features: 0b11,
            authentication: None,
            protection: None,
            transcript: None,
        }
    }

    fn sealed(jar: &CookieJar, now: Time, body: &CookieBody) -> Vec<u8> {
        let mut bytes = Vec::new();
        jar.seal(now, body, &mut bytes);
        bytes
    }

    #[test]
    fn the_shortest_cookie_has_the_length_below_which_all_are_refused() {
        let (jar, _) = jar(Time::ZERO);
        let bytes = sealed(&jar, Time::ZERO, &sample());
        assert_eq!(bytes.len(), SHORTEST_BODY + SCREEN_LEN + MAC_LEN);
        let shorter = &bytes[1..];
        assert_eq!(jar.open(Time::ZERO, LIFETIME, shorter), Err(Refused::Not(CookieError::TooShort)));
        assert_eq!(jar.open(Time::ZERO, LIFETIME, &[]), Err(Refused::Not(CookieError::TooShort)));
    }

    #[test]
    fn a_cookie_is_stale_from_the_first_nanosecond_after_its_lifetime() {
        let sealed_at = Time::from_nanos(1_000);
        let (jar, _) = jar(sealed_at);
        let bytes = sealed(&jar, sealed_at, &sample());
        let last = sealed_at + LIFETIME;
        assert_eq!(jar.open(last, LIFETIME, &bytes), Ok(sample()));
        let by = Span::from_nanos(1);
        assert_eq!(jar.open(last + by, LIFETIME, &bytes), Err(Refused::Stale { by }));
    }

    #[test]
    fn a_stale_cookie_can_still_be_read_with_its_age() {
        let sealed_at = Time::from_nanos(1_000);
        let (jar, _) = jar(sealed_at);
        let bytes = sealed(&jar, sealed_at, &sample());
        let cookie = jar.open_at_any_age(&bytes, HEADER).unwrap();
        assert_eq!((cookie.created(), &cookie.body), (sealed_at, &sample()));
        let late = sealed_at + LIFETIME + Span::from_micros(7);
        assert_eq!(cookie.stale_by(late, LIFETIME), Some(Span::from_micros(7)));
    }

    #[test]
    fn a_cookie_survives_one_change_of_the_secret_but_not_two() {
        let (mut jar, mut entropy) = jar(Time::ZERO);
        let bytes = sealed(&jar, Time::ZERO, &sample());
        let lifetime = PERIOD.times(10);
        let first = Time::ZERO + PERIOD;
        jar.rotate_if_due(first, &mut entropy);
        assert_eq!(jar.open(first, lifetime, &bytes), Ok(sample()));
        let second = first + PERIOD;
        jar.rotate_if_due(second, &mut entropy);
        assert_eq!(jar.open(second, lifetime, &bytes), Err(Refused::Not(CookieError::BadMac)));
    }

    //= docs/rfc9260.txt#section-5.1.3
    //= type=test
    //# The secret key SHOULD be changed reasonably frequently (e.g., hourly), and the timestamp in the State Cookie MAY
    //# be used to determine which key is used to verify the MAC.
    #[test]
    fn the_secret_stays_until_its_period_is_over() {
        let (mut jar, mut entropy) = jar(Time::ZERO);
        let before = sealed(&jar, Time::ZERO, &sample());
        jar.rotate_if_due(Time::from_nanos(PERIOD.as_nanos() - 1), &mut entropy);
        assert_eq!(sealed(&jar, Time::ZERO, &sample()), before);
        jar.rotate_if_due(Time::ZERO + PERIOD, &mut entropy);
        assert_ne!(sealed(&jar, Time::ZERO, &sample()), before);
    }

    #[test]
    fn a_silence_of_two_periods_forgets_both_secrets() {
        let (mut jar, mut entropy) = jar(Time::ZERO);
        let bytes = sealed(&jar, Time::ZERO, &sample());
        let late = Time::ZERO + PERIOD.times(2);
        jar.rotate_if_due(late, &mut entropy);
        assert_eq!(jar.open(late, PERIOD.times(10), &bytes), Err(Refused::Not(CookieError::BadMac)));
    }

    #[test]
    fn another_layout_under_a_good_mac_is_malformed() {
        let (jar, _) = jar(Time::ZERO);
        let mut bytes = Vec::new();
        write_body(Time::ZERO, &sample(), &mut bytes);
        bytes[0] = LAYOUT + 1;
        let mac = mac(&jar.current.mac, &bytes, HEADER).finalize().into_bytes();
        let screen = jar.current.screen(&bytes, HEADER);
        bytes.extend_from_slice(&screen);
        bytes.extend_from_slice(&mac[..MAC_LEN]);
        assert_eq!(jar.open(Time::ZERO, LIFETIME, &bytes), Err(Refused::Not(CookieError::Malformed)));
    }

    #[test]
    fn changed_or_forged_cookie_costs_no_hmac() {
        let (jar, mut entropy) = jar(Time::ZERO);
        let good = sealed(&jar, Time::ZERO, &sample());
        assert!(jar.screen(&good, HEADER).is_ok());
        // A bit of a genuine cookie, or of its packet's header, is changed.
        let seal = good.len() - MAC_LEN;
        for bit in 0..8 * seal {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(jar.screen(&bad, HEADER).is_err(), "bit {bit}");
        }
        assert!(jar.screen(&good, Header { verification_tag: 2, ..HEADER }).is_err());
        assert!(jar.screen(&good, Header { source_port: 7, ..HEADER }).is_err());
        // Random bytes instead of a genuine cookie.
        let mut made_up = good.clone();
        for _ in 0..100_000 {
            entropy.fill(&mut made_up);
            assert!(jar.screen(&made_up, HEADER).is_err());
        }
    }

    #[test]
    fn cookie_with_a_guessed_screen_is_refused() {
        let (jar, _) = jar(Time::ZERO);
        let mut bytes = sealed(&jar, Time::ZERO, &sample());
        *bytes.last_mut().unwrap() ^= 1;
        assert!(jar.screen(&bytes, HEADER).is_ok(), "the screen does not cover the seal");
        assert_eq!(jar.open_at_any_age(&bytes, HEADER), Err(CookieError::BadMac));
    }

    #[test]
    fn a_cookie_is_named_by_its_time_and_tag_before_it_is_opened() {
        let at = Time::from_nanos(123_456_789);
        let (jar, _) = jar(at);
        let bytes = sealed(&jar, at, &sample());
        assert_eq!(jar.screen(&bytes, HEADER).unwrap().name(), (at, HEADER.verification_tag));
    }

    #[test]
    fn sealing_appends_and_covers_only_its_own_bytes() {
        let (jar, _) = jar(Time::ZERO);
        let mut bytes = b"before".to_vec();
        jar.seal(Time::ZERO, &sample(), &mut bytes);
        assert_eq!(jar.open(Time::ZERO, LIFETIME, &bytes[6..]), Ok(sample()));
    }

    prop_compose! {
        fn bodies()(
            numbers: [u32; 4],
            tie_tags: (u32, u32),
            shorts: [u16; 2],
            peer_address: IpAddr,
            peer_udp_port: Option<u16>,
            listed in prop::collection::vec(any::<IpAddr>(), 0..=MAX_PEER_ADDRESSES),
            peer_features: u16,
            randoms: Option<([u8; 32], [u8; 32])>,
            transcript: Option<[u8; 32]>,
        ) -> CookieBody {
            CookieBody {
                local_tag: HEADER.verification_tag,
                peer_tag: numbers[0],
                local_initial_tsn: numbers[1],
                peer_initial_tsn: numbers[2],
                peer_a_rwnd: numbers[3],
                local_port: HEADER.destination_port,
                peer_port: HEADER.source_port,
                outbound_streams: shorts[0],
                inbound_streams: shorts[1],
                tie_tags,
                peer_address,
                peer_udp_port,
                peer_addresses: listed.into_iter().collect(),
                peer_features,
                authentication: randoms.map(|(local_random, peer)| Offers { local_random, peer: AuthOffer::ours(peer) }),
                protection: None,
                transcript,
            }
        }
    }

    proptest! {
        //= docs/rfc9260.txt#section-3.3.3.1.1
        //= type=test
        //# Cookie: variable length This parameter value MUST contain all the necessary state and parameter information
        //# required for the sender of this INIT ACK chunk to create the association, along with a Message Authentication
        //# Code (MAC).
        //= docs/rfc9260.txt#section-5.1.3
        //= type=test
        //# The State Cookie SHOULD also contain a timestamp on when the State Cookie is created and the lifespan of the
        //# State Cookie, along with all the information necessary for it to establish the association, including the port
        //# numbers and the Verification Tags.
        #[test]
        fn sealed_cookie_can_be_opened(body in bodies(), at: u64, fills_up: bool) {
            let now = Time::from_nanos(at);
            let (mut jar, _) = jar(now);
            jar.fills_up = fills_up;
            prop_assert_eq!(jar.open(now, LIFETIME, &sealed(&jar, now, &body)), Ok(body));
        }

        //= docs/rfc9260.txt#section-5.1.3
        //= type=test
        //# Inside this State Cookie, the sender MUST include a MAC (see [RFC2104] for an example) to provide integrity
        //# protection on the State Cookie.
        #[test]
        fn a_change_of_any_byte_is_refused(body in bodies(), mask in 1_u8..) {
            let (jar, _) = jar(Time::ZERO);
            let good = sealed(&jar, Time::ZERO, &body);
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= mask;
                prop_assert_eq!(jar.open(Time::ZERO, LIFETIME, &bad), Err(Refused::Not(CookieError::BadMac)));
            }
        }

        #[test]
        fn a_cookie_cut_short_anywhere_is_refused(body in bodies()) {
            let (jar, _) = jar(Time::ZERO);
            let good = sealed(&jar, Time::ZERO, &body);
            for len in 0..good.len() {
                prop_assert!(jar.open(Time::ZERO, LIFETIME, &good[..len]).is_err());
            }
        }

        #[test]
        fn a_cookie_in_a_packet_of_another_tag_or_port_is_refused(body in bodies(), bit in 0..64_u32) {
            let (jar, _) = jar(Time::ZERO);
            let good = sealed(&jar, Time::ZERO, &body);
            let other = Header {
                source_port: HEADER.source_port ^ (1_u64 << bit) as u16,
                destination_port: HEADER.destination_port ^ ((1_u64 << bit) >> 16) as u16,
                verification_tag: HEADER.verification_tag ^ ((1_u64 << bit) >> 32) as u32,
            };
            prop_assert_eq!(jar.open_at_any_age(&good, other), Err(CookieError::BadMac));
        }

        #[test]
        fn padded_cookies_differ_by_the_length_of_addresses(body in bodies()) {
            let (mut jar, _) = jar(Time::ZERO);
            jar.fills_up = true;
            let address = |address: &IpAddr| if address.is_ipv4() { 5 } else { 17 };
            let listed: usize = body.peer_addresses.iter().map(address).sum();
            let port = if body.peer_udp_port.is_some() { 2 } else { 0 };
            // Two random numbers, two chunk types and two HMACs, with their counts.
            let offers = if body.authentication.is_some() { 2 * 32 + 1 + 2 + 1 + 4 } else { 0 };
            let transcript = if body.transcript.is_some() { 32 } else { 0 };
            let expected = 80 + 2 * address(&body.peer_address) + port + listed + offers + transcript;
            prop_assert_eq!(sealed(&jar, Time::ZERO, &body).len(), expected);
        }

        #[test]
        fn bytes_of_other_origin_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (jar, _) = jar(Time::ZERO);
            prop_assert!(jar.open(Time::ZERO, LIFETIME, &bytes).is_err());
        }

        #[test]
        fn reading_a_body_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = LAYOUT;
            }
            let _ = read_body(&bytes, HEADER);
        }
    }
}
