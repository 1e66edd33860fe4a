//! Transfers over real sockets on loopback addresses.

mod failures;
mod requests;
mod resume;
mod support;
mod whole;
