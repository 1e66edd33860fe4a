//! Mode switching: detects competing flows that fill the queue, and adapts delta (Arun and Balakrishnan 2018, section 2.2).

use anabranch_core::time::{Span, Time};

use crate::component::copa::delays::{MAX_MEMORY_ROUNDS, NEARLY_EMPTY};
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 2.2, competitive mode",
    rule: text!(
        "dq >= {} (RTTmax - RTTmin) for {} round trips: 1/delta += 1 per round, halved in one with a \
         loss, 1/delta >= 1 / the default; RTTmax over {} round trips",
        NEARLY_EMPTY,
        EMPTY_WITHIN_ROUNDS,
        MAX_MEMORY_ROUNDS,
    ),
    file: file!(),
}];

/// Number of round trips within which a queue of Copa flows alone is nearly empty once.
const EMPTY_WITHIN_ROUNDS: u64 = 5;

/// Mode of a path, which determines its delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// Default mode: delta as configured.
    Default,
    /// 1/delta follows losses, like the window of a flow that fills the queue.
    Competitive {
        /// 1/delta.
        inverse: f64,
    },
}

impl Mode {
    /// Returns the mode for the next round.
    pub(super) fn end_round(self, empty_at: Time, lost: bool, rtt: Span, now: Time, delta: f64) -> Self {
        if now.since(empty_at) <= rtt.times(EMPTY_WITHIN_ROUNDS) {
            return Mode::Default;
        }
        let inverse = match self {
            Mode::Default => 1.0 / delta,
            Mode::Competitive { inverse } => inverse,
        };
        let next = if lost { inverse / 2.0 } else { inverse + 1.0 };
        Mode::Competitive { inverse: next.max(1.0 / delta) }
    }

    pub(super) fn delta(self, default: f64) -> f64 {
        match self {
            Mode::Default => default,
            Mode::Competitive { inverse } => 1.0 / inverse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn after_five_rounds_without_an_empty_queue_delta_follows_losses() {
        let next = |mode: Mode, ms, lost| mode.end_round(at(1_000), lost, RTT, at(ms), 0.5);
        assert_eq!(next(Mode::Default, 1_500, false), Mode::Default);
        let competitive = next(Mode::Default, 1_501, false);
        assert_eq!(competitive, Mode::Competitive { inverse: 3.0 });
        let longer = (0..7).fold(competitive, |mode, _| next(mode, 1_600, false));
        assert_eq!(longer.delta(0.5), 0.1);
        assert_eq!(next(longer, 1_700, true), Mode::Competitive { inverse: 5.0 });
        let least = (0..3).fold(longer, |mode, _| next(mode, 1_700, true));
        assert_eq!(least.delta(0.5), 0.5, "and is no larger than the default");
        assert_eq!(longer.end_round(at(1_700), false, RTT, at(1_800), 0.5), Mode::Default);
    }
}
