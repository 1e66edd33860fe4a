//! Transfers over real sockets on loopback addresses.

mod failures;
mod resume;
mod support;
mod whole;
