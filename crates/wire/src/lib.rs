//! SCTP packets: parses and writes chunks, without time, state or allocation.
//!
//! Parsing has three steps, each checked: [`PacketView::parse`] reads the common header, [`PacketView::chunks`]
//! splits the rest into [`RawChunk`]s, and [`RawChunk::decode`] returns a [`Chunk`] with a borrowed view of its
//! fields. Iterators decode the lists, parameters and error causes of a view in place. No input causes a panic.
//!
//! A [`PacketWriter`] writes into a buffer whose length is the maximum length of the packet. It has one method per
//! chunk type, and each method leaves the packet unchanged if the chunk does not fit.
//!
//! ```
//! use anabranch_wire::{Chunk, DataFlags, DataRepr, GapBlock, Header, PacketView, PacketWriter, SackRepr};
//! use anabranch_wire::{Ssn, StreamId, Tsn};
//!
//! let header = Header { source_port: 5000, destination_port: 9899, verification_tag: 0x1234_5678 };
//! let sack = SackRepr { cum_tsn: Tsn::new(41), a_rwnd: 65_536, flags: 0 };
//! let data = DataRepr {
//!     flags: DataFlags::WHOLE,
//!     tsn: Tsn::new(7),
//!     stream: StreamId::new(0),
//!     ssn: Ssn::new(3),
//!     ppid: 0,
//! };
//!
//! let mut buf = [0; 1452];
//! let mut packet = PacketWriter::new(&mut buf, header)?;
//! packet.sack(&sack, [GapBlock { start: 2, end: 4 }], [])?;
//! packet.data(&data, b"hello")?;
//! let len = packet.finish();
//!
//! let packet = PacketView::parse(&buf[..len])?;
//! assert!(packet.checksum_is_valid());
//! assert_eq!(packet.header(), header);
//! for chunk in packet.chunks() {
//!     match chunk?.decode()? {
//!         Chunk::Sack(view) => {
//!             assert_eq!(view.repr(), sack);
//!             assert_eq!(view.gaps().map(|block| block.end).max(), Some(4));
//!         }
//!         Chunk::Data(view) => {
//!             assert_eq!(view.repr(), data);
//!             assert_eq!(view.payload(), b"hello");
//!         }
//!         other => panic!("no such chunk was written: {other:?}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cause;
mod chunk;
mod chunk_type;
mod crc;
mod cursor;
mod data_packet;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header;
mod list;
mod packet;
mod param;
mod quoted;
mod reader;
mod serial;
#[cfg(test)]
mod testing;
mod unknown;
#[cfg(test)]
mod wireshark;
mod writer;

pub use cause::{Cause, CauseCode, Causes, RawCause, RawCauses};
pub use chunk::{
    ABORT_HEADER_LEN, AUTH_HEADER_LEN, AbortView, AsconfAckView, AsconfView, AuthRepr, AuthView,
    CHUNK_HEADER_LEN, CONFIRMATION_LEN, Chunk, ConfirmationRepr, DATA_HEADER_LEN, DTLS_CIPHERTEXT_OFFSET,
    DTLS_CONTENT_TYPE, DTLS_HEADER_LEN, DTLS_RECORD_HEADER_LEN, DataFlags, DataRepr, DataView,
    DtlsRecordHeader, DtlsUse, DtlsView, ErrorView, FORWARD_TSN_HEADER_LEN, ForwardTsnView, GapBlock,
    HEARTBEAT_HEADER_LEN, HeartbeatView, I_DATA_HEADER_LEN, I_FORWARD_TSN_HEADER_LEN, IDataRepr, IDataView,
    IForwardTsnView, INIT_HEADER_LEN, InitRepr, InitView, NR_SACK_HEADER_LEN, NrSackView, PATH_COST_LEN,
    PendingAuth, PlainEnd, PlainRecord, RawChunk, ReConfigView, SACK_HEADER_LEN, SHUTDOWN_LEN, SackRepr,
    SackView, SkippedMid, TRANSCRIPT_LEN, cookie_echo_len, dtls_content, dtls_overhead, forward_tsn_len,
    heartbeat_len, i_forward_tsn_len, nr_sack_len, sack_len,
};
pub use chunk_type::ChunkType;
pub use crc::checksum;
pub use data_packet::DataPacket;
pub use error::{NoSpace, ParseError, ParseErrorKind};
pub use header::{COMMON_HEADER_LEN, Header};
pub use list::{Item, Items, List};
pub use packet::{Chunks, PacketView};
pub use param::{
    DtlsKeyManagement, ErrorDetectionMethod, KeyManagementMethod, OutgoingReset, Param, ParamList, ParamType,
    Params, RawParam, RawParams, ReconfigResult,
};
pub use quoted::QuotedInit;
pub use reader::padded_len;
pub use serial::{Mid, Ssn, StreamId, Tsn};
pub use unknown::UnknownAction;
pub use writer::PacketWriter;
