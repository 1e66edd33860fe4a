//! Namespaces, peers and their reports.

mod local;
mod namespace;
mod peer;
mod program;

pub(crate) use local::{Local, TIMEOUT};
pub(crate) use namespace::{Cut, Network, Side};
pub(crate) use peer::{Ended, Input, Peer};
pub(crate) use program::{ours, pion, usrsctp};
