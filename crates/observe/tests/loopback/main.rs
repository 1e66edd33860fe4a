//! Hosts on loopback addresses, and what is recorded of them.

mod capture;
mod events;
mod exporter;
mod rig;
mod tables;
