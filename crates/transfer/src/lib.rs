//! Transfer of files over an anabranch association: block by block, verified, and resumed after an interruption.
//!
//! The side that connects [sends](push) or [fetches](pull); the side that accepts is a [`Server`]. Content that arrives in a
//! [`Folder`] is kept in a part file beside a journal until it is complete and verified, and gets its name then. An interrupted
//! transfer resumes: the receiver reports the blocks that it has.
//!
//! An association protected by DTLS encrypts and authenticates content; the hashes of blocks and files detect errors, not
//! attackers.
//!
//! The protocol is in [`protocol`], and in the book's chapter on transfers.

mod accept;
mod block;
mod cancel;
mod descriptors;
mod error;
mod filter;
mod framing;
mod identity;
mod moment;
mod name;
mod offering;
mod part_lock;
pub mod protocol;
mod random;
mod receive;
mod report;
mod scarcity;
mod send;
mod server;
mod session;
mod store;
mod text;

pub use accept::{Accept, BadRequest};
pub use block::{BLOCK_BYTES, Hash};
pub use descriptors::raise_open_file_limit;
pub use error::TransferError;
pub use filter::{BadRule, Filters, MAX_PATTERN_BYTES, MAX_RULES, Rule};
pub use identity::SenderId;
pub use name::{BadLink, BadName, MAX_NAME_BYTES, MAX_PART_BYTES, MAX_PARTS, Name, NameRules};
pub use offering::{Catalogue, Entry, EntryKind, MAX_OFFERED, Offering, OfferingError};
pub use protocol::{Links, OnClash, SenderRequests};
pub use random::RandomError;
pub use receive::{Mode, Store};
pub use report::{Counters, Event, Report, Totals};
pub use send::{RateLimit, SendSource, Sender};
pub use server::{Allow, Deadlines, Rights, Served, Server, ServerOptions};
pub use session::{Request, Timeouts, pull, push};
pub use store::{Durability, Folder, Pipe, Unfinished};
pub use text::{PeerText, escape};
