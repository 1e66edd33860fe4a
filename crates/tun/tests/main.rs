//! Tunnels over real sockets of loopback, without a device.

#![cfg(target_os = "linux")]

mod gateway;
mod hostile_gateway;
mod ipv6;
mod lane;
mod rig;
