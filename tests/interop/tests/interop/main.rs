//! Other SCTP stacks over real UDP sockets, each test in separate network namespaces. `make interop` runs them.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod addresses;
mod channels;
mod ends;
mod examples;
mod failover;
mod pion;
mod rig;
mod speed;
mod streams;
mod transfer;
mod usrsctp;
