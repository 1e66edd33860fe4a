//! Hosts on loopback addresses: real sockets, real time, bounded in both.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod faults;
mod guard;
mod hostile;
mod ipv6;
mod lifetime;
mod locals;
mod messages;
mod observer;
mod path_mtu;
mod protection;
mod restart;
mod rig;
mod transfer;
