//! A table that is written row by row.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anabranch_core::time::Time;
use thiserror::Error;

/// Why a file of a trace could not be written.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub error: std::io::Error,
}

/// A CSV file. Rows are written deep inside a run, so the first error is kept for when the file is flushed.
pub(crate) struct CsvTable {
    path: PathBuf,
    rows: csv::Writer<BufWriter<File>>,
    error: Option<csv::Error>,
}

impl CsvTable {
    pub(crate) fn create(folder: &Path, name: &str, columns: &[&str]) -> Result<Self, TraceError> {
        let path = folder.join(name);
        let wrong = |error: std::io::Error| TraceError { path: path.clone(), error };
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let file = File::create(&path).map_err(wrong)?;
        let mut rows = csv::Writer::from_writer(BufWriter::new(file));
        rows.write_record(columns).map_err(|e| wrong(std::io::Error::other(e)))?;
        Ok(CsvTable { path, rows, error: None })
    }

    pub(crate) fn row<const N: usize>(&mut self, row: &[String; N]) {
        if let Err(error) = self.rows.write_record(row) {
            self.error.get_or_insert(error);
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = match self.error.take() {
            Some(error) => Err(std::io::Error::other(error)),
            None => self.rows.flush(),
        };
        flushed.map_err(|error| TraceError { path: self.path.clone(), error })
    }
}

/// A time as all files have it.
pub(crate) fn seconds(now: Time) -> String {
    format!("{:.9}", now.as_secs_f64())
}
