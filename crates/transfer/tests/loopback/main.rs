//! Transfers over real sockets on loopback addresses.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod confirmed;
mod deletion;
mod failures;
mod limits;
mod links;
mod options;
mod requests;
mod resume;
mod rights;
mod storage;
mod support;
mod vanish;
mod whole;
