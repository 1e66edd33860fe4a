//! Tests of the protocol that cross crates. Tests that count memory or allocations of their whole
//! process are in `heap.rs` and `allocation.rs`.

mod asconf;
mod bad_input;
mod endpoint;
mod guard;
mod handshake;
mod interaction;
mod partial;
mod peers;
mod protection;
mod rig;
mod streams;
mod wireshark;
