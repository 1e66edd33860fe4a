//! A hostile peer for the transfer protocol.
//!
//! [`Peer`] speaks the protocol over a real association, in either role and on either side, and sends any data on request: valid
//! messages in any order, [blocks](block) complete, in part or with a wrong hash, raw bytes on any stream, or only `Alive`. A slice
//! of [`Packet`]s can be sent again over another association.
//!
//! [`random`] drives such a peer at random against a server and against the functions `push` and `pull`, and checks invariants.
//! [`Inbox`] is a folder next to a tree that must not change. [`resources`] reads the resources of the process.
//!
//! A peer that offers a file and sends a block with a hash of other content:
//!
//! ```
//! use anabranch_hostile::{Heard, Inbox, Peer, Serving, block};
//! use anabranch_transfer::protocol::{Kind, Message};
//! use anabranch_transfer::{Hash, OnClash, ServerOptions, Store};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let inbox = Inbox::new()?;
//! let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
//!
//! let peer = Peer::push_to(&serving.endpoint, [1; 16]).await?;
//! peer.offer(0, "report.txt", Kind::File { size_bytes: 4, first: None }).await?;
//! peer.hear_until(|message| matches!(message, Message::Answer { .. })).await?;
//! peer.send_all(&block(0, 0, b"evil", Hash::of(b"good"))).await?;
//! let answer = peer.hear_until(|message| matches!(message, Message::Block { .. })).await?;
//! assert_eq!(answer, Message::Block { id: 0, index: 0, good: false });
//!
//! // The peer aborts mid-transfer. No file has the name, and no file outside of the folder has changed.
//! peer.abort();
//! serving.idle().await;
//! assert!(!inbox.path().join("report.txt").exists());
//! assert_eq!(inbox.damage(), Vec::<String>::new());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod dictionary;
mod inbox;
mod loopback;
mod packet;
mod peer;
pub mod random;
pub mod resources;

pub use inbox::{Inbox, MARKER, Tree};
pub use loopback::{Serving, accepting, client, connect};
pub use packet::{Packet, block, root};
pub use peer::{AssociationEnded, Heard, Peer};
