//! Interoperation with other stacks.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod dcsctp;
mod dcsctp_host;
mod exchange;
mod resets;
mod sctp_proto;
mod sctp_proto_host;
