//! Transfers over real sockets on loopback addresses.

mod failures;
mod limits;
mod requests;
mod resume;
mod support;
mod vanish;
mod whole;
