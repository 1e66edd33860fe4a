//! Where new data goes.

mod arrival;
mod ascending_backlog;
mod blest;
mod by_rtt;
mod data_distribution;
mod ecf;
mod index_order;
mod min_rtt;
mod otias;
mod primary;
mod redundant;
mod round_robin;
mod sttf;
mod weighted;
mod window_fill;

pub use ascending_backlog::AscendingBacklog;
pub use blest::{Blest, BlestRules, HeldUpBy};
pub use by_rtt::Unmeasured;
pub use data_distribution::{Allowance, DataDistribution, Distributed, DistributionRules, Piece, QueueBound};
pub use ecf::{EarliestCompletion, EcfRules};
pub use index_order::IndexOrder;
pub use min_rtt::MinRtt;
pub use otias::{Otias, WaitRounding};
pub use primary::PrimaryOnly;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use sttf::{Replanning, ShortestTransfer, TransferRtt};
pub use weighted::Weighted;
pub use window_fill::RotatingWindowFill;

pub(crate) use data_distribution::{delivery_time, handling_time, rounds};

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
