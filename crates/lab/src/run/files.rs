//! Files that a scenario names, and the traces of links among them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anabranch_core::time::Span;
use anabranch_scenario::units::format_span;
use anabranch_scenario::{CapacityFile, SeriesFile, TraceFile};
use anabranch_sim::{CapacityTrace, Playback, Series, TraceError};
use thiserror::Error;

/// Folder that paths in a scenario are relative to, with the traces that were read from it. Each trace is read once for all runs.
#[derive(Debug, Default)]
pub struct ScenarioFiles {
    folder: PathBuf,
    capacities: Mutex<Vec<(CapacityFile, CapacityTrace)>>,
    series: Mutex<Vec<((SeriesKind, SeriesFile), Series)>>,
}

/// Values of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    Delay,
    Loss,
    Outage,
}

/// Error in the trace of a link.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{path}: {fault}")]
pub struct TraceFileError {
    /// Path of the file.
    pub path: String,
    /// Reason for which the file cannot be used.
    pub fault: TraceFileFault,
}

/// Reason for which a trace of a link cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TraceFileFault {
    /// The file cannot be opened.
    #[error("cannot be read: {0}; a trace's path is relative to the folder of the scenario file")]
    Unreadable(String),
    /// The content is invalid.
    #[error(transparent)]
    Content(#[from] TraceError),
    /// The run would start after the end of the trace.
    #[error("the trace lasts {lasts}, so `start` cannot be {start}; give less, or set `repeat`")]
    Start {
        /// Time in the trace at which the run starts.
        start: String,
        /// Duration of the trace.
        lasts: String,
    },
}

impl ScenarioFiles {
    /// Returns the files of a folder. Nothing is read before it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        ScenarioFiles { folder: folder.into(), ..ScenarioFiles::default() }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the capacity that a link follows.
    ///
    /// # Errors
    /// Returns [`TraceFileError`] if the file cannot be read, or does not fit its use.
    pub fn capacity(&self, wanted: &CapacityFile) -> Result<Playback<CapacityTrace>, TraceFileError> {
        let trace = self.once(&self.capacities, wanted, &wanted.file, |file| {
            let trace = CapacityTrace::read(file, &wanted.file.columns, wanted.unit)?;
            let trace = if wanted.file.scale == 1.0 { trace } else { trace.scaled(wanted.file.scale)? };
            wanted.resample.map_or(Ok(trace.clone()), |step| trace.resampled(step))
        })?;
        self.check_start(&wanted.file, trace.duration())?;
        Ok(Playback { trace, offset: wanted.file.start, repeat: wanted.file.repeat })
    }

    /// Returns the delays that a link follows.
    ///
    /// # Errors
    /// As [`capacity`](Self::capacity).
    pub fn delays(&self, wanted: &SeriesFile) -> Result<Playback<Series>, TraceFileError> {
        self.series(SeriesKind::Delay, wanted)
    }

    /// Returns the values that a link follows.
    pub(crate) fn series(
        &self,
        kind: SeriesKind,
        wanted: &SeriesFile,
    ) -> Result<Playback<Series>, TraceFileError> {
        let SeriesFile(file) = wanted;
        let trace = self.once(&self.series, &(kind, wanted.clone()), file, |input| match kind {
            SeriesKind::Delay => Series::read_delays(input, &file.columns)?.scaled(file.scale),
            SeriesKind::Loss => Series::read_losses(input, &file.columns),
            SeriesKind::Outage => Series::read_outages(input, &file.columns),
        })?;
        self.check_start(file, trace.duration())?;
        Ok(Playback { trace, offset: file.start, repeat: file.repeat })
    }

    /// Returns the trace of a file, which is read if it is not stored.
    fn once<K: Clone + PartialEq, T: Clone>(
        &self,
        stored: &Mutex<Vec<(K, T)>>,
        key: &K,
        file: &TraceFile,
        read: impl FnOnce(BufReader<File>) -> Result<T, TraceError>,
    ) -> Result<T, TraceFileError> {
        let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, trace)) = stored.iter().find(|(other, _)| other == key) {
            return Ok(trace.clone());
        }
        let input = File::open(self.folder.join(&file.path))
            .map_err(|error| self.fault(file, TraceFileFault::Unreadable(error.to_string())))?;
        let trace = read(BufReader::new(input)).map_err(|error| self.fault(file, error.into()))?;
        stored.push((key.clone(), trace.clone()));
        Ok(trace)
    }

    fn check_start(&self, file: &TraceFile, duration: Span) -> Result<(), TraceFileError> {
        if file.repeat || file.start < duration {
            return Ok(());
        }
        let (start, lasts) = (format_span(file.start), format_span(duration));
        Err(self.fault(file, TraceFileFault::Start { start, lasts }))
    }

    fn fault(&self, file: &TraceFile, fault: TraceFileFault) -> TraceFileError {
        TraceFileError { path: self.folder.join(&file.path).display().to_string(), fault }
    }
}
