//! Forwarding over real sockets of loopback.

mod connections;
mod datagrams;
mod hostile;
mod loss;
mod measure;
mod proxy;
mod remote;
mod rig;
