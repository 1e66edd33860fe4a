//! Schedulers: the path of new data. Shared parts; each scheduler is in the file of its component or preset.

pub(crate) mod arrival;
pub(crate) mod by_rtt;

pub use by_rtt::Unmeasured;

use anabranch_core::policy::{PathFacts, Refusal, SendAsk, View};
use anabranch_core::units::ChunkBytes;

/// Why a path cannot take new data now; `None` if it can.
pub(crate) fn refusal(path: &PathFacts, _ask: &SendAsk, view: &View<'_>) -> Option<Refusal> {
    if !path.is_active() {
        Some(Refusal::State)
    } else if !view.admits_new_data(path.id) {
        Some(Refusal::WindowFull)
    } else if path.burst_left == 0 {
        Some(Refusal::Burst)
    } else if !path.within_share {
        Some(Refusal::BufferShare)
    } else {
        None
    }
}

/// What a path's window still admits.
pub(crate) fn free(path: &PathFacts, view: &View<'_>) -> ChunkBytes {
    path.cwnd - view.outstanding(path.id)
}

/// A path's window as a divisor: congestion control keeps it above one chunk, but before a path's first event it is zero.
pub(crate) fn window(path: &PathFacts) -> f64 {
    path.cwnd.max(path.largest_chunk).get().max(1) as f64
}
