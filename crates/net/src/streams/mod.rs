//! Stream handles: each stream has back-pressure, an end and a reset of its own.
//!
//! A stream is an identifier in both directions, as in data channels (RFC 8831): one side opens it, and either half ends by itself.
//! SCTP has one receive window for all streams. Therefore the receiver takes messages out of the association's buffer as they come,
//! and grants each stream credit for what its reader has not taken (`stream_state`). Control messages that only Anabranch endpoints
//! exchange carry credit, ends and resets.

mod arrivals;
mod error;
mod recv;
mod send;

pub use error::{StreamRecvError, StreamSendError};
pub use recv::RecvStream;
pub use send::SendStream;
