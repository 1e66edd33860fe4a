//! What the two ends say to each other. The book's chapter on transfers has the whole of it.
//!
//! Control messages go in order on stream [`CONTROL_STREAM`]. [Segments](Segment) of blocks say themselves where they
//! belong, so they go unordered on stream [`DATA_STREAM`] and a lost one holds up no other.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod message;
mod segment;

pub use message::{
    Answer, Failure, FileTime, Intent, Kind, Links, Listing, MAX_CONTROL_BYTES, MAX_RUNS, MAX_TEXT_BYTES,
    Message, Offer, OnClash, Outcome, PROTOCOL_VERSION, ProtocolError, Reason, Run, Terms, Wishes,
};
pub(crate) use message::{FILE_BITS, FOLDER_BITS};
pub(crate) use segment::{BlockMessages, read_block};
pub use segment::{MAX_SEGMENT_BYTES, Segment};

/// The stream of control messages.
pub const CONTROL_STREAM: u16 = 0;
/// The stream of segments.
pub const DATA_STREAM: u16 = 1;
/// Most blocks that may be on their way or not be stored yet, whatever the receiver allows.
pub const MAX_WINDOW_BLOCKS: u32 = 256;
/// Blocks that a receiver takes at a time unless told otherwise.
pub const WINDOW_BLOCKS: u32 = 32;
/// Files and folders that may be offered and not be done yet.
pub const MAX_OPEN_OFFERS: usize = 256;
/// Names that one transfer may ask for.
pub const MAX_WANTED: usize = 4096;
/// Bytes of these names in all, so that a request makes the other side hold little.
pub const MAX_WANTED_BYTES: usize = 256 << 10;
/// Bytes of the names that listings of one folder may have in all, with [`LISTED_NAME_BYTES`] more for each. A receiver holds those of
/// one folder at a time.
pub const MAX_LISTED_BYTES: usize = 4 << 20;
/// What a listed name counts besides its bytes.
pub const LISTED_NAME_BYTES: usize = 4;
