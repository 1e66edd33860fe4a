//! Core's numbers and names in the form for Python.

use anabranch_core::PathState;
use anabranch_core::time::{Span, Time};

pub(super) fn milliseconds(span: Span) -> f64 {
    span.as_millis_f64()
}

pub(super) fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

pub(super) fn state_name(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially-failed",
        PathState::Inactive => "inactive",
    }
}
