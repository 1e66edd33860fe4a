//! Traces: the files that a simulated run and a host on real sockets leave behind alike. The book describes them (chapter "Traces
//! and captures").
//!
//! What is written comes from an endpoint: how its paths stand, as a [`Sampler`] notices it, and what it decided. Who drives the
//! endpoint hands it to an [`AssociationSheets`], and DATA chunks to a [`PacketSheet`].

mod association;
mod manifest;
mod packets;
pub mod qlog;
mod sampler;
mod sheet;
mod words;

pub use association::{AssociationSheets, DECISION_COLUMNS, PATH_COLUMNS};
pub(crate) use manifest::put;
pub use manifest::{FORMAT, Manifest, RESULT_FILE, RUN_FILE, SCENARIO_FILE, Sender, Vantage};
pub use packets::{PACKET_COLUMNS, PACKET_FILE, PacketSheet, Sighting};
pub use sampler::{PathStand, Sampler};
pub use sheet::TraceError;
pub(crate) use sheet::{Sheet, seconds};
