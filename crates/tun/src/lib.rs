//! IP packets of a machine over all paths of an anabranch association to a gateway.
//!
//! Packets of a TUN device wait in a [`FlowQueue`] and become unordered messages with a lifetime. The receiver sorts the packets of each
//! flow within a bounded time ([`Reorder`]) and writes them to its device. The [`Gateway`] assigns an address to each user, and checks
//! the addresses of all packets. The protocol is in [`message`].
//!
//! In the lane, TCP connections of programs are redirected to a listener and forwarded as streams of the same association
//! ([`anabranch_forward`]): each end of a connection then sees one path without reordering.

#![cfg(target_os = "linux")]

mod changes;
mod client;
mod codel;
mod delays;
mod device;
mod flow_queue;
mod gateway;
mod ip;
mod link;
pub mod message;
mod pool;
mod reorder;
mod routing;
mod system;
mod tally;

pub use changes::{Changes, RecordError};
pub use client::{GreetError, Greeting, carry, greet, mtu_for};
pub use device::Device;
pub use flow_queue::FlowQueue;
pub use gateway::{Gateway, GatewayOptions, Served};
pub use ip::Header;
#[cfg(any(test, feature = "fuzzing"))]
pub use ip::read_all;
pub use link::{MAX_PENDING, Outgoing, Output, Violation};
pub use pool::Networks;
pub use reorder::{MAX_HOLD, Reorder};
pub use routing::{Routing, overlapping, translate};
pub use system::{Error, has_ipv6};
pub use tally::{Count, Tally};
