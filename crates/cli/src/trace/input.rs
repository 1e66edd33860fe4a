//! Traces that a command reads.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anabranch_core::time::Span;
use anabranch_sim::{CapacityTrace, Columns, RateUnit};
use clap::Args;

use crate::exit::CommandError;
use crate::output;

/// Files with traces.
#[derive(Debug, Args)]
pub(super) struct Input {
    /// Files with traces
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Name or number of a column with rates; can be repeated [default: the second of two]
    #[arg(long, value_name = "COLUMN")]
    column: Vec<String>,

    #[command(flatten)]
    table: TableArguments,

    /// Leave files out that cannot be read
    #[arg(long)]
    skip: bool,
}

/// Description of a table beside its rates.
#[derive(Debug, Args)]
pub(super) struct TableArguments {
    /// Name or number of the column with times [default: the first]
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Unit of the rates [default: as the column is named, or else Mbit/s]
    #[arg(long, value_name = "UNIT", value_parser = RateUnit::named)]
    unit: Option<RateUnit>,
}

/// Trace with its name.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) trace: CapacityTrace,
}

impl Input {
    /// Returns the traces of all columns of the first file, then those of the second, and so on.
    pub(super) fn load(&self) -> Result<Vec<Recorded>, CommandError> {
        let mut loaded = Vec::new();
        for file in &self.files {
            match self.columns_of(file) {
                Ok(traces) => loaded.extend(traces),
                Err(error) if self.skip => output::notice(format_args!("{error}; left out")),
                Err(error) => return Err(CommandError::failure(error)),
            }
        }
        if loaded.is_empty() {
            return Err(CommandError::failure("every file was left out"));
        }
        Ok(loaded)
    }

    /// Returns the only trace.
    pub(super) fn load_one(&self) -> Result<Recorded, CommandError> {
        let mut loaded = self.load()?;
        match (loaded.pop(), loaded.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(CommandError::usage("one trace is converted at a time; give one file and one --column")),
        }
    }

    /// Returns the names of the columns, if any are given.
    pub(super) fn column_names(&self) -> &[String] {
        &self.column
    }

    fn columns_of(&self, file: &Path) -> Result<Vec<Recorded>, String> {
        if self.column.is_empty() {
            return Ok(vec![self.table.read(file, None)?]);
        }
        self.column.iter().map(|column| self.table.read(file, Some(column))).collect()
    }
}

impl TableArguments {
    /// Returns the trace of a file with one trace.
    pub(super) fn load(&self, file: &Path) -> Result<Recorded, CommandError> {
        self.read(file, None).map_err(CommandError::failure)
    }

    fn read(&self, file: &Path, column: Option<&String>) -> Result<Recorded, String> {
        let name = file.display().to_string();
        let input = File::open(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
        let columns = Columns { time: self.time.clone(), value: column.cloned(), ..Columns::default() };
        let trace = CapacityTrace::read(BufReader::new(input), &columns, self.unit);
        let trace = trace.map_err(|error| format!("{name}: {error}"))?;
        let name = column.map_or(name.clone(), |column| format!("{name} {column}"));
        Ok(Recorded { name, trace })
    }
}

impl Recorded {
    /// Returns an error about the trace.
    pub(super) fn fault(&self, error: &impl std::fmt::Display) -> CommandError {
        CommandError::failure(format_args!("{}: {error}", self.name))
    }

    /// Returns the mean rates of equal steps in bit/s.
    pub(super) fn rates(&self, step: Span) -> Result<Vec<u64>, CommandError> {
        let rates = self.trace.rates(step).map_err(|error| self.fault(&error))?;
        Ok(rates.into_iter().map(|(_, rate)| rate.as_bps()).collect())
    }
}
