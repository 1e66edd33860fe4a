//! Associations over relayed paths: real sockets, with the links of the simulator between them.
//!
//! What takes long is ignored unless asked for: `make wire` runs it, in the release profile.

mod bytes;
mod faults;
mod garbage;
mod rig;
