//! Sending side of a transfer.
//!
//! A walker finds the entries to offer, and a reader opens, reads and hashes files, each on its own thread. A task schedules offers
//! and blocks, and exchanges messages with the receiver.

mod count;
mod deletion;
mod files;
mod folders;
mod listing;
mod pace;
mod queues;
mod reader;
mod sender;
mod unsized_file;
mod walk;

pub use pace::RateLimit;
pub(crate) use sender::SENDER_BLOCKS;
pub use sender::Sender;
pub use walk::SendSource;
pub(crate) use walk::{Found, survey};
