//! Captures, traces and events of what a host on real sockets does, and metrics of how it stands.
//!
//! A [`Recording`] writes files: a pcapng capture, the traces that the simulator writes too, and events in the manner of qlog.
//! Hosts are given [observers](Recording::observer) that note what they see in memory; a thread of the recording's own writes it
//! down. Where the disk is slower than the network, records are dropped and counted, and the host does not wait.
//!
//! [`metrics::Exporter`] answers scrapes over HTTP with figures of hosts in the OpenMetrics text format.
//!
//! ```
//! use anabranch_net::{Protection, Host, PathAddress, Peer, SendOptions};
//! use anabranch_observe::{Outputs, Recording, Role};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let config = anabranch_net::config("cmt")?;
//! let outputs = Outputs { pcap: Some(folder.join("capture.pcapng")), ..Outputs::default() };
//! let recording = Recording::start(&outputs, Role::Client, "cmt", &config)?;
//!
//! let server = Host::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).accept(config.clone()).bind()?;
//! let client = Host::builder(Protection::Insecure).local("127.0.0.2:0".parse()?).observer(recording.observer()).bind()?;
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
mod directory;
mod feed;
pub mod metrics;
mod recording;
mod sink;

pub use anabranch_lab::trace::TraceError;
pub use anabranch_lab::trace::qlog::Role;
pub use recording::{Outputs, Recording, Report};
