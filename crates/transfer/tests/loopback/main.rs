//! Transfers over real sockets on loopback addresses.

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
