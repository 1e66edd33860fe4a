//! Other stacks understand us and we understand them.

mod dcsctp;
mod dcsctp_host;
mod exchange;
#[path = "../rig/mod.rs"]
mod rig;
mod sctp_proto;
mod sctp_proto_host;
