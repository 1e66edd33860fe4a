//! Receiving side of an association: record of the TSNs that have arrived, and reassembly of messages.

mod arena;
mod assembly;
mod data_chunk;
mod interleaved;
mod reassembly;
mod receiver;
mod ring;
mod tracker;

#[cfg(test)]
mod properties;

pub(crate) use assembly::SkippedTo;
pub(crate) use data_chunk::DataChunk;
pub use reassembly::ReceivedMessage;
pub(crate) use reassembly::{Fragment, Violation};
pub(crate) use receiver::{BlocksByDelivery, DataOutcome, Receiver};
