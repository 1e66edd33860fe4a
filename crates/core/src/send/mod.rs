//! Sending side of an association.

mod abandon;
mod bound;
mod buffer;
mod check;
mod chunk_list;
mod data_form;
mod delivery;
mod duplicate_copies;
mod facts;
mod forward_tsn;
mod held;
mod limited;
mod lost;
mod missing;
mod options;
mod outstanding;
mod partial;
mod path_bytes;
mod peer_window;
mod queue;
mod room;
mod sender;
mod skipped;
mod stream_changes;
mod stream_order;
mod user_messages;
mod window_probe;

pub(crate) use abandon::AbandonedChunk;
pub(crate) use bound::BoundQueues;
pub(crate) use buffer::SendBuffer;
pub(crate) use data_form::DataForm;
pub(crate) use delivery::Delivered;
pub(crate) use duplicate_copies::{DuplicateCopy, LatestDelivered};
pub(crate) use limited::{MessageKey, Progress};
pub(crate) use lost::LostList;
pub use options::{AbandonCause, Reliability, SendOptions};
pub(crate) use outstanding::{Chunk, ChunkState, Outstanding, Transmission};
pub(crate) use partial::{PartialReliability, Support};
pub(crate) use path_bytes::PathBytes;
pub(crate) use queue::{Draft, SendQueue};
pub(crate) use sender::{Admitted, Loss, Sender, Transmitted};
pub(crate) use skipped::{Skipped, SkippedNumber};
pub use stream_order::{DEFAULT_STREAM_PRIORITY, StreamScheduler};
pub(crate) use user_messages::Removed;

#[cfg(test)]
mod tests;

/// Capacity that lists of lost chunks and of gap blocks get on first use. An idle association needs none, and one under load seldom
/// allocates.
pub(crate) const LIST_ROOM: usize = 64;
