//! A choice together with why it was made and what was refused.

use arrayvec::ArrayVec;

use crate::path_id::{MAX_PATHS, PathId};

/// Why a choice was made: the rule that decided and, if there is one, the figure that decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reason {
    /// The rule, in a few words.
    pub rule: &'static str,
    /// The name of the deciding figure with its unit, such as `cwnd_bytes`; empty if no figure decided.
    pub figure: &'static str,
    /// Its value.
    pub value: f64,
}

impl Reason {
    /// A rule that no figure decided.
    pub const fn rule(rule: &'static str) -> Self {
        Reason { rule, figure: "", value: 0.0 }
    }

    /// A rule with the figure that decided.
    pub const fn figure(rule: &'static str, figure: &'static str, value: f64) -> Self {
        Reason { rule, figure, value }
    }
}

/// Why a path was not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its state forbids data: unconfirmed, potentially failed or inactive.
    State,
    /// Its congestion window is full.
    WindowFull,
    /// As much is in flight as its congestion control lets be, whatever the window says.
    InFlightCap,
    /// Its next packet may not leave yet at the rate that its congestion control sets.
    Paced,
    /// It has had its packets of this send opportunity.
    Burst,
    /// Its share of a buffer is used up.
    BufferShare,
    /// The policy prefers another.
    Preference,
}

/// The paths that were considered and not chosen.
pub type Refused = ArrayVec<(PathId, Refusal), MAX_PATHS>;

/// A choice, its reason, and the refused alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<T> {
    /// What was chosen.
    pub choice: T,
    /// Why.
    pub reason: Reason,
    /// What was refused, and why.
    pub refused: Refused,
}

impl<T> Decision<T> {
    /// A choice without alternatives.
    pub fn new(choice: T, reason: Reason) -> Self {
        Decision { choice, reason, refused: Refused::new() }
    }

    /// A choice with the alternatives that were refused.
    pub fn with_refused(choice: T, reason: Reason, refused: Refused) -> Self {
        Decision { choice, reason, refused }
    }
}
