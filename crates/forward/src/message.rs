//! Messages of the protocol.
//!
//! The first message of a stream is a [`Request`], and the first message in the other direction is the [`Answer`]. If the answer is
//! [`Answer::Ready`], all further messages in both directions are the bytes of the connection. Unordered messages are [`Notice`]s.
//!
//! All numbers are big-endian. Requests and answers begin with the version, [`VERSION`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::failure::Failure;
use crate::listen_spec::{Bind, Listen};
use crate::target::{HostName, MAX_NAME_BYTES, Target, TargetHost};

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Maximum length of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 9 + MAX_NAME_BYTES;

/// Maximum length of the content of a datagram, in bytes: that of UDP over IPv4.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// First bytes of each notice, behind its type.
const MAGIC: [u8; 4] = *b"ANBF";

const CONNECT: u8 = 1;
const LISTEN: u8 = 2;
const INCOMING: u8 = 3;
const MEASURE: u8 = 4;
const CONNECT_FIRST: u8 = 5;

const READY: u8 = 0;

const PROBE: u8 = 1;
const PROBE_REPLY: u8 = 2;
const DATAGRAM: u8 = 3;

// Types of hosts are those of SOCKS5 (RFC 1928 section 5), and two of listeners.
const LOOPBACK: u8 = 0;
pub(crate) const IPV4: u8 = 1;
pub(crate) const NAME: u8 = 3;
pub(crate) const IPV6: u8 = 4;
const ALL: u8 = 5;

/// Bounds of a measurement in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureBounds {
    /// Maximum number of bytes.
    pub bytes: u32,
    /// Maximum time, at most 65 s.
    pub time: Duration,
}

/// First message of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Connect to this target.
    Connect(Target),
    /// Connect to this target, and send its bytes before those of other connections of the association.
    ConnectFirst(Target),
    /// Listen until this stream ends, and open a stream for each connection.
    Listen {
        /// Number that identifies the listener in [`Request::Incoming`].
        id: u32,
        /// Addresses and port.
        listen: Listen,
    },
    /// A connection to a listener of the peer.
    Incoming {
        /// Number of the listener.
        id: u32,
        /// Address from which the connection comes.
        from: SocketAddr,
    },
    /// Send bytes without meaning within these bounds, and discard those of the peer.
    Measure(MeasureBounds),
}

impl Request {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        match self {
            Request::Connect(target) => {
                bytes.push(CONNECT);
                put_target(&mut bytes, target);
            }
            Request::ConnectFirst(target) => {
                bytes.push(CONNECT_FIRST);
                put_target(&mut bytes, target);
            }
            Request::Listen { id, listen } => {
                bytes.push(LISTEN);
                bytes.extend(id.to_be_bytes());
                match listen.bind {
                    Bind::Loopback => bytes.push(LOOPBACK),
                    Bind::All => bytes.push(ALL),
                    Bind::Address(address) => put_address(&mut bytes, address),
                }
                bytes.extend(listen.port.to_be_bytes());
            }
            Request::Incoming { id, from } => {
                bytes.push(INCOMING);
                bytes.extend(id.to_be_bytes());
                put_address(&mut bytes, from.ip());
                bytes.extend(from.port().to_be_bytes());
            }
            Request::Measure(MeasureBounds { bytes: amount, time }) => {
                bytes.push(MEASURE);
                bytes.extend(amount.to_be_bytes());
                bytes.extend(u16::try_from(time.as_millis()).unwrap_or(u16::MAX).to_be_bytes());
            }
        }
        bytes
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// Returns [`Failure::Version`] or [`Failure::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Failure> {
        let mut reader = Reader(versioned(bytes)?);
        let request = reader.request().ok_or(Failure::Malformed)?;
        if reader.0.is_empty() { Ok(request) } else { Err(Failure::Malformed) }
    }
}

/// First message of a stream in the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The connection or the listener exists.
    Ready {
        /// Local port of the side that answers.
        port: u16,
    },
    /// There is no connection, and the stream ends.
    Failed(Failure),
}

impl Answer {
    /// Returns the bytes of the message.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Answer::Ready { port } => [&[VERSION, READY][..], &port.to_be_bytes()].concat(),
            Answer::Failed(failure) => vec![VERSION, failure.code()],
        }
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// Returns [`Failure::Version`] or [`Failure::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Failure> {
        match versioned(bytes)? {
            [READY, high, low] => Ok(Answer::Ready { port: u16::from_be_bytes([*high, *low]) }),
            [code] => Failure::from_code(*code).map(Answer::Failed).ok_or(Failure::Malformed),
            _ => Err(Failure::Malformed),
        }
    }
}

/// Unordered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Request for a [`Notice::ProbeReply`].
    Probe,
    /// Answer to a probe.
    ProbeReply {
        /// Random number of the process that answers. A gateway that was restarted has another one.
        instance: u64,
    },
    /// Datagram of a flow. It is sent with a lifetime, so that it does not arrive late.
    Datagram {
        /// Number of the flow, which the side of the program chooses.
        flow: u32,
        /// Destination of a datagram of the program, or source of one for it.
        peer: Target,
        /// Content of the datagram.
        payload: Vec<u8>,
    },
}

impl Notice {
    /// Returns the bytes of the message.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Notice::Probe => [&[PROBE][..], &MAGIC, &[VERSION]].concat(),
            Notice::ProbeReply { instance } => {
                [&[PROBE_REPLY][..], &MAGIC, &[VERSION], &instance.to_be_bytes()].concat()
            }
            Notice::Datagram { flow, peer, payload } => {
                let mut bytes = [&[DATAGRAM][..], &MAGIC, &[VERSION], &flow.to_be_bytes()].concat();
                put_target(&mut bytes, peer);
                bytes.extend(payload);
                bytes
            }
        }
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// Returns [`Failure::Version`] or [`Failure::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Failure> {
        let (&kind, rest) = bytes.split_first().ok_or(Failure::Malformed)?;
        let rest = versioned(rest.strip_prefix(&MAGIC).ok_or(Failure::Malformed)?)?;
        match (kind, rest) {
            (PROBE, []) => Ok(Notice::Probe),
            (PROBE_REPLY, instance) => {
                let instance = instance.try_into().map_err(|_| Failure::Malformed)?;
                Ok(Notice::ProbeReply { instance: u64::from_be_bytes(instance) })
            }
            (DATAGRAM, rest) => Reader(rest).datagram().ok_or(Failure::Malformed),
            _ => Err(Failure::Malformed),
        }
    }
}

/// Returns the bytes behind the version.
fn versioned(bytes: &[u8]) -> Result<&[u8], Failure> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some(_) => Err(Failure::Version),
        None => Err(Failure::Malformed),
    }
}

/// Appends the type and the octets of an address, as SOCKS5 does.
pub(crate) fn put_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(IPV4);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(IPV6);
            bytes.extend(address.octets());
        }
    }
}

/// Appends a target in the form of SOCKS5.
pub(crate) fn put_target(bytes: &mut Vec<u8>, target: &Target) {
    match &target.host {
        TargetHost::Address(address) => put_address(bytes, *address),
        TargetHost::Name(name) => {
            // The type bounds the name by `MAX_NAME_BYTES`.
            bytes.extend([NAME, name.as_str().len() as u8]);
            bytes.extend(name.as_str().as_bytes());
        }
    }
    bytes.extend(target.port.to_be_bytes());
}

/// Unread bytes of a message. Its methods return `None` if too few bytes follow, or if they have no meaning.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    fn port(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn id(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an address of this type. An IPv4 address has one form.
    fn address(&mut self, kind: u8) -> Option<IpAddr> {
        let address = match kind {
            IPV4 => IpAddr::from(self.array::<4>()?),
            IPV6 => IpAddr::from(self.array::<16>()?),
            _ => return None,
        };
        (address.to_canonical() == address).then_some(address)
    }

    fn target(&mut self) -> Option<Target> {
        let host = match self.byte()? {
            NAME => {
                let length = self.byte()?;
                let text = std::str::from_utf8(self.bytes(length.into())?).ok()?;
                let name: HostName = text.parse().ok()?;
                if name.as_str() != text {
                    return None;
                }
                TargetHost::Name(name)
            }
            kind => TargetHost::Address(self.address(kind)?),
        };
        let port = self.port().filter(|port| *port > 0)?;
        Some(Target { host, port })
    }

    fn listen(&mut self) -> Option<Listen> {
        let bind = match self.byte()? {
            LOOPBACK => Bind::Loopback,
            ALL => Bind::All,
            kind => Bind::Address(self.address(kind)?),
        };
        Some(Listen { bind, port: self.port()? })
    }

    fn datagram(&mut self) -> Option<Notice> {
        let (flow, peer) = (self.id()?, self.target()?);
        let payload = self.0.to_vec();
        (payload.len() <= MAX_DATAGRAM_BYTES).then_some(Notice::Datagram { flow, peer, payload })
    }

    fn request(&mut self) -> Option<Request> {
        match self.byte()? {
            CONNECT => Some(Request::Connect(self.target()?)),
            CONNECT_FIRST => Some(Request::ConnectFirst(self.target()?)),
            LISTEN => Some(Request::Listen { id: self.id()?, listen: self.listen()? }),
            INCOMING => {
                let (id, kind) = (self.id()?, self.byte()?);
                let address = self.address(kind)?;
                Some(Request::Incoming { id, from: SocketAddr::new(address, self.port()?) })
            }
            MEASURE => {
                let bytes = self.array().map(u32::from_be_bytes)?;
                let time = Duration::from_millis(self.array().map(u16::from_be_bytes)?.into());
                Some(Request::Measure(MeasureBounds { bytes, time }))
            }
            _ => None,
        }
    }
}

/// Decodes bytes by every decoder of a peer's bytes, for the fuzz target.
///
/// # Panics
/// Panics if a decoded message does not have these bytes.
#[cfg(any(test, feature = "fuzzing"))]
pub fn decode_all(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
        assert!(bytes.len() <= MAX_REQUEST_BYTES);
    }
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes);
    }
    if let Ok(notice) = Notice::decode(bytes) {
        assert_eq!(notice.encode(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests() -> Vec<Request> {
        let targets = ["example.org:443", "192.0.2.1:1", "[2001:db8::1]:65535"];
        let mut all: Vec<Request> =
            targets.iter().map(|text| Request::Connect(text.parse().expect(text))).collect();
        let first = targets.iter().map(|text| Request::ConnectFirst(text.parse().expect(text)));
        all.extend(first.collect::<Vec<_>>());
        for text in ["0", "*:1", "192.0.2.1:2", "[::1]:3"] {
            all.push(Request::Listen { id: 7, listen: text.parse().expect(text) });
        }
        for text in ["192.0.2.1:2", "[2001:db8::1]:0"] {
            all.push(Request::Incoming { id: u32::MAX, from: text.parse().expect(text) });
        }
        all.push(Request::Measure(MeasureBounds { bytes: 1 << 20, time: Duration::from_millis(1500) }));
        all
    }

    fn answers() -> Vec<Answer> {
        let failed = Failure::ALL.into_iter().map(Answer::Failed);
        failed.chain([Answer::Ready { port: 0x1234 }]).collect()
    }

    #[test]
    fn each_message_is_read_as_it_was_written() {
        for request in requests() {
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
        for answer in answers() {
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
        let datagram = |text: &str, payload: &[u8]| Notice::Datagram {
            flow: 7,
            peer: text.parse().expect(text),
            payload: payload.to_vec(),
        };
        for notice in [
            Notice::Probe,
            Notice::ProbeReply { instance: 0x0102_0304_0506_0708 },
            datagram("example.org:53", b""),
            datagram("[2001:db8::1]:53", &[1; MAX_DATAGRAM_BYTES]),
        ] {
            assert_eq!(Notice::decode(&notice.encode()), Ok(notice));
        }
    }

    #[test]
    fn truncated_and_longer_messages_are_malformed() {
        for bytes in requests().iter().map(Request::encode) {
            for length in 1..bytes.len() {
                assert_eq!(Request::decode(&bytes[..length]), Err(Failure::Malformed), "{bytes:?}");
            }
            assert_eq!(Request::decode(&[&bytes[..], &[0]].concat()), Err(Failure::Malformed));
        }
        assert_eq!(Answer::decode(&[VERSION]), Err(Failure::Malformed));
        assert_eq!(Answer::decode(&[VERSION, READY, 0]), Err(Failure::Malformed));
        assert_eq!(Notice::decode(b"\x02ANBF\x01"), Err(Failure::Malformed));
        assert_eq!(Notice::decode(b"\x01ANBX\x01"), Err(Failure::Malformed));
        let datagram = Notice::Datagram {
            flow: 1,
            peer: "192.0.2.1:53".parse().expect("a target"),
            payload: vec![0; MAX_DATAGRAM_BYTES + 1],
        };
        assert_eq!(Notice::decode(&datagram.encode()), Err(Failure::Malformed));
        for length in 0..17 {
            assert!(Notice::decode(&datagram.encode()[..length]).is_err(), "{length}");
        }
        assert_eq!(Request::decode(&[]), Err(Failure::Malformed));
    }

    #[test]
    fn another_version_is_reported_as_such() {
        let mut request = requests()[0].encode();
        request[0] = VERSION + 1;
        assert_eq!(Request::decode(&request), Err(Failure::Version));
        assert_eq!(Answer::decode(&[VERSION + 1, READY]), Err(Failure::Version));
        assert_eq!(Notice::decode(b"\x01ANBF\x02"), Err(Failure::Version));
    }

    #[test]
    fn names_and_addresses_in_another_form_are_malformed() {
        let connect = |host: &[u8], port: u16| {
            let bytes = [&[VERSION, CONNECT][..], host, &port.to_be_bytes()].concat();
            Request::decode(&bytes).err()
        };
        assert_eq!(connect(b"\x03\x01a", 1), None);
        assert_eq!(connect(b"\x03\x01a", 0), Some(Failure::Malformed));
        for host in
            [&b"\x03\x01A"[..], b"\x03\x02a.", b"\x03\x00", b"\x03\x02a/", b"\x03\x02\xff\xff", b"\x09"]
        {
            assert_eq!(connect(host, 1), Some(Failure::Malformed), "{host:?}");
        }
        let mapped =
            [&[IPV6][..], &"::ffff:127.0.0.1".parse::<std::net::Ipv6Addr>().expect("one").octets()].concat();
        assert_eq!(connect(&mapped, 1), Some(Failure::Malformed));
    }

    #[test]
    fn fuzz_target_begins_with_messages_of_this_version() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/forward_messages");
        let mut messages = 0;
        for seed in std::fs::read_dir(seeds).expect("a folder") {
            let bytes = std::fs::read(seed.expect("an entry").path()).expect("a file");
            let is_message = Request::decode(&bytes).is_ok()
                || Answer::decode(&bytes).is_ok()
                || Notice::decode(&bytes).is_ok();
            messages += usize::from(is_message);
        }
        assert!(messages >= 9, "{messages}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            decode_all(&bytes);
        }

        #[test]
        fn changed_messages_are_decoded_without_a_panic(which in 0..10usize, at in 0..20usize, byte: u8) {
            let mut bytes = requests()[which].encode();
            let length = bytes.len();
            bytes[at % length] = byte;
            decode_all(&bytes);
        }
    }
}
