//! What can be wrong with a folder of traces.

use std::io;

use thiserror::Error;

/// Why a trace cannot be explained. Each message names the place and says what to do.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The folder holds no run.
    #[error(
        "{folder}: not a run's trace, as it has no run.toml and none of its folders has one; \
         `anabranch run SCENARIO --trace DIR` writes a folder for each run into DIR"
    )]
    NotATrace {
        /// The folder.
        folder: String,
    },
    /// The traces were written by a version that wrote them differently.
    #[error(
        "{file}: {what}, which this version ({}) does not read; trace the run again with this version",
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The file that shows it.
        file: String,
        /// What it says of its format.
        what: String,
    },
    /// A file is not there or cannot be read.
    #[error("{file}: {error}; a run's trace is whole only with all of its files: trace the run again")]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong.
        error: io::Error,
    },
    /// `run.toml`, `scenario.toml` or `result.json` is not what a run writes.
    #[error("{file}: {what}; trace the run again")]
    Document {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// A column is missing.
    #[error(
        "{file}: there is no column `{column}`, so it was written by another version ({version}) than this one ({}); \
         trace the run again with this version",
        env!("CARGO_PKG_VERSION")
    )]
    Column {
        /// The file.
        file: String,
        /// The column.
        column: &'static str,
        /// The version that `run.toml` names.
        version: String,
    },
    /// A row holds what no trace holds.
    #[error(
        "{file}, line {line}, column `{column}`: expected {expected}, found `{found}`; trace the run again"
    )]
    Row {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A row has more or fewer fields than columns, or is not text.
    #[error("{file}: {error}; trace the run again")]
    Table {
        /// The file.
        file: String,
        /// What is wrong and where.
        error: csv::Error,
    },
}
