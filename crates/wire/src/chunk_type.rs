//! Chunk types, as named by chunks, parameters and error causes.

use std::fmt;

use crate::list::item;
use crate::unknown::UnknownAction;

/// Type of a chunk (RFC 9260 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkType(pub u8);

macro_rules! chunk_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl ChunkType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns the name of the chunk, or `None` if this crate does not know the type.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

chunk_types! {
    /// User data (RFC 9260 section 3.3.1).
    DATA = 0x00, "DATA";
    /// Opens an association (RFC 9260 section 3.3.2).
    INIT = 0x01, "INIT";
    /// Answers an INIT (RFC 9260 section 3.3.3).
    INIT_ACK = 0x02, "INIT ACK";
    /// Acknowledges data (RFC 9260 section 3.3.4).
    SACK = 0x03, "SACK";
    /// Probes a path (RFC 9260 section 3.3.5).
    HEARTBEAT = 0x04, "HEARTBEAT";
    /// Answers a HEARTBEAT (RFC 9260 section 3.3.6).
    HEARTBEAT_ACK = 0x05, "HEARTBEAT ACK";
    /// Ends an association at once (RFC 9260 section 3.3.7).
    ABORT = 0x06, "ABORT";
    /// Begins to close an association (RFC 9260 section 3.3.8).
    SHUTDOWN = 0x07, "SHUTDOWN";
    /// Answers a SHUTDOWN (RFC 9260 section 3.3.9).
    SHUTDOWN_ACK = 0x08, "SHUTDOWN ACK";
    /// Reports an error (RFC 9260 section 3.3.10).
    ERROR = 0x09, "ERROR";
    /// Returns the state cookie (RFC 9260 section 3.3.11).
    COOKIE_ECHO = 0x0A, "COOKIE ECHO";
    /// Answers a COOKIE ECHO (RFC 9260 section 3.3.12).
    COOKIE_ACK = 0x0B, "COOKIE ACK";
    /// Reports a congestion mark (RFC 4960 appendix A).
    ECNE = 0x0C, "ECNE";
    /// Reports that the congestion window was reduced (RFC 4960 appendix A).
    CWR = 0x0D, "CWR";
    /// Ends the closing of an association (RFC 9260 section 3.3.13).
    SHUTDOWN_COMPLETE = 0x0E, "SHUTDOWN COMPLETE";
    /// Authenticates the chunks that follow it (RFC 4895 section 4.1).
    AUTH = 0x0F, "AUTH";
    /// Acknowledges data and marks the TSNs that the receiver will not renege on (draft-natarajan-tsvwg-sctp-nrsack).
    NR_SACK = 0x10, "NR-SACK";
    /// User data whose messages may interleave (RFC 8260 section 2.1).
    I_DATA = 0x40, "I-DATA";
    /// Carries the other chunks of a packet, protected (draft-ietf-tsvwg-sctp-dtls-chunk).
    DTLS = 0x41, "DTLS";
    /// Answers an ASCONF (RFC 5061 section 4.1.2).
    ASCONF_ACK = 0x80, "ASCONF-ACK";
    /// Requests or answers changes of streams (RFC 6525 section 3.1).
    RE_CONFIG = 0x82, "RE-CONFIG";
    /// Pads a packet, for probing (RFC 4820 section 3).
    PAD = 0x84, "PAD";
    /// Repeats, under protection, fields that its sender received in the clear (Anabranch).
    CONFIRMATION = 0xBA, "CONFIRMATION";
    /// Moves the receiver past abandoned data (RFC 3758 section 3.2).
    FORWARD_TSN = 0xC0, "FORWARD TSN";
    /// Changes addresses (RFC 5061 section 4.1.1).
    ASCONF = 0xC1, "ASCONF";
    /// Moves the receiver past abandoned data of I-DATA chunks (RFC 8260 section 2.3.1).
    I_FORWARD_TSN = 0xC2, "I-FORWARD-TSN";
}

impl ChunkType {
    /// Returns the action of a receiver that does not know this type (RFC 9260 section 3.2).
    pub const fn unknown_action(self) -> UnknownAction {
        UnknownAction::of(self.0)
    }
}

impl fmt::Display for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "chunk type 0x{:02x}", self.0),
        }
    }
}

impl fmt::Debug for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkType({self})")
    }
}

item!(ChunkType, 1, |[kind]: [u8; 1]| ChunkType(kind), |kind: ChunkType| [kind.0]);
