//! Schedulers: the path of new data. This module contains shared parts; each scheduler is in the file of its component or preset.

pub(crate) mod arrival;
pub(crate) mod by_rtt;

pub use by_rtt::Unmeasured;

use anabranch_core::policy::{PathFacts, View};
use anabranch_core::units::ChunkBytes;

/// Returns the free part of a path's window.
pub(crate) fn free(path: &PathFacts, view: &View<'_>) -> ChunkBytes {
    path.cwnd - view.outstanding(path.id)
}

/// Returns a path's window as a divisor. Congestion control keeps it at one chunk or more, but before the first event it is zero.
pub(crate) fn window(path: &PathFacts) -> f64 {
    path.cwnd.max(path.largest_chunk).get().max(1) as f64
}
