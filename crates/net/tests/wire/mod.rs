//! Associations over relayed paths: real sockets, with simulated links between them.
//!
//! Long tests are ignored by default: `make wire` runs them, in the release profile.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod bytes;
mod faults;
mod garbage;
mod priority;
mod rig;
