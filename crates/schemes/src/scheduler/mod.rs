//! Schedulers: the path of new data. Shared parts; each scheduler is in the file of its component or preset.

pub(crate) mod arrival;
pub(crate) mod by_rtt;

pub use by_rtt::Unmeasured;

use anabranch_core::policy::{PathFacts, View};
use anabranch_core::units::ChunkBytes;

/// What a path's window still admits.
pub(crate) fn free(path: &PathFacts, view: &View<'_>) -> ChunkBytes {
    path.cwnd - view.outstanding(path.id)
}

/// A path's window as a divisor: congestion control keeps it above one chunk, but before a path's first event it is zero.
pub(crate) fn window(path: &PathFacts) -> f64 {
    path.cwnd.max(path.largest_chunk).get().max(1) as f64
}
