//! Messages of the transfer protocol. The book's chapter on transfers describes the whole protocol.
//!
//! Control messages are sent in order on stream [`CONTROL_STREAM`]. [Segments](Segment) of blocks contain their position, so they
//! are sent unordered on stream [`DATA_STREAM`], and a lost one delays no other.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod message;
mod segment;

pub use message::{
    Answer, Failure, FileTime, Intent, Kind, Links, Listing, MAX_CONTROL_BYTES, MAX_RUNS, MAX_TEXT_BYTES,
    Message, Offer, OnClash, Outcome, PROTOCOL_VERSION, ProtocolError, Reason, Run, SenderRequests, Terms,
};
pub(crate) use message::{FILE_BITS, FOLDER_BITS};
pub(crate) use segment::{BlockMessages, read_block};
pub use segment::{MAX_SEGMENT_BYTES, Segment};

/// Stream of control messages.
pub const CONTROL_STREAM: u16 = 0;
/// Stream of segments.
pub const DATA_STREAM: u16 = 1;
/// Maximum number of blocks that may be in flight or not stored yet, even if the receiver allows more.
pub const MAX_WINDOW_BLOCKS: u32 = 256;
/// Default window of a receiver, in blocks.
pub const WINDOW_BLOCKS: u32 = 32;
/// Maximum number of files and folders that may be offered and not done.
pub const MAX_OPEN_OFFERS: usize = 256;
/// Maximum number of names that one transfer may request.
pub const MAX_WANTED: usize = 4096;
/// Maximum length of these names in total, in bytes, which bounds the memory that a request occupies.
pub const MAX_WANTED_BYTES: usize = 256 << 10;
/// Maximum length of the names that listings of one folder may have in total, in bytes, with [`LISTED_NAME_BYTES`] more for each. A
/// receiver stores the names of one folder at a time.
pub const MAX_LISTED_BYTES: usize = 4 << 20;
/// Bytes that each listed name counts in addition to its length.
pub const LISTED_NAME_BYTES: usize = 4;
