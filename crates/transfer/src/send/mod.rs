//! The sending side.
//!
//! A walker finds what is to be offered, a reader opens, reads and hashes, each on a thread of its own. A task decides what
//! goes when, and passes messages.

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
