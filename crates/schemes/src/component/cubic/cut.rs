//! CUBIC's decrease (RFC 9438 section 4.6).

use anabranch_core::policy::{Event, EventSet, LossCause, Reason, View};

use crate::component::cubic::curve::BETA;
use crate::congestion::cut::{after_fast_retransmit, after_timeout, nearest};
use crate::congestion::{Change, Cut, PathLoss};
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 4.6, multiplicative decrease",
    rule: text!("ssthresh = max({} cwnd, floor); fast retransmit: cwnd = ssthresh; T3: cwnd = M", BETA),
    file: file!(),
}];

/// Reduces the window to seven tenths, or to one chunk after T3.
#[derive(Clone, Debug)]
pub(super) struct CubicCut;

impl Cut for CubicCut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let window = loss.window();
        let reduced = nearest(BETA * window.cwnd.get() as f64);
        let (path, profile) = (loss.facts(), loss.view.profile);
        let (window, rule) = match loss.cause {
            LossCause::FastRetransmit | LossCause::Rescheduled => {
                (after_fast_retransmit(reduced, path, profile), "reduced by fast retransmit (CUBIC)")
            }
            LossCause::Timeout => (after_timeout(window, reduced, path, profile), "T3 expired"),
        };
        Change { window, reason: Reason::figure(rule, "reduced_bytes", reduced.get() as f64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use crate::testing::M;

    #[test]
    fn a_loss_leaves_seven_tenths_and_t3_one_chunk() {
        let world = paths(&[(100_000, 100)]);
        assert_eq!(cut(&mut CubicCut, &world, 0, LossCause::FastRetransmit), (70_000, 70_000));
        assert_eq!(cut(&mut CubicCut, &world, 0, LossCause::Rescheduled), (70_000, 70_000));
        assert_eq!(cut(&mut CubicCut, &world, 0, LossCause::Timeout), (M, 70_000));
    }

    #[test]
    fn floor_of_the_window_comes_from_the_profile() {
        let world = paths(&[(2 * M, 100)]);
        assert_eq!(cut(&mut CubicCut, &world, 0, LossCause::FastRetransmit), (2 * M, 2 * M));
    }
}
