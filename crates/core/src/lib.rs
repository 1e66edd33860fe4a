//! One SCTP endpoint and its associations, written without sockets, clocks or global randomness.
pub mod time;
pub mod units;
