//! Traces of recorded networks that a link follows: `capacity`, `delay_trace`, `loss_trace` and `outage_trace`.

use std::path::PathBuf;

use anabranch_core::time::Span;
use anabranch_sim::{Columns, RateUnit};

use crate::document::Node;
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{ANY_TIME, Flag, Form, GAP, NumberIn, OneOf, Text};
use crate::inner::{Inner, Short};
use crate::reader::Reader;
use crate::section::{Described, inline, section};

/// Trace file of a link, and the part of it that a run plays back.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFile {
    /// Path of the file as in the scenario. Reading the scenario does not check that the file exists.
    pub path: PathBuf,
    /// Columns of the time and of the value.
    pub columns: Columns,
    /// Time in the trace at the beginning of the run.
    pub start: Span,
    /// Set to start the trace again after its end.
    pub repeat: bool,
    /// Factor by which values are multiplied.
    pub scale: f64,
}

/// Trace of the capacity of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityFile {
    /// File with the rates, and its use.
    pub file: TraceFile,
    /// Unit of its rates, if the names of columns do not state it.
    pub unit: Option<RateUnit>,
    /// Step of whose lengths the mean rates are used.
    pub resample: Option<Span>,
}

/// Trace of delays, losses or outages.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesFile(pub TraceFile);

const SCALE: NumberIn = NumberIn(1e-6..=1000.0);

section! {
    /// File of a trace, and the part of it that a run plays back.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct TraceRows {
        /// The file, relative to the folder of the scenario file.
        file: String = "file" [required] Text;
        /// Name or number of the column with the values, in files with more than two columns.
        column: Option<String> = "column" [optional "the second"] Text;
        /// Name or number of the column with the times.
        time: Option<String> = "time" [optional "the first"] Text;
        /// Unit of the times.
        time_unit: bool = "time_unit" [or false] OneOf(&[("s", false), ("ms", true)]);
        /// Time that each line lasts, in files without times, which have one value per line unless `column` names one.
        step: Option<Span> = "step" [optional "times are in the file"] GAP;
        /// Time in the trace at which the run starts. Traces that were recorded together stay simultaneous with the same `start`.
        start: Span = "start" [or Span::ZERO] ANY_TIME;
        /// Start again after the end. Without it, a link with a capacity trace sends nothing after its end, and other values stay.
        repeat: bool = "repeat" [or true] Flag;
        /// Factor of rates and delays, such as 0.5 for delays that were measured as round-trip times.
        scale: f64 = "scale" [or 1.0] SCALE;
    }
}

section! {
    /// Trace of a capacity.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct CapacityRows {
        /// File with the rates.
        file: TraceRows = "" [flatten] ();
        /// Unit of the rates; not for files of Mahimahi.
        unit: Option<RateUnit> = "unit" [optional "as the column is named, or else `\"Mbit/s\"`"] OneOf(&RateUnit::NAMES);
        /// Use the mean rate of each such time.
        resample: Option<Span> = "resample" [optional "as recorded"] GAP;
    }
}

impl TraceFile {
    /// Returns a file that is played back from its beginning and repeated.
    pub fn new(path: impl Into<PathBuf>) -> TraceFile {
        let (path, columns) = (path.into(), Columns::default());
        TraceFile { path, columns, start: Span::ZERO, repeat: true, scale: 1.0 }
    }

    fn from_rows(rows: TraceRows, reader: &Reader<'_>) -> TraceFile {
        let TraceRows { file, column, time, time_unit, step, start, repeat, scale } = rows;
        let wrong = [("time", time.is_some()), ("time_unit", time_unit)];
        for (key, _) in wrong.into_iter().filter(|(_, is_given)| step.is_some() && *is_given) {
            let help = format!("leave `{key}` out, or `step` if the file has times");
            let message = "lines that last a `step` have no times";
            reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
        }
        TraceFile {
            path: PathBuf::from(file),
            columns: Columns { time, value: column, in_milliseconds: time_unit, step },
            start,
            repeat,
            scale,
        }
    }

    fn to_rows(&self) -> TraceRows {
        TraceRows {
            file: self.path.to_string_lossy().into_owned(),
            column: self.columns.value.clone(),
            time: self.columns.time.clone(),
            time_unit: self.columns.in_milliseconds,
            step: self.columns.step,
            start: self.start,
            repeat: self.repeat,
            scale: self.scale,
        }
    }
}

impl Described for CapacityFile {
    type Rows = CapacityRows;

    fn from_rows(rows: CapacityRows, reader: &mut Reader<'_>) -> Option<CapacityFile> {
        let CapacityRows { file, unit, resample } = rows;
        Some(CapacityFile { file: TraceFile::from_rows(file, reader), unit, resample })
    }

    fn to_rows(&self) -> CapacityRows {
        CapacityRows { file: self.file.to_rows(), unit: self.unit, resample: self.resample }
    }
}

impl Described for SeriesFile {
    type Rows = TraceRows;

    fn from_rows(rows: TraceRows, reader: &mut Reader<'_>) -> Option<SeriesFile> {
        Some(SeriesFile(TraceFile::from_rows(rows, reader)))
    }

    fn to_rows(&self) -> TraceRows {
        self.0.to_rows()
    }
}

/// Name of a trace file, or a table.
pub(crate) const CAPACITY: Short<CapacityFile, FileName<CapacityFile>> =
    Short(Inner::new("CapacityTrace"), FileName(|file| CapacityFile { file, unit: None, resample: None }));

/// Name of a trace file, or a table.
pub(crate) const SERIES: Short<SeriesFile, FileName<SeriesFile>> =
    Short(Inner::new("SeriesTrace"), FileName(SeriesFile));

/// Name of a file alone.
pub(crate) struct FileName<T>(fn(TraceFile) -> T);

impl<T: Described> Form for FileName<T> {
    type Output = T;

    fn expected(&self) -> String {
        "the name of a trace file".to_owned()
    }

    fn read(&self, node: &Node) -> Result<T, Fault> {
        let path = Text.read(node).map_err(|fault| fault.with_expected(self.expected()))?;
        Ok(self.0(TraceFile::new(path)))
    }

    fn write(&self, value: &T) -> String {
        inline(&value.to_rows())
    }

    fn about(&self) -> About {
        About::plain("file name", "str")
    }
}
