//! Which chunks count as lost.

mod adaptive_trigger;
mod missing_reports;
mod rack;

pub use adaptive_trigger::{Adaptation, AdaptiveTrigger, FreeSpace, Pivots};
pub use missing_reports::MissingReports;
pub use rack::{Rack, RackSettings};
