//! Transfers over real sockets on loopback addresses.

mod failures;
mod resume;
mod storage;
mod support;
mod whole;
