//! Where a run's time and capacity went, added up from the traces it left.
//!
//! The traces are read in one pass, in step with each other, and never held: what is kept is a sum per figure, and a few
//! bytes for each chunk that may still be sent again.

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
    PathTime, PeerWindow, Placement, Refusals, Resent, Retransmissions, StateChange, Totals, WhyTime,
};

/// The runs in a folder of traces: the folder itself if it is a run's, or else those of its folders that are, by name.
///
/// # Errors
/// [`ExplainError::NotATrace`] if there is none, [`ExplainError::Unreadable`] if the folder cannot be read.
pub fn find_runs(folder: &Path) -> Result<Vec<PathBuf>, ExplainError> {
    folder::find_runs(folder)
}

/// Adds up the traces of one run.
///
/// # Errors
/// If they cannot be read, are of another format or hold what no trace holds. Traces that end too early are no error: the
/// notes say so, and the figures end where the first of them does.
pub fn explain(folder: &Path) -> Result<Explanation, ExplainError> {
    reader::explain(folder)
}

#[cfg(test)]
mod tests;
