//! Meetings in virtual time: behind each pair of NAT types, with hostile clients, and with limits.

mod hostile;
mod meetings;
mod nat_types;
mod pairs;
mod rig;
