//! Messages between the two sides and the server.
//!
//! Each datagram begins with two zero bytes. An SCTP packet begins with its source port, which is never zero (RFC 9260 section 3.1),
//! so both share a UDP socket. The next bytes are `RV`, the version and the type. Numbers are in network byte order.
//!
//! Requests to the server are padded to [`REQUEST_LEN`] bytes. All packets that a request causes are together no longer than the
//! request, so a forged source address gains nothing.

use std::net::{IpAddr, SocketAddr};

use anabranch_identity::{KeyPair, PublicKey};

/// First bytes of each message.
const PREFIX: [u8; 4] = [0, 0, b'R', b'V'];

/// Version of the protocol.
const VERSION: u8 = 1;

/// Length of prefix, version and type in bytes.
const HEADER_LEN: usize = 6;

/// Length of every request to the server in bytes.
pub const REQUEST_LEN: usize = 512;

/// Maximum number of addresses of one side.
pub const MAX_ADDRESSES: usize = 8;

/// Maximum length of a message to a client in bytes: an `Incoming` with all addresses.
const LONGEST_REPLY: usize = 299;

/// Beginning of the signed bytes, which separates these signatures from those of TLS.
const CONTEXT: &[u8] = b"anabranch rendezvous request\0";

/// Proof that a client receives at its address: a time and an authentication code over the address.
pub type Cookie = [u8; 20];
/// Number of a call, chosen at random by the caller.
pub type CallId = [u8; 16];
/// Secret with which one side joins a relay.
pub type Token = [u8; 16];
/// Ed25519 public key that was not checked yet.
pub type RawKey = [u8; 32];
/// Ed25519 signature.
pub type Signature = [u8; 64];
/// Number that an answer repeats.
pub(crate) type Nonce = [u8; 8];

/// Reason of the server for refusing a relay, or for ending one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// All relays are in use, or those of the caller's network.
    Full,
    /// The server relays nothing.
    Disabled,
    /// The relay has forwarded the maximum number of bytes.
    Bytes,
    /// The listener has no socket of the caller's IP version.
    NoCommonVersion,
}

/// Request with the proof of an address and the signature of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Cookie of the socket that sends it.
    pub cookie: Cookie,
    /// Key of the sender.
    pub key: RawKey,
    /// Content of the request.
    pub request: Request,
    /// Signature over all preceding bytes.
    pub signature: Signature,
}

/// Content of a signed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Registers the socket of a listener. All sockets of a process name the same random registration.
    Register {
        /// Number of the listener's process.
        registration: [u8; 16],
    },
    /// Asks for the addresses of a listener, and announces the socket of a caller.
    Call {
        /// Number of the call.
        call: CallId,
        /// Key of the listener.
        listener: RawKey,
    },
    /// Answers a call with the address of a listener's socket.
    Accept {
        /// Number of the call.
        call: CallId,
    },
    /// Asks for a relay between the sending socket and a socket of the listener.
    Relay {
        /// Number of the call.
        call: CallId,
        /// Number of the caller's socket.
        pair: u8,
    },
}

/// Message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Client to server: asks for a cookie.
    Hello {
        /// Number that the answer repeats.
        nonce: Nonce,
    },
    /// Server to client: cookie of the client's address, and the address as the server sees it.
    Challenge {
        /// Number of the question.
        nonce: Nonce,
        /// Cookie of the address.
        cookie: Cookie,
        /// Mapped address of the client.
        mapped: SocketAddr,
    },
    /// Client to server: signed request.
    Signed(Signed),
    /// Server to listener: the socket is registered.
    Registered {
        /// Number of the listener's process.
        registration: [u8; 16],
    },
    /// Server to listener: another process has registered with its key, and gets its calls.
    Superseded {
        /// Number of the listener's process, which others do not know.
        registration: [u8; 16],
    },
    /// Server to listener: a caller asks for its addresses.
    Incoming {
        /// Number of the listener's process, which others do not know.
        registration: [u8; 16],
        /// Number of the call.
        call: CallId,
        /// Key of the caller.
        caller: RawKey,
        /// Cookie of the request, which the signature covers.
        cookie: Cookie,
        /// Signature of the caller's request.
        signature: Signature,
        /// Mapped addresses of the caller.
        addresses: Vec<SocketAddr>,
    },
    /// Server to caller: addresses of the listener so far; none before it accepts.
    Calling {
        /// Number of the call.
        call: CallId,
        /// Mapped addresses of the listener.
        addresses: Vec<SocketAddr>,
    },
    /// Server to both sides: port of a relay, and the receiver's token.
    RelayOffer {
        /// Number of the call.
        call: CallId,
        /// Number of the caller's socket.
        pair: u8,
        /// UDP port of the relay at the server's address.
        port: u16,
        /// Token of the receiver.
        token: Token,
    },
    /// Server to both sides: there is no relay for this pair, or no longer.
    RelayRefused {
        /// Number of the call.
        call: CallId,
        /// Number of the caller's socket.
        pair: u8,
        /// Reason of the server.
        refusal: Refusal,
    },
    /// Client to a relay: binds the address to one side of the relay.
    Join {
        /// Token of the side.
        token: Token,
        /// Cookie of the address.
        cookie: Cookie,
    },
    /// Relay to client: packets are forwarded.
    Joined {
        /// Token of the side.
        token: Token,
    },
    /// One side to the other: opens a NAT and asks for an answer.
    Probe {
        /// Number of the call.
        call: CallId,
        /// Number that the answer repeats.
        nonce: Nonce,
    },
    /// Answer to a probe.
    ProbeReply {
        /// Number of the call.
        call: CallId,
        /// Number of the probe.
        nonce: Nonce,
    },
}

/// Error of a datagram that is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The datagram has another prefix, an unknown type, a wrong length or an impossible value.
    Malformed,
    /// The message has this other version.
    Version(u8),
}

/// Returns `true` if a datagram is a rendezvous message rather than an SCTP packet.
pub fn is_rendezvous(datagram: &[u8]) -> bool {
    datagram.starts_with(&PREFIX)
}

impl Request {
    fn kind(&self) -> u8 {
        match self {
            Request::Register { .. } => 3,
            Request::Call { .. } => 4,
            Request::Accept { .. } => 5,
            Request::Relay { .. } => 6,
        }
    }

    /// Signs the request.
    pub(crate) fn sign(self, cookie: Cookie, key: &KeyPair) -> Signed {
        let raw = key.public().to_raw();
        let signature = key.sign(&self.signed_bytes(&cookie, &raw));
        Signed { cookie, key: raw, request: self, signature }
    }

    fn signed_bytes(&self, cookie: &Cookie, key: &RawKey) -> Vec<u8> {
        let mut bytes = CONTEXT.to_vec();
        bytes.extend_from_slice(&[VERSION, self.kind()]);
        bytes.extend_from_slice(cookie);
        bytes.extend_from_slice(key);
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Request::Register { registration } => out.extend_from_slice(registration),
            Request::Call { call, listener } => {
                out.extend_from_slice(call);
                out.extend_from_slice(listener);
            }
            Request::Accept { call } => out.extend_from_slice(call),
            Request::Relay { call, pair } => {
                out.extend_from_slice(call);
                out.push(*pair);
            }
        }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            3 => Request::Register { registration: reader.take()? },
            4 => Request::Call { call: reader.take()?, listener: reader.take()? },
            5 => Request::Accept { call: reader.take()? },
            6 => Request::Relay { call: reader.take()?, pair: reader.pair()? },
            _ => return None,
        })
    }
}

impl Signed {
    /// Returns the sender's key if the signature is valid.
    pub(crate) fn verify(&self) -> Option<PublicKey> {
        let key = PublicKey::from_raw(self.key).ok()?;
        let bytes = self.request.signed_bytes(&self.cookie, &self.key);
        key.verifies(&bytes, &self.signature).then_some(key)
    }
}

impl Message {
    /// Parses a datagram.
    ///
    /// # Errors
    /// Returns [`ParseError`].
    pub fn parse(datagram: &[u8]) -> Result<Self, ParseError> {
        let rest = datagram.strip_prefix(&PREFIX).ok_or(ParseError::Malformed)?;
        let &[version, kind, ref body @ ..] = rest else { return Err(ParseError::Malformed) };
        if version != VERSION {
            return Err(ParseError::Version(version));
        }
        let mut reader = Reader(body);
        let message = Self::read(kind, &mut reader).ok_or(ParseError::Malformed)?;
        let is_padded = message.is_request() && datagram.len() == REQUEST_LEN;
        let ends = if message.is_request() {
            is_padded && reader.0.iter().all(|byte| *byte == 0)
        } else {
            reader.0.is_empty()
        };
        if ends { Ok(message) } else { Err(ParseError::Malformed) }
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            1 => Message::Hello { nonce: reader.take()? },
            2 => Message::Challenge {
                nonce: reader.take()?,
                cookie: reader.take()?,
                mapped: reader.address()?,
            },
            3..=6 => {
                let (cookie, key) = (reader.take()?, reader.take()?);
                let request = Request::read(kind, reader)?;
                Message::Signed(Signed { cookie, key, request, signature: reader.take()? })
            }
            7 => Message::Registered { registration: reader.take()? },
            8 => Message::Incoming {
                registration: reader.take()?,
                call: reader.take()?,
                caller: reader.take()?,
                cookie: reader.take()?,
                signature: reader.take()?,
                addresses: reader.addresses()?,
            },
            9 => Message::Calling { call: reader.take()?, addresses: reader.addresses()? },
            10 => Message::RelayOffer {
                call: reader.take()?,
                pair: reader.pair()?,
                port: reader.port()?,
                token: reader.take()?,
            },
            11 => Message::RelayRefused {
                call: reader.take()?,
                pair: reader.pair()?,
                refusal: reader.refusal()?,
            },
            12 => Message::Join { token: reader.take()?, cookie: reader.take()? },
            13 => Message::Joined { token: reader.take()? },
            14 => Message::Probe { call: reader.take()?, nonce: reader.take()? },
            15 => Message::ProbeReply { call: reader.take()?, nonce: reader.take()? },
            16 => Message::Superseded { registration: reader.take()? },
            _ => return None,
        })
    }

    fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => 1,
            Message::Challenge { .. } => 2,
            Message::Signed(signed) => signed.request.kind(),
            Message::Registered { .. } => 7,
            Message::Incoming { .. } => 8,
            Message::Calling { .. } => 9,
            Message::RelayOffer { .. } => 10,
            Message::RelayRefused { .. } => 11,
            Message::Join { .. } => 12,
            Message::Joined { .. } => 13,
            Message::Probe { .. } => 14,
            Message::ProbeReply { .. } => 15,
            Message::Superseded { .. } => 16,
        }
    }

    /// Returns `true` for messages to the server, which are padded.
    fn is_request(&self) -> bool {
        matches!(self, Message::Hello { .. } | Message::Signed(_) | Message::Join { .. })
    }

    /// Returns the datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(if self.is_request() { REQUEST_LEN } else { LONGEST_REPLY });
        out.extend_from_slice(&PREFIX);
        out.extend_from_slice(&[VERSION, self.kind()]);
        debug_assert_eq!(out.len(), HEADER_LEN);
        self.write(&mut out);
        if self.is_request() {
            out.resize(REQUEST_LEN, 0);
        }
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Hello { nonce } => out.extend_from_slice(nonce),
            Message::Challenge { nonce, cookie, mapped } => {
                out.extend_from_slice(nonce);
                out.extend_from_slice(cookie);
                write_address(out, *mapped);
            }
            Message::Signed(Signed { cookie, key, request, signature }) => {
                out.extend_from_slice(cookie);
                out.extend_from_slice(key);
                request.write(out);
                out.extend_from_slice(signature);
            }
            Message::Registered { registration } | Message::Superseded { registration } => {
                out.extend_from_slice(registration);
            }
            Message::Incoming { registration, call, caller, cookie, signature, addresses } => {
                out.extend_from_slice(registration);
                out.extend_from_slice(call);
                out.extend_from_slice(caller);
                out.extend_from_slice(cookie);
                out.extend_from_slice(signature);
                write_addresses(out, addresses);
            }
            Message::Calling { call, addresses } => {
                out.extend_from_slice(call);
                write_addresses(out, addresses);
            }
            Message::RelayOffer { call, pair, port, token } => {
                out.extend_from_slice(call);
                out.push(*pair);
                out.extend_from_slice(&port.to_be_bytes());
                out.extend_from_slice(token);
            }
            Message::RelayRefused { call, pair, refusal } => {
                out.extend_from_slice(call);
                out.extend_from_slice(&[*pair, refusal.code()]);
            }
            Message::Join { token, cookie } => {
                out.extend_from_slice(token);
                out.extend_from_slice(cookie);
            }
            Message::Joined { token } => out.extend_from_slice(token),
            Message::Probe { call, nonce } | Message::ProbeReply { call, nonce } => {
                out.extend_from_slice(call);
                out.extend_from_slice(nonce);
            }
        }
    }
}

impl Refusal {
    const ALL: [Refusal; 4] = [Refusal::Full, Refusal::Disabled, Refusal::Bytes, Refusal::NoCommonVersion];

    fn code(self) -> u8 {
        match self {
            Refusal::Full => 1,
            Refusal::Disabled => 2,
            Refusal::Bytes => 3,
            Refusal::NoCommonVersion => 4,
        }
    }
}

/// Returns the caller's request that an `Incoming` message reports, for the check of its signature.
pub(crate) fn reported_call(
    call: CallId,
    (caller, listener): (RawKey, RawKey),
    cookie: Cookie,
    signature: Signature,
) -> Signed {
    Signed { cookie, key: caller, request: Request::Call { call, listener }, signature }
}

fn write_address(out: &mut Vec<u8>, address: SocketAddr) {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    out.extend_from_slice(&ip.octets());
    out.extend_from_slice(&address.port().to_be_bytes());
}

/// Writes at most [`MAX_ADDRESSES`] addresses.
fn write_addresses(out: &mut Vec<u8>, addresses: &[SocketAddr]) {
    let addresses = &addresses[..addresses.len().min(MAX_ADDRESSES)];
    out.push(addresses.len() as u8);
    for address in addresses {
        write_address(out, *address);
    }
}

/// Reader of a message's fields.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn port(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes).filter(|port| *port != 0)
    }

    fn pair(&mut self) -> Option<u8> {
        self.take().map(|[pair]| pair).filter(|pair| usize::from(*pair) < MAX_ADDRESSES)
    }

    fn refusal(&mut self) -> Option<Refusal> {
        let [code] = self.take()?;
        Refusal::ALL.into_iter().find(|refusal| refusal.code() == code)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = IpAddr::from(self.take::<16>()?).to_canonical();
        let port = self.port()?;
        let is_host = match ip {
            IpAddr::V4(v4) => !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        };
        (is_host && !ip.is_unspecified() && !ip.is_multicast()).then(|| SocketAddr::new(ip, port))
    }

    fn addresses(&mut self) -> Option<Vec<SocketAddr>> {
        let [count] = self.take()?;
        let count = usize::from(count);
        if count > MAX_ADDRESSES {
            return None;
        }
        (0..count).map(|_| self.address()).collect()
    }
}

/// Fuzz target: a datagram is rejected, or its message has that one encoding.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        assert_eq!(message.to_bytes(), bytes);
        if let Message::Signed(signed) = message {
            let _ = signed.verify();
        }
    }
}

#[cfg(test)]
mod tests;
