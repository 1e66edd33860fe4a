//! Real UDP traffic over the links of the simulator.
//!
//! A relay stands between clients and a target. Every datagram that comes goes through a link of
//! `anabranch-sim`, one for each direction, and leaves when the link says so, or not at all. Nothing of the
//! system needs to be configured, and nobody needs to be root.
//!
//! [`Impairment`] is what happens to packets, without sockets and clock; it does exactly what a simulated run
//! would do with the same packets at the same times. [`Relay`] gives it both.
//!
//! ```
//! use anabranch_core::time::{Rate, Span};
//! use anabranch_relay::{Direction, Relay, RelayConfig};
//! use anabranch_sim::{LinkConfig, QueueConfig};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let target = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
//! let link = |name: &str| {
//!     let (rate, delay) = (Rate::from_bps(10_000_000), Span::from_millis(5));
//!     LinkConfig::new(name, rate, delay, QueueConfig::packets(50))
//! };
//! let listen = "127.0.0.1:0".parse()?;
//! let config = RelayConfig::new(listen, target.local_addr()?, link("there"), link("back"));
//! let relay = Relay::start(config)?;
//!
//! let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
//! client.send_to(b"hello", relay.local_addr()).await?;
//! let mut buffer = [0; 16];
//! let (length, _) = target.recv_from(&mut buffer).await?;
//! assert_eq!(&buffer[..length], b"hello");
//! assert_eq!(relay.totals(Direction::Forward).delivered.bytes, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alarm;
mod clients;
mod config;
mod driver;
mod impairment;
mod totals;

pub use config::{RelayConfig, RelayError};
pub use driver::Relay;
pub use impairment::{Delivery, Direction, Impairment};
pub use totals::{Amount, Lateness, Totals};
