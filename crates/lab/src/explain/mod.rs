//! Use of a run's time and capacity, computed from its traces.
//!
//! The traces are read in one pass, in parallel and in the order of their times, and are not kept in memory. The state is a sum per
//! figure, and a few bytes for each chunk that can still be retransmitted.

mod account;
mod capacity;
mod chunks;
mod error;
mod findings;
mod folder;
mod model;
mod reader;
mod table;
mod tally;

use std::path::{Path, PathBuf};

pub use error::ExplainError;
pub use model::{
    Abandonments, Choice, Cut, Drops, Explanation, FlowExplanation, HoleTime, Losses, PathExplanation,
    PathTime, PeerWindow, Placement, ReasonTime, Refusals, RetransmissionGroup, Retransmissions, StateChange,
    Totals,
};

/// Returns the runs in a folder of traces: the folder itself if it contains a run, or else its subfolders with runs, by name.
///
/// # Errors
/// Returns [`ExplainError::NotATrace`] if the folder contains no run, [`ExplainError::Unreadable`] if the folder cannot be read.
pub fn find_runs(folder: &Path) -> Result<Vec<PathBuf>, ExplainError> {
    folder::find_runs(folder)
}

/// Computes the explanation of one run from its traces.
///
/// # Errors
/// Returns an error if the traces cannot be read, have another format or are malformed. Truncated traces are not an error: the
/// notes report them, and the figures end with the shortest trace.
pub fn explain(folder: &Path) -> Result<Explanation, ExplainError> {
    reader::explain(folder)
}

#[cfg(test)]
mod tests;
