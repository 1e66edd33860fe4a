//! Transfers over real sockets on loopback addresses.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod attributes;
mod busy;
mod confirmed;
mod deletion;
mod failures;
mod kinds;
mod limits;
mod links;
mod options;
mod requests;
mod resume;
mod rights;
mod storage;
mod support;
mod unsized_files;
mod vanish;
mod whole;
