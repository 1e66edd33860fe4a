//! Recorded networks: capacity, delay, loss and outages over time.
//!
//! All traces of a world are read on its clock, each from its own offset. Traces that were recorded at the same time therefore stay
//! simultaneous if they have the same offset.

mod capacity;
mod course;
mod lines;
mod series;
mod table;

pub use capacity::{CapacityTrace, OPPORTUNITY, RateUnit};
pub(crate) use course::TraceCursor;
pub use series::Series;
pub(crate) use series::SeriesCursor;
pub use table::Columns;

use anabranch_core::time::Span;

/// Part of a trace that a link follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback<T> {
    /// Trace that is played back.
    pub trace: T,
    /// Time in the trace at the beginning of the run.
    pub offset: Span,
    /// Set to start the trace again after its end. If it is not set, a link with a trace of capacity carries no packets after the
    /// end, and a link with a series keeps the last value.
    pub repeat: bool,
}

impl<T> Playback<T> {
    /// Returns the trace from its beginning, repeated without end.
    pub const fn repeated(trace: T) -> Self {
        Playback { trace, offset: Span::ZERO, repeat: true }
    }

    /// Returns the trace from its beginning, once.
    pub const fn once(trace: T) -> Self {
        Playback { trace, offset: Span::ZERO, repeat: false }
    }

    /// Returns the same use of the trace, from another time in the trace on.
    pub fn starting_at(self, offset: Span) -> Self {
        Playback { offset, ..self }
    }
}

/// Largest number of points of a trace: moments with opportunities, or changes of a value.
pub const MAX_POINTS: usize = 1 << 22;
/// Largest number of bytes of a line.
pub const MAX_LINE: usize = 4096;
/// Longest trace.
pub const MAX_DURATION: Span = Span::from_secs(10_000_000);
/// Largest rate of a trace, in bit/s.
pub const MAX_RATE: u64 = 1_000_000_000_000;

/// Reason for which a trace is refused, with its line and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The input cannot be read.
    #[error("line {line}: cannot be read: {reason}; check that the file is text and readable")]
    Unreadable {
        /// Number of the line, from 1.
        line: u64,
        /// Message of the system.
        reason: String,
    },
    /// A line is too long to be one of a trace.
    #[error("line {line} has more than {MAX_LINE} bytes; write one point per line")]
    LongLine {
        /// Number of the line, from 1.
        line: u64,
    },
    /// A line does not have the columns of the format.
    #[error("line {line} has {found} columns instead of {expected}; keep {columns}")]
    Columns {
        /// Number of the line, from 1.
        line: u64,
        /// Number of columns found.
        found: usize,
        /// Number of columns of the format.
        expected: usize,
        /// Names of the columns.
        columns: &'static str,
    },
    /// A column of the table is missing.
    #[error("line {line}: there is no column {name:?}; the columns are {}", columns.join(", "))]
    NoColumn {
        /// Number of the line with the names, from 1.
        line: u64,
        /// Name of the column.
        name: String,
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// A field is not a number, or out of its range.
    #[error("line {line}: {text:?} is no {quantity}; {remedy}")]
    Value {
        /// Number of the line, from 1.
        line: u64,
        /// Text of the field.
        text: String,
        /// Description of a valid value.
        quantity: &'static str,
        /// Suggested correction.
        remedy: &'static str,
    },
    /// Time does not advance.
    #[error(
        "line {line}: {time} is not after the line before it; sort the lines by time and leave duplicates out"
    )]
    Order {
        /// Number of the line, from 1.
        line: u64,
        /// Text of the time.
        time: String,
    },
    /// The trace is too large.
    #[error(
        "line {line}: the trace has more than {MAX_POINTS} points; cut it, or resample it with a longer step"
    )]
    Large {
        /// Number of the line, from 1.
        line: u64,
    },
    /// The trace lasts too long.
    #[error("line {line}: the trace lasts longer than {} s; cut it", MAX_DURATION.as_nanos() / 1_000_000_000)]
    Long {
        /// Number of the line, from 1.
        line: u64,
    },
    /// The trace has no duration: it is empty, has one point, or ends at time zero.
    #[error("the trace has {points} points and lasts no time; give at least {least}")]
    Empty {
        /// Number of points.
        points: usize,
        /// Least content of a trace of the format.
        least: &'static str,
    },
    /// The trace carries nothing.
    #[error(
        "the rate is zero throughout the trace, so that no packet would ever leave; take a section with capacity, or describe an outage with a series of outages"
    )]
    NoCapacity,
    /// A parameter of an operation on a trace is out of its range.
    #[error("{name} {what}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Permitted range.
        what: &'static str,
    },
}
