//! The sending side of an association.

mod abandon;
mod bound;
mod check;
mod limited;
mod lost;
mod outstanding;
mod peer_window;
mod queue;
mod sender;
mod skipped;

pub(crate) use abandon::{AbandonedChunk, PartialReliability, Support};
pub(crate) use bound::BoundQueues;
pub use limited::{AbandonCause, Reliability};
pub(crate) use limited::{LimitedMessages, MessageKey, Progress};
pub(crate) use lost::LostList;
pub(crate) use outstanding::{Chunk, ChunkState, Outstanding, Transmission};
pub use queue::SendOptions;
pub(crate) use queue::{Draft, SendQueue};
pub(crate) use sender::{Admitted, Left, Loss, Orphan, PathBytes, Sender};
pub(crate) use skipped::{Skipped, SkippedMessages};

#[cfg(test)]
mod tests;

/// Room from the start in the lists of lost chunks and of gap blocks, so that a transfer in full swing seldom allocates.
pub(crate) const LIST_ROOM: usize = 64;
