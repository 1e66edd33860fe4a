//! Path states.

mod impatient;
mod plain;
mod potentially_failed;
mod quality_aware;

pub use impatient::Impatient;
pub use plain::Plain;
pub use potentially_failed::PotentiallyFailed;
pub use quality_aware::QualityAware;

use anabranch_core::PathState;
use anabranch_core::policy::{PathFacts, Probing};

/// A path in good health is probed when it is idle, any other at every RTO (RFC 9260 section 8.3, RFC 7829 section 3.2).
pub(crate) fn probing(path: &PathFacts) -> Probing {
    if path.state == PathState::Active && path.error_count == 0 {
        Probing::WhenIdle
    } else {
        Probing::EveryRto
    }
}
