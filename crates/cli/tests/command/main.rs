//! The command as a program: its output and its exit status.

#![allow(clippy::disallowed_macros, reason = "a test prints why it is left out")]

mod access;
mod bench;
mod cards;
mod compare;
#[cfg(target_os = "linux")]
mod compare_traces;
#[cfg(unix)]
mod connecting;
mod errors;
mod explain;
#[cfg(unix)]
mod forward;
#[cfg(target_os = "linux")]
mod forward_goals;
#[cfg(target_os = "linux")]
mod forward_links;
#[cfg(target_os = "linux")]
mod forward_programs;
mod init;
#[cfg(unix)]
mod judged;
mod keys;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod modes;
#[cfg(target_os = "linux")]
mod network;
#[cfg(unix)]
mod observe;
#[cfg(unix)]
mod offers;
#[cfg(unix)]
mod output;
#[cfg(target_os = "linux")]
mod path_costs;
mod paths;
mod protection;
mod relay;
#[cfg(unix)]
mod rendezvous;
mod rights;
mod run;
#[cfg(target_os = "linux")]
mod same_address;
mod schemes;
#[cfg(target_os = "linux")]
mod simulated_links;
#[cfg(target_os = "linux")]
mod small_packets;
#[cfg(unix)]
mod stopping;
mod support;
mod sweep;
#[cfg(unix)]
mod terminal;
#[cfg(target_os = "linux")]
mod top;
#[cfg(unix)]
mod trace;
mod transfer;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod tun_ipv6;
#[cfg(target_os = "linux")]
mod tun_lane;
#[cfg(target_os = "linux")]
mod unreachable;
