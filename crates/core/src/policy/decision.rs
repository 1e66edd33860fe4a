//! Choice of a policy with its reason and the refused alternatives.

use arrayvec::ArrayVec;

use crate::path_id::{MAX_PATHS, PathId};

/// Reason of a choice: the deciding rule and, if there is one, the deciding figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reason {
    /// Rule, in a few words.
    pub rule: &'static str,
    /// Name of the deciding figure with its unit, such as `cwnd_bytes`; empty if no figure decided.
    pub figure: &'static str,
    /// Value of the figure.
    pub value: f64,
}

impl Reason {
    /// Returns a rule without a figure.
    pub const fn rule(rule: &'static str) -> Self {
        Reason { rule, figure: "", value: 0.0 }
    }

    /// Returns a rule with the figure that decided.
    pub const fn figure(rule: &'static str, figure: &'static str, value: f64) -> Self {
        Reason { rule, figure, value }
    }
}

/// Reason for which a path was not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The state of the path forbids data: unconfirmed, potentially failed or inactive.
    State,
    /// The congestion window of the path is full.
    WindowFull,
    /// The path has reached its in-flight cap, which its congestion control sets beside the window.
    InFlightCap,
    /// The next packet of the path must wait for the rate that its congestion control sets.
    Paced,
    /// The path has sent all packets that it may send in this opportunity.
    Burst,
    /// The share of the path in a buffer is used up.
    BufferShare,
    /// The estimator advises against new data on the path.
    Withdrawn,
    /// The policy prefers another path.
    Preference,
}

/// Paths that were considered and not chosen.
pub type Refused = ArrayVec<(PathId, Refusal), MAX_PATHS>;

/// Choice with its reason and the refused alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<T> {
    /// Choice of the policy.
    pub choice: T,
    /// Reason of the choice.
    pub reason: Reason,
    /// Refused paths, each with the reason.
    pub refused: Refused,
}

impl<T> Decision<T> {
    /// Returns a choice without alternatives.
    pub fn new(choice: T, reason: Reason) -> Self {
        Decision { choice, reason, refused: Refused::new() }
    }

    /// Returns a choice with the alternatives that were refused.
    pub fn with_refused(choice: T, reason: Reason, refused: Refused) -> Self {
        Decision { choice, reason, refused }
    }
}
