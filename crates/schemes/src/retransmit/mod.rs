//! Where lost chunks go again. Whichever path a policy prefers must have room; there is no second choice
//! (ns-2), unless it says otherwise.

mod alternate;
mod asap;
mod best;
mod least_delay;
mod opportunistic;
mod rescheduling;
mod same;
mod soonest;

pub use alternate::Alternate;
pub use asap::Asap;
pub use best::{Best, Preference};
pub use least_delay::{LeastDelay, TransferDelay};
pub use opportunistic::{Condition, Opportunistic};
pub use rescheduling::{Limit, Rescheduling, ReschedulingSettings};
pub use same::Same;
pub use soonest::Soonest;

use anabranch_core::policy::{Decision, HeadOfLine, PathFacts, Reason, Refusal, Refused, Route};

/// Sends on `path` if it has room, else waits.
pub(crate) fn if_room(path: &PathFacts, reason: Reason, mut refused: Refused) -> Decision<Route> {
    if path.admits_retransmission() {
        return Decision::with_refused(Route::Path(path.id), reason, refused);
    }
    let _ = refused.try_push((path.id, no_room(path)));
    Decision::with_refused(Route::Wait, reason, refused)
}

/// Why a path that is active cannot take a retransmission.
pub(crate) fn no_room(path: &PathFacts) -> Refusal {
    if path.resend_burst_left == 0 { Refusal::Burst } else { Refusal::WindowFull }
}

pub(crate) fn nowhere() -> Decision<Route> {
    Decision::new(Route::Wait, Reason::rule("no path is active"))
}

/// Why a path cannot take a copy of the head of line, or the head of line itself.
pub(crate) fn cannot_relieve(path: &PathFacts, head: &HeadOfLine) -> Option<Refusal> {
    if !path.is_active() {
        return Some(Refusal::State);
    }
    if head.in_flight_on.contains(path.id) {
        return Some(Refusal::Preference);
    }
    (!path.admits_retransmission()).then(|| no_room(path))
}
