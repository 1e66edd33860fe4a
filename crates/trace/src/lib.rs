//! Traces: files of simulated runs and of hosts on real sockets, in the same format. The book describes them (chapter "Traces and
//! captures").
//!
//! Traces contain the states of an endpoint's paths, of which a [`Sampler`] finds the changes, and its decisions. The driver of the
//! endpoint passes them to an [`AssociationTables`], and DATA chunks to a [`PacketTable`].

mod association;
mod csv_table;
mod manifest;
mod packets;
pub mod qlog;
mod sampler;
mod trace_names;

pub use association::{AssociationTables, DECISION_COLUMNS, PATH_COLUMNS};
pub use csv_table::{CsvTable, Row, TraceError};
pub use manifest::{FORMAT, Manifest, RESULT_FILE, RUN_FILE, SCENARIO_FILE, Sender, Vantage, put};
pub use packets::{ChunkRecord, PACKET_COLUMNS, PACKET_FILE, PacketTable};
pub use sampler::{PathSample, Sampler};
