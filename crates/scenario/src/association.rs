//! `[association]`: buffers, streams and packets of every association.

use anabranch_core::Encapsulation;

use crate::document::{Node, Value};
use crate::fault::Fault;
use crate::field::About;
use crate::form::{DATA_SIZE, Flag, Form, IntegerIn, LARGEST_PACKET, OneOf, SizeIn, mismatch};
use crate::reader::Reader;
use crate::report::Report;
use crate::section::{Described, section};
use crate::units;

/// UDP port of both ends of an encapsulated association (RFC 6951 section 5.1).
const UDP_PORT: u16 = 9899;

/// SCTP over UDP between the default ports.
pub const UDP: Encapsulation = Encapsulation::Udp { local_port: UDP_PORT, remote_port: UDP_PORT };

/// Protection of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// No protection.
    None,
    /// The DTLS chunk: its bytes and round trips, without its cryptography.
    Dtls,
}

/// A number of streams: identifiers have 16 bits.
pub(crate) const STREAMS: IntegerIn<u16> = IntegerIn(1..=u16::MAX);

section! {
    /// Settings of every association of a scenario, `[association]`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Association {
        /// The receiver's buffer. It counts user data in profiles `rfc9260` and `net`, and DATA chunks with their headers
        /// in `ns2`.
        // A receiver must take a packet of 1500 B, and the window is a field of 32 bits (RFC 9260, 3.3.2).
        recv_buffer_bytes: u64 = "recv_buffer" [or 64 << 10] SizeIn(1500..=u64::from(u32::MAX), "KiB");
        /// User bytes that an association stores, sent or not, until they are acknowledged cumulatively.
        send_buffer_bytes: Option<u64> = "send_buffer" [or None] SendBuffer;
        /// Streams of bulk and file flows, used in turn.
        streams: u16 = "streams" [or 1] STREAMS;
        /// Ordered delivery within a stream.
        ordered: bool = "ordered" [or true] Flag;
        /// User data in a message of a bulk or file flow; larger ones are fragmented.
        message_bytes: Option<u64> = "message" [optional "the most that fits one packet"] SizeIn(DATA_SIZE.0, "B");
        /// The largest packet in wire bytes, on every path.
        mtu_bytes: u64 = "mtu" [or 1500] SizeIn(576..=LARGEST_PACKET, "B");
        /// `none`: IP protocol 132. `udp`: UDP port 9899 (RFC 6951), 8 more bytes per packet.
        encapsulation: Encapsulation = "encapsulation" [or Encapsulation::None]
            OneOf(&[("none", Encapsulation::None), ("udp", UDP)]);
        /// [Packet protection](protection.md). `"dtls"` costs 28 bytes per packet, an INIT of 700 bytes, and one round
        /// trip before the first data with messages of 1.4, 1.5 and 0.2 kB, as TLS 1.3 with raw public keys; keys are
        /// updated after an hour or 100 GB. The simulator does not encrypt.
        protection: Protection = "protection" [or Protection::None]
            OneOf(&[("none", Protection::None), ("dtls", Protection::Dtls)]);
    }
}

impl Described for Association {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

impl Default for Association {
    /// Returns the association of a scenario without `[association]`.
    fn default() -> Self {
        let report = Report::new("", "", &[]);
        let Some(association) = Association::read(Reader::empty(&report)) else {
            unreachable!("every key has a default")
        };
        association
    }
}

/// A size, or no limit.
struct SendBuffer;

impl Form for SendBuffer {
    type Output = Option<u64>;

    fn expected(&self) -> String {
        format!("\"unlimited\", or {}", units::expected_size())
    }

    fn read(&self, node: &Node) -> Result<Option<u64>, Fault> {
        match &node.value {
            Value::Text(text) if text == "unlimited" => Ok(None),
            Value::Text(text) if text.starts_with(|c: char| c.is_alphabetic()) => {
                Err(mismatch(self, node).near(text, ["unlimited"]))
            }
            _ => DATA_SIZE.read(node).map(Some),
        }
    }

    fn write(&self, value: &Option<u64>) -> String {
        value.map_or_else(|| "\"unlimited\"".to_owned(), |bytes| DATA_SIZE.write(&bytes))
    }

    fn about(&self) -> About {
        About::quantity("`\"unlimited\"` or a size", "KiB")
    }
}
