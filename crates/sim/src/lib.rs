//! A deterministic packet network, simulated event by event.
//!
//! Time is an integer number of nanoseconds, and a world runs in one thread. Its results depend only on the description of the
//! network, two seeds, and the calls, so that a run can be repeated bit for bit.
//!
//! The network does not know the protocol that uses it. The world passes packets and deadlines to implementations of [`Host`] and
//! polls them for new ones. Packets are real bytes, so that they can be corrupted, hashed, and written to a file that Wireshark
//! reads.
//!
//! ```
//! use anabranch_core::PacketBuffer;
//! use anabranch_core::time::{Rate, Span, Time};
//! use anabranch_sim::{Address, Datagram, Envelope, Host, LinkConfig, QueueConfig, Seeds, World};
//!
//! /// Sends a number of packets at once, and remembers when packets come.
//! struct Peer {
//!     to_send: u32,
//!     way: Envelope,
//!     arrivals: Vec<Time>,
//! }
//!
//! impl Host for Peer {
//!     fn handle_datagram(&mut self, now: Time, _: Datagram<'_>) {
//!         self.arrivals.push(now);
//!     }
//!     fn handle_timeout(&mut self, _: Time) {}
//!     fn poll_transmit(&mut self, _: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
//!         self.to_send = self.to_send.checked_sub(1)?;
//!         buf.extend_from_slice(&[0; 1480]);
//!         Some(self.way)
//!     }
//!     fn poll_timeout(&mut self) -> Option<Time> {
//!         None
//!     }
//! }
//!
//! let (here, there): (Address, Address) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
//! let peer = |to_send| Peer { to_send, way: Envelope::plain(here, there), arrivals: Vec::new() };
//!
//! let mut world = World::new(Seeds::new(1, 0));
//! world.add_host(Box::new(peer(3)), &[here])?;
//! let receiver = world.add_host(Box::new(peer(0)), &[there])?;
//! let (rate, delay) = (Rate::from_bps(10_000_000), Span::from_millis(45));
//! let link = world.add_link(LinkConfig::new("link", rate, delay, QueueConfig::packets(50)))?;
//! world.add_route(here, there, &[link], Some("flow-1"))?;
//! world.run_until(Time::ZERO + Span::from_secs(1));
//!
//! // 1500 bytes on the wire take 1.2 ms at 10 Mbit/s.
//! let expected: Vec<_> = (1..=3).map(|k| Time::ZERO + Span::from_micros(1200 * k) + delay).collect();
//! assert_eq!(world.host::<Peer>(receiver).arrivals, expected);
//! # Ok::<(), anabranch_sim::ConfigError>(())
//! ```
//!
//! # Limits of the model
//!
//! Links have no framing, no collisions and no error correction. Hosts need no time to compute. Packets are never fragmented, and
//! links accept any packet size. Queues drop packets and do not mark them.

pub mod aggregation;
mod content;
mod datagram;
pub mod dynamics;
mod error;
mod event;
mod fading;
mod handover;
mod host;
pub mod jitter;
pub mod lane;
pub mod link;
pub mod loss;
mod packet;
pub mod pcapng;
pub mod policer;
mod queue;
pub mod rng;
mod route;
mod schedule;
mod sctp;
mod setup;
pub mod tap;
pub mod trace;
pub mod traffic;
mod world;

pub use aggregation::Aggregation;
pub use datagram::{Address, Datagram, Encapsulation, Envelope};
pub use dynamics::LinkChange;
pub use error::ConfigError;
pub use fading::Fading;
pub use handover::{Handover, HandoverTimes};
pub use host::Host;
pub use jitter::{Jitter, JitterDistribution, JitterOrder};
pub use lane::Lane;
pub use link::{Counters, Faults, Link, LinkConfig, Tally};
pub use loss::{GilbertElliott, LossModel, LossPlace, LossTrace};
pub use policer::Policer;
pub use queue::{CoDel, Discipline, FqCoDel, Pie, QueueConfig, QueueLimit, Red};
pub use rng::{Seeds, Stream};
pub use route::{HostId, LinkId, SourceId};
pub use sctp::{Application, SctpHost};
pub use tap::{PacketEvent, PacketView, Place, Tap};
pub use trace::{CapacityTrace, Columns, Playback, RateUnit, Series, TraceError};
pub use traffic::{TrafficConfig, TrafficKind};
pub use world::{Station, World};
