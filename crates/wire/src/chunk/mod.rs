//! Chunks: type, undecoded chunk, and one enum of all decoded chunks (RFC 9260 section 3.2).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type          | flags         | length, these four included   |
//!  +---------------+---------------+---------------+---------------+
//!  | value: length - 4 bytes                                       |
//!  +---------------------------------------------------------------+
//! ```

mod abort;
mod asconf;
mod auth;
mod confirmation;
mod cookie;
mod data;
mod dtls;
mod ecn;
mod error;
mod forward_tsn;
mod heartbeat;
mod i_data;
mod i_forward_tsn;
mod init;
mod nr_sack;
mod pad;
mod re_config;
mod sack;
mod shutdown;

use crate::chunk_type::ChunkType;
use crate::error::{NoSpace, ParseError};
use crate::reader::{Reader, TLV_HEADER_LEN, Tlv, Tlvs};
use crate::serial::Tsn;
use crate::writer::PacketWriter;
use std::fmt;

pub use abort::{ABORT_HEADER_LEN, AbortView};
pub use asconf::{AsconfAckView, AsconfView};
pub use auth::{AUTH_HEADER_LEN, AuthRepr, AuthView, PendingAuth};
pub use confirmation::{CONFIRMATION_LEN, ConfirmationRepr, PlainEnd, TRANSCRIPT_LEN};
pub use cookie::cookie_echo_len;
pub use data::{DATA_HEADER_LEN, DataFlags, DataRepr, DataView};
pub use dtls::{
    DTLS_CIPHERTEXT_OFFSET, DTLS_CONTENT_TYPE, DTLS_HEADER_LEN, DTLS_RECORD_HEADER_LEN, DtlsRecordHeader,
    DtlsUse, DtlsView, PlainRecord, dtls_content, dtls_overhead,
};
pub use error::ErrorView;
pub use forward_tsn::{FORWARD_TSN_HEADER_LEN, ForwardTsnView, forward_tsn_len};
pub use heartbeat::{HEARTBEAT_HEADER_LEN, HeartbeatView, PATH_COST_LEN, heartbeat_len};
pub use i_data::{I_DATA_HEADER_LEN, IDataRepr, IDataView};
pub use i_forward_tsn::{I_FORWARD_TSN_HEADER_LEN, IForwardTsnView, SkippedMid, i_forward_tsn_len};
pub use init::{INIT_HEADER_LEN, InitRepr, InitView};
pub use nr_sack::{NR_SACK_HEADER_LEN, NrSackView, nr_sack_len};
pub use re_config::ReConfigView;
pub use sack::{GapBlock, SACK_HEADER_LEN, SackRepr, SackView, sack_len};
pub use shutdown::SHUTDOWN_LEN;

/// Length of a chunk header, in bytes.
pub const CHUNK_HEADER_LEN: usize = TLV_HEADER_LEN;

/// T bit of ABORT and SHUTDOWN COMPLETE: the packet carries the receiver's own verification tag, because the sender knows no other
/// (RFC 9260 section 8.5.1).
pub(crate) const TAG_REFLECTED: u8 = 0x01;

/// Chunk of a packet, with its value not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawChunk<'a> {
    kind: ChunkType,
    flags: u8,
    bytes: &'a [u8],
}

impl<'a> RawChunk<'a> {
    /// Parses the chunk at the start of `bytes`, for chunks that an error cause quotes.
    ///
    /// Empty input is a truncated header. Bytes after the chunk are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Tlvs::new(bytes, 0).first().map(Self::from_tlv)
    }

    pub(crate) fn from_tlv(tlv: Tlv<'a>) -> Self {
        let [kind, flags, _, _] = tlv.header;
        Self { kind: ChunkType(kind), flags, bytes: tlv.bytes }
    }

    /// Returns the chunk type.
    pub const fn kind(&self) -> ChunkType {
        self.kind
    }

    /// Returns the flags, whose meaning depends on the type.
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// Returns the value that follows the header, without padding.
    pub fn value(&self) -> &'a [u8] {
        self.bytes.get(CHUNK_HEADER_LEN..).unwrap_or_default()
    }

    /// Returns the whole chunk with its header and without padding, as error causes quote it.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns a reader at the start of the value.
    fn fields(&self) -> Reader<'a> {
        Reader::new(self.value(), CHUNK_HEADER_LEN)
    }

    /// Returns the fields of a DATA chunk, or `None` if the chunk has another type or is too short. Serves callers that search for
    /// DATA only.
    pub fn data(&self) -> Option<DataView<'a>> {
        (self.kind() == ChunkType::DATA).then(|| DataView::decode(*self).ok()).flatten()
    }

    /// Checks the value according to the type and returns a view of its fields.
    #[inline]
    pub fn decode(&self) -> Result<Chunk<'a>, ParseError> {
        match self.kind() {
            ChunkType::DATA => DataView::decode(*self).map(Chunk::Data),
            ChunkType::SACK => SackView::decode(*self).map(Chunk::Sack),
            _ => self.decode_rarer(),
        }
    }

    /// Decodes the chunk types that few packets contain.
    fn decode_rarer(&self) -> Result<Chunk<'a>, ParseError> {
        Ok(match self.kind() {
            ChunkType::INIT => Chunk::Init(InitView::decode(*self)?),
            ChunkType::INIT_ACK => Chunk::InitAck(InitView::decode(*self)?),
            ChunkType::NR_SACK => Chunk::NrSack(NrSackView::decode(*self)?),
            ChunkType::HEARTBEAT => Chunk::Heartbeat(HeartbeatView::decode(*self)?),
            ChunkType::HEARTBEAT_ACK => Chunk::HeartbeatAck(HeartbeatView::decode(*self)?),
            ChunkType::ABORT => Chunk::Abort(AbortView::decode(*self)),
            ChunkType::ERROR => Chunk::Error(ErrorView::decode(*self)),
            ChunkType::COOKIE_ECHO => Chunk::CookieEcho { cookie: self.value() },
            ChunkType::FORWARD_TSN => Chunk::ForwardTsn(ForwardTsnView::decode(*self)?),
            ChunkType::I_DATA => Chunk::IData(IDataView::decode(*self)?),
            ChunkType::I_FORWARD_TSN => Chunk::IForwardTsn(IForwardTsnView::decode(*self)?),
            ChunkType::AUTH => Chunk::Auth(AuthView::decode(*self)?),
            ChunkType::ASCONF => Chunk::Asconf(AsconfView::decode(*self)?),
            ChunkType::ASCONF_ACK => Chunk::AsconfAck(AsconfAckView::decode(*self)?),
            ChunkType::RE_CONFIG => Chunk::ReConfig(ReConfigView::decode(*self)),
            ChunkType::DTLS => Chunk::Dtls(DtlsView::decode(*self)),
            ChunkType::CONFIRMATION => Chunk::Confirmation(ConfirmationRepr::decode(*self)?),
            ChunkType::PAD => Chunk::Pad(*self),
            _ => return self.decode_fixed(),
        })
    }

    /// Decodes the chunk types that have a fixed length.
    fn decode_fixed(&self) -> Result<Chunk<'a>, ParseError> {
        let mut fields = self.fields();
        let chunk = match self.kind() {
            ChunkType::SHUTDOWN => Chunk::Shutdown { cum_tsn: Tsn::new(fields.u32()?) },
            ChunkType::SHUTDOWN_ACK => Chunk::ShutdownAck,
            ChunkType::COOKIE_ACK => Chunk::CookieAck,
            ChunkType::ECNE => Chunk::Ecne { lowest_tsn: Tsn::new(fields.u32()?) },
            ChunkType::CWR => Chunk::Cwr { lowest_tsn: Tsn::new(fields.u32()?) },
            ChunkType::SHUTDOWN_COMPLETE => {
                Chunk::ShutdownComplete { tag_reflected: self.flags() & TAG_REFLECTED != 0 }
            }
            _ => return Ok(Chunk::Unknown(*self)),
        };
        fields.end().map(|()| chunk)
    }
}

impl PacketWriter<'_> {
    /// Adds a received chunk of any type unchanged.
    pub fn raw(&mut self, chunk: RawChunk<'_>) -> Result<(), NoSpace> {
        self.raw_parts(chunk.kind(), chunk.flags(), chunk.value())
    }
}

impl fmt::Debug for RawChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawChunk({}, flags 0x{:02x}, {} bytes)", self.kind(), self.flags(), self.value().len())
    }
}

/// Chunk whose fields have been checked against its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Chunk<'a> {
    /// User data.
    Data(DataView<'a>),
    /// Opens an association.
    Init(InitView<'a>),
    /// Answers an INIT.
    InitAck(InitView<'a>),
    /// Acknowledges data.
    Sack(SackView<'a>),
    /// Acknowledges data, revocably or non-revocably.
    NrSack(NrSackView<'a>),
    /// Probes a path.
    Heartbeat(HeartbeatView<'a>),
    /// Answers a HEARTBEAT.
    HeartbeatAck(HeartbeatView<'a>),
    /// Ends an association at once.
    Abort(AbortView<'a>),
    /// Begins to close an association.
    Shutdown {
        /// Last TSN that the sender received in sequence.
        cum_tsn: Tsn,
    },
    /// Answers a SHUTDOWN.
    ShutdownAck,
    /// Reports an error.
    Error(ErrorView<'a>),
    /// Returns the state cookie.
    CookieEcho {
        /// State cookie, byte for byte as in the INIT ACK.
        cookie: &'a [u8],
    },
    /// Answers a COOKIE ECHO.
    CookieAck,
    /// Reports a congestion mark.
    Ecne {
        /// Lowest TSN of the first marked packet.
        lowest_tsn: Tsn,
    },
    /// Reports that the congestion window was reduced.
    Cwr {
        /// TSN of the ECNE that this chunk answers.
        lowest_tsn: Tsn,
    },
    /// Ends the closing of an association.
    ShutdownComplete {
        /// Set if the packet carries the receiver's own verification tag (T bit).
        tag_reflected: bool,
    },
    /// Moves the receiver past abandoned data.
    ForwardTsn(ForwardTsnView<'a>),
    /// User data whose messages may interleave.
    IData(IDataView<'a>),
    /// Moves the receiver past abandoned data of I-DATA chunks.
    IForwardTsn(IForwardTsnView<'a>),
    /// Authenticates the chunks that follow it.
    Auth(AuthView<'a>),
    /// Changes addresses.
    Asconf(AsconfView<'a>),
    /// Answers an ASCONF.
    AsconfAck(AsconfAckView<'a>),
    /// Requests or answers changes of streams.
    ReConfig(ReConfigView<'a>),
    /// Carries the other chunks of the packet, protected.
    Dtls(DtlsView<'a>),
    /// Repeats fields that its sender received in the clear.
    Confirmation(ConfirmationRepr),
    /// Padding, whose value is ignored.
    Pad(RawChunk<'a>),
    /// Chunk of a type that this crate does not know; see [`ChunkType::unknown_action`].
    Unknown(RawChunk<'a>),
}

impl Chunk<'_> {
    /// Returns the chunk type.
    pub const fn kind(&self) -> ChunkType {
        match self {
            Self::Data(_) => ChunkType::DATA,
            Self::Init(_) => ChunkType::INIT,
            Self::InitAck(_) => ChunkType::INIT_ACK,
            Self::Sack(_) => ChunkType::SACK,
            Self::NrSack(_) => ChunkType::NR_SACK,
            Self::Heartbeat(_) => ChunkType::HEARTBEAT,
            Self::HeartbeatAck(_) => ChunkType::HEARTBEAT_ACK,
            Self::Abort(_) => ChunkType::ABORT,
            Self::Shutdown { .. } => ChunkType::SHUTDOWN,
            Self::ShutdownAck => ChunkType::SHUTDOWN_ACK,
            Self::Error(_) => ChunkType::ERROR,
            Self::CookieEcho { .. } => ChunkType::COOKIE_ECHO,
            Self::CookieAck => ChunkType::COOKIE_ACK,
            Self::Ecne { .. } => ChunkType::ECNE,
            Self::Cwr { .. } => ChunkType::CWR,
            Self::ShutdownComplete { .. } => ChunkType::SHUTDOWN_COMPLETE,
            Self::ForwardTsn(_) => ChunkType::FORWARD_TSN,
            Self::IData(_) => ChunkType::I_DATA,
            Self::IForwardTsn(_) => ChunkType::I_FORWARD_TSN,
            Self::Auth(_) => ChunkType::AUTH,
            Self::Asconf(_) => ChunkType::ASCONF,
            Self::AsconfAck(_) => ChunkType::ASCONF_ACK,
            Self::ReConfig(_) => ChunkType::RE_CONFIG,
            Self::Dtls(_) => ChunkType::DTLS,
            Self::Confirmation(_) => ChunkType::CONFIRMATION,
            Self::Pad(raw) | Self::Unknown(raw) => raw.kind(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SAMPLES, decode, only_chunk, write};
    use crate::{NoSpace, ParseErrorKind};

    #[test]
    fn every_chunk_knows_its_type() {
        for (name, sample) in SAMPLES {
            let packet = write(sample);
            let raw = only_chunk(&packet);
            assert_eq!(raw.decode().unwrap().kind(), raw.kind(), "{name}");
        }
    }

    #[test]
    fn a_chunk_of_one_length_has_no_other() {
        for (kind, len) in [(0x07, 4), (0x08, 0), (0x0B, 0), (0x0C, 4), (0x0D, 4), (0x0E, 0)] {
            assert!(decode(kind, 0, &[0; 8][..len]).is_ok());
            for other in (0..8).filter(|&other| other != len) {
                let error = decode(kind, 0, &[0; 8][..other]).unwrap_err();
                assert_eq!(error.kind, ParseErrorKind::WrongLength, "type {kind} with {other} bytes");
            }
        }
    }

    #[test]
    fn unknown_types_are_read_completely() {
        for kind in [0x11, 0x3F, 0x7F, 0x81, 0xC3, 0xFF] {
            let packet = write(|packet| packet.raw_parts(ChunkType(kind), 0x5A, b"value"));
            let raw = only_chunk(&packet);
            assert_eq!(raw.decode(), Ok(Chunk::Unknown(raw)));
            assert_eq!((raw.kind().0, raw.flags(), raw.value()), (kind, 0x5A, &b"value"[..]));
            assert_eq!(raw.bytes(), [&[kind, 0x5A, 0, 9][..], b"value"].concat());
            assert_eq!(RawChunk::parse(raw.bytes()), Ok(raw));
            assert_eq!(write(|packet| packet.raw(raw)), packet);
        }
    }

    #[test]
    fn known_and_unknown_types_have_a_name() {
        assert_eq!(ChunkType::INIT_ACK.to_string(), "INIT ACK");
        assert_eq!(format!("{:?}", ChunkType(0x42)), "ChunkType(chunk type 0x42)");
        let packet = write(|packet| packet.cookie_echo(b"abc"));
        assert_eq!(format!("{:?}", only_chunk(&packet)), "RawChunk(COOKIE ECHO, flags 0x00, 3 bytes)");
    }

    #[test]
    fn quoted_bytes_may_be_no_chunk() {
        assert_eq!(RawChunk::parse(&[]).unwrap_err().kind, ParseErrorKind::TruncatedHeader);
        assert_eq!(RawChunk::parse(&[1, 0, 0, 5]).unwrap_err().kind, ParseErrorKind::LengthTooLong);
    }

    #[test]
    fn a_value_longer_than_the_length_field_has_no_space() {
        let mut buf = vec![0; 80_000];
        let mut packet = crate::PacketWriter::new(&mut buf, crate::Header::default()).unwrap();
        assert_eq!(packet.raw_parts(ChunkType::PAD, 0, &[0; 65_532]), Err(NoSpace));
        assert_eq!(packet.pad(65_536), Err(NoSpace));
        assert!(packet.is_empty());
        assert_eq!(packet.raw_parts(ChunkType::PAD, 0, &[0; 65_531]), Ok(()));
        assert_eq!(packet.len(), 12 + 65_536);
    }
}
