//! Recordings of endpoints on loopback addresses.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod capture;
#[cfg(unix)]
mod control;
mod events;
mod exporter;
mod rig;
mod tables;
