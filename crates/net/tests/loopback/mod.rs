//! Hosts on loopback addresses, with real sockets and real time, both bounded.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod discovery;
mod faults;
mod guard;
mod hostile;
mod hostile_streams;
mod ipv6;
mod lifetime;
mod link_use;
mod locals;
mod messages;
mod observer;
mod path_mtu;
mod protection;
mod restart;
mod rig;
mod side_channel;
mod simultaneous;
mod streams;
mod transfer;
mod withheld;
