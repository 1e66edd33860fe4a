//! Associations of two endpoints over a network that the tests control, one subject in each file.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod binding;
mod buffers;
mod contents;
mod copies;
mod deadlines;
mod declarations;
mod delivery;
mod head_of_line;
mod holes;
mod hooks;
mod idle;
mod ipv6;
mod loss;
mod mtu;
mod net;
mod nr_sack;
mod pacing;
mod path_cost;
mod paths;
mod rules;
mod sack_fields;
mod shutdown;
mod timed_losses;
mod together;
mod transfer;
mod unshared_window;
mod waits;
mod window;
mod window_cost;
