//! Where new data goes.

mod ascending_backlog;
mod index_order;
mod primary;
mod window_fill;

pub use ascending_backlog::AscendingBacklog;
pub use index_order::IndexOrder;
pub use primary::PrimaryOnly;
pub use window_fill::RotatingWindowFill;

use anabranch_core::policy::{PathFacts, Refusal, SendAsk, View};

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
