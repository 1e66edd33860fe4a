//! Associations over relayed paths: real sockets, with the links of the simulator between them.
//!
//! What takes long is ignored unless asked for: `make wire` runs it, in the release profile.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod bytes;
mod faults;
mod garbage;
mod rig;
