//! Failover: the state of each path.

pub(crate) mod error_counter;

pub use error_counter::ErrorCounter;

use anabranch_core::PathState;
use anabranch_core::policy::{PathFacts, Probing};

use crate::definition::Equation;

pub(crate) const PF_PROBING: Equation = Equation {
    name: "PF, probing",
    rule: "a HEARTBEAT at once, then one per RTO; after each without an answer: RTO = min(2 RTO, 60 s), errors + 1, windows \
           unchanged",
    file: file!(),
};

/// Probes an active path without errors when it is idle, others at every RTO (RFC 9260 section 8.3, RFC 7829 section 3.2).
pub(crate) fn probing(path: &PathFacts) -> Probing {
    if path.state == PathState::Active && path.error_count == 0 {
        Probing::WhenIdle
    } else {
        Probing::EveryRto
    }
}
