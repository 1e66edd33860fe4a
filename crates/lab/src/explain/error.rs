//! Errors in a folder of traces.

use std::io;

use thiserror::Error;

/// Reason for which a trace cannot be explained. Each message names the place and the remedy.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The folder contains no run.
    #[error(
        "{folder}: not a run's trace, as it has no run.toml and none of its folders has one; \
         `anabranch run SCENARIO --trace DIR` writes a folder for each run into DIR"
    )]
    NotATrace {
        /// Path of the folder.
        folder: String,
    },
    /// The traces were written by a version with another format.
    #[error(
        "{file}: {what}, which this version ({}) does not read; trace the run again with this version",
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// File with the format.
        file: String,
        /// Description of the format.
        what: String,
    },
    /// A file is missing or cannot be read.
    #[error("{file}: {error}; a run's trace is whole only with all of its files: trace the run again")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error of the system.
        error: io::Error,
    },
    /// `run.toml`, `scenario.toml` or `result.json` is malformed.
    #[error("{file}: {what}; trace the run again")]
    Document {
        /// Path of the file.
        file: String,
        /// Description of the error.
        what: String,
    },
    /// A column is missing.
    #[error(
        "{file}: no column `{column}`, so the file was written by another version ({version}) than this one ({}); \
         trace the run again with this version",
        env!("CARGO_PKG_VERSION")
    )]
    Column {
        /// Path of the file.
        file: String,
        /// Name of the column.
        column: &'static str,
        /// Version in `run.toml`.
        version: String,
    },
    /// A field has an invalid value.
    #[error(
        "{file}, line {line}, column `{column}`: expected {expected}, found `{found}`; trace the run again"
    )]
    Row {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Name of the column.
        column: &'static str,
        /// Description of a valid value.
        expected: &'static str,
        /// Actual value.
        found: String,
    },
    /// A row has more or fewer fields than columns, or is not text.
    #[error("{file}: {error}; trace the run again")]
    Table {
        /// Path of the file.
        file: String,
        /// Error of the parser, with the line.
        error: csv::Error,
    },
}
