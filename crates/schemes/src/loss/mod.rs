//! Which chunks count as lost.

mod missing_reports;

pub use missing_reports::MissingReports;
