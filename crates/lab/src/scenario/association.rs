//! `[association]`: buffers, streams and packets of every association.

use super::document::{Node, Value};
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{DATA_SIZE, Flag, IntegerIn, LARGEST_PACKET, OneOf, Shape, SizeIn, mismatch};
use super::units;

/// What holds for every association of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Association {
    /// The receiver's buffer in bytes.
    pub recv_buffer_bytes: u64,
    /// The sender's buffer.
    pub send_buffer: SendBuffer,
    /// Streams that bulk and file flows spread their messages over.
    pub streams: u16,
    /// Whether messages are delivered in order within their stream.
    pub ordered: bool,
    /// Bytes of user data in a message of a bulk or file flow; without it the most that fits one packet.
    pub message_bytes: Option<u64>,
    /// The largest packet in wire bytes.
    pub mtu_bytes: u64,
    /// What SCTP packets are carried in.
    pub encapsulation: Encapsulation,
    /// Whether packets are protected.
    pub protection: Protection,
}

/// How much a sender takes from its application ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendBuffer {
    /// As much as the application has.
    Unlimited,
    /// This many bytes of user data.
    Bytes(u64),
}

/// What SCTP packets are carried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// IP.
    None,
    /// UDP, as in RFC 6951.
    Udp,
}

/// Whether packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// They are not.
    None,
    /// By the DTLS chunk: with the bytes and round trips of protection, and without its cryptography.
    Dtls,
}

/// Words for how packets are protected.
pub(super) const PROTECTIONS: &[(&str, Protection)] =
    &[("none", Protection::None), ("dtls", Protection::Dtls)];

/// Words for what packets are carried in.
pub(super) const ENCAPSULATIONS: &[(&str, Encapsulation)] =
    &[("none", Encapsulation::None), ("udp", Encapsulation::Udp)];

impl Default for Association {
    fn default() -> Self {
        Association {
            recv_buffer_bytes: 64 << 10,
            send_buffer: SendBuffer::Unlimited,
            streams: 1,
            ordered: true,
            message_bytes: None,
            mtu_bytes: 1500,
            encapsulation: Encapsulation::None,
            protection: Protection::None,
        }
    }
}

impl Association {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Association> {
        let default = Association::default();
        // A receiver must take a packet of 1500 B, and the window is a field of 32 bits (RFC 9260, 3.3.2).
        let window = SizeIn(1500..=u64::from(u32::MAX));
        let recv_buffer = reader.or("recv_buffer", &window, default.recv_buffer_bytes);
        let send_buffer = reader.or("send_buffer", &AnySendBuffer, default.send_buffer);
        let streams = reader.or("streams", &STREAMS, u64::from(default.streams));
        let ordered = reader.or("ordered", &Flag, default.ordered);
        let message = reader.optional("message", &DATA_SIZE);
        let mtu = reader.or("mtu", &SizeIn(576..=LARGEST_PACKET), default.mtu_bytes);
        let encapsulation = reader.or("encapsulation", &OneOf(ENCAPSULATIONS), default.encapsulation);
        let protection = reader.or("protection", &OneOf(PROTECTIONS), default.protection);
        reader.finish();
        Some(Association {
            recv_buffer_bytes: recv_buffer?,
            send_buffer: send_buffer?,
            streams: stream_count(streams?),
            ordered: ordered?,
            message_bytes: message?,
            mtu_bytes: mtu?,
            encapsulation: encapsulation?,
            protection: protection?,
        })
    }
}

/// A number of streams: identifiers have 16 bits.
pub(super) const STREAMS: IntegerIn = IntegerIn(1..=u16::MAX as u64);

/// A number of streams that was read as [`STREAMS`].
pub(super) fn stream_count(streams: u64) -> u16 {
    u16::try_from(streams).unwrap_or(u16::MAX)
}

/// A size, or no limit.
struct AnySendBuffer;

impl Shape for AnySendBuffer {
    type Output = SendBuffer;

    fn expected(&self) -> String {
        format!("\"unlimited\", or {}", units::expected_size())
    }

    fn read(&self, node: &Node) -> Result<SendBuffer, Fault> {
        match &node.value {
            Value::Text(text) if text == "unlimited" => Ok(SendBuffer::Unlimited),
            Value::Text(text) if text.starts_with(|c: char| c.is_alphabetic()) => {
                Err(mismatch(self, node).near(text, ["unlimited"]))
            }
            _ => DATA_SIZE.read(node).map(SendBuffer::Bytes),
        }
    }
}
