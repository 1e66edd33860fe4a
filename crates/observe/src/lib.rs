//! Captures, traces and events of endpoints on real sockets, and metrics of their state.
//!
//! A [`Recording`] writes files: a pcapng capture, traces in the simulator's format, and qlog-like events. Its
//! [observers](Recording::observer) copy events of endpoints into memory, and its own thread writes them. If the disk is slower than
//! the network, records are dropped and counted, and the endpoint does not wait.
//!
//! [`metrics::Exporter`] answers HTTP scrapes with metrics of endpoints in the OpenMetrics text format. On Unix, a
//! [`control::Control`] socket answers local clients, which can also take paths out of use.
//!
//! ```
//! use anabranch_net::{Protection, Endpoint, PathAddress, Peer, SendOptions};
//! use anabranch_observe::{Outputs, Recording, Role};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let config = anabranch_net::Config::new("cmt")?;
//! let outputs = Outputs { pcap: Some(folder.join("capture.pcapng")), ..Outputs::default() };
//! let recording = Recording::start(&outputs, Role::Client, "cmt", &config)?;
//!
//! let server = Endpoint::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).accept(config.clone()).bind()?;
//! let client = Endpoint::builder(Protection::Insecure).local("127.0.0.2:0".parse()?).observer(recording.observer()).bind()?;
//! let path = PathAddress::over_udp([127, 0, 0, 2].into(), server.local_addresses()[0]);
//! let association = client.connect(Peer::new([path]), config).await?;
//! association.send("captured", SendOptions::default()).await?;
//! association.shutdown().await?;
//!
//! let report = recording.finish();
//! assert!(report.errors.is_empty() && report.records_dropped == 0);
//! # Ok(())
//! # })
//! # }
//! ```

mod batch;
#[cfg(unix)]
pub mod control;
mod directory;
mod feed;
mod link_cost;
pub mod metrics;
mod recording;
mod sink;

pub use anabranch_trace::TraceError;
pub use anabranch_trace::qlog::Role;
pub use link_cost::{LinkCost, LinkCostSource, LinkLimit, Usage};
pub use recording::{Outputs, Recording, Report};
