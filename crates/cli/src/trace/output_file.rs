//! Output of a command into a file, or to standard output.

use std::path::PathBuf;

use clap::Args;

use crate::exit::CommandError;
use crate::output;

/// Place of the result.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Output {
    pub(super) fn write(&self, text: &[u8]) -> Result<(), CommandError> {
        let Some(file) = &self.out else {
            output::print(&String::from_utf8_lossy(text));
            return Ok(());
        };
        std::fs::write(file, text).map_err(|error| {
            CommandError::failure(format_args!("{}: cannot be written: {error}", file.display()))
        })
    }
}
