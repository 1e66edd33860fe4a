//! Traces: the files that a simulated run and a host on real sockets leave behind alike. The book describes them (chapter "Traces
//! and captures").
//!
//! What is written comes from an endpoint: how its paths stand, as a [`Sampler`] notices it, and what it decided. Who drives the
//! endpoint hands it to an [`AssociationTables`], and DATA chunks to a [`PacketTable`].

mod association;
mod csv_table;
mod manifest;
mod packets;
pub mod qlog;
mod sampler;
mod trace_names;

pub use association::{AssociationTables, DECISION_COLUMNS, PATH_COLUMNS};
pub(crate) use csv_table::CsvTable;
pub use csv_table::TraceError;
pub(crate) use manifest::put;
pub use manifest::{FORMAT, Manifest, RESULT_FILE, RUN_FILE, SCENARIO_FILE, Sender, Vantage};
pub use packets::{ChunkRecord, PACKET_COLUMNS, PACKET_FILE, PacketTable};
pub use sampler::{PathSample, Sampler};
