//! The sender's books: messages waiting, chunks outstanding, chunks to send again.

mod lost;
mod outstanding;
mod queue;

pub(crate) use lost::LostList;
pub(crate) use outstanding::{ChunkState, Outstanding, Transmission};
pub(crate) use queue::{Draft, SendQueue};
