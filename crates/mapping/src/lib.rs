//! Mapping of programs' connections and datagrams to streams and messages of an association.
//!
//! `anabranch-forward` applies it to sockets, and `anabranch-lab` to simulated programs, so that a simulation predicts what
//! `anabranch forward` does.

mod duplication;

use std::num::NonZeroU16;
use std::time::Duration;

use anabranch_core::{SendOptions, StreamScheduler};

pub use duplication::{Duplication, FlowRate};

/// Number of streams in each direction. Each side opens half of them, one for each connection.
pub const STREAMS: u16 = 8192;

/// Rule by which connections share the rate of the association: equally, or by their weights.
pub const STREAM_SCHEDULER: StreamScheduler = StreamScheduler::WeightedFairQueueing;

/// Weight of a connection with priority: 16 times that of another one.
pub const PRIORITY_WEIGHT: NonZeroU16 = NonZeroU16::new(4096).unwrap();

/// Maximum length of a message with bytes of a connection. Messages of other streams wait while one is sent.
pub const MESSAGE_BYTES: usize = 16 << 10;

/// Time after which a datagram is given up. Programs that use UDP have sent it again by then.
pub const DATAGRAM_LIFETIME: Duration = Duration::from_secs(1);

/// Returns the options of a message with a datagram. `stream` has no other messages, which a datagram would wait for. `is_limited` is
/// set if the peer supports partial reliability, `duplicate` if [`Duplication::wants_copy`] returns it.
pub fn datagram_options(stream: u16, is_limited: bool, duplicate: bool) -> SendOptions {
    let options = SendOptions { duplicate, ..SendOptions::on_stream(stream).unordered() };
    if is_limited { options.expires_after(DATAGRAM_LIFETIME) } else { options }
}
