//! Loss detection.

pub(crate) mod missing_reports;

pub use missing_reports::MissingReports;
