//! Real UDP traffic over simulated links.
//!
//! A relay forwards datagrams between clients and a target. Every datagram passes through a link of `anabranch-sim`, one per
//! direction, which delays or drops it. The relay needs no system configuration and no root privileges.
//!
//! [`Impairment`] contains the links, without sockets and clock. It treats packets exactly as a simulated run with the same packets
//! at the same times. [`Relay`] adds sockets and a clock.
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
