//! State of the streams of an association, without an endpoint and without tasks.

mod control;
mod credit;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use control::{Ahead, InOrder, STREAM_CONTROL_PPID};
pub(crate) use table::{RecvEnd, SendEnd, StreamKey, StreamPeer, StreamTable, UNREAD_LIMIT, Violation};
