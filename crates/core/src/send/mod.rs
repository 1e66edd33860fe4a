//! The sender's books: messages waiting, chunks outstanding, chunks to send again.

mod bound;
mod lost;
mod outstanding;
mod queue;

pub(crate) use bound::BoundQueues;
pub(crate) use lost::LostList;
pub(crate) use outstanding::{Chunk, ChunkState, Outstanding, Stamps, Transmission};
pub(crate) use queue::{Draft, SendQueue};

/// Room from the start in the lists of lost chunks and of gap blocks, so that a transfer in full swing seldom allocates.
pub(crate) const LIST_ROOM: usize = 64;
