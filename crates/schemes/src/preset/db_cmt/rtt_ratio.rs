//! DB-CMT's D-FRP (equation 5): fast retransmit reduces the window by the fraction by which queueing has lengthened the round trip,
//! cwnd - cwnd (RTT - RTTmin) / RTT = cwnd RTTmin / RTT. With an empty queue there is no reduction.

use anabranch_core::policy::{Event, EventSet, LossCause, PathFacts, Reason, View, Window};
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::congestion::cut::{after_fast_retransmit, halve, nearest};
use crate::congestion::{Change, Cut, PathLoss};
use crate::definition::Equation;
use crate::preset::a_cmt::RttSource;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "equation 5 (D-FRP)",
    rule: "cwnd = cwnd - cwnd (RTT - RTTmin) / RTT = cwnd RTTmin / RTT",
    file: file!(),
}];

/// Window after the threshold has been set to the result of equation 5, or the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutWindow {
    /// The threshold, as after the standard's fast retransmit.
    Threshold,
    /// The result of equation 5, even below the floor.
    Equation,
}

/// Applies equation 5 to fast retransmit. T3 is handled as in the standard; the paper does not mention it.
#[derive(Clone, Debug)]
pub struct RttRatioCut {
    /// Source of the path's current round-trip time.
    pub rtt: RttSource,
    /// Window after a reduction.
    pub window: CutWindow,
}

impl RttRatioCut {
    fn reduce(&self, window: Window, left: ChunkBytes, path: &PathFacts, profile: &Profile) -> Window {
        let floored = after_fast_retransmit(left, path, profile);
        match self.window {
            CutWindow::Threshold => floored,
            CutWindow::Equation => Window { cwnd: left.min(window.cwnd), ..floored },
        }
    }
}

impl Cut for RttRatioCut {
    copied!(Cut);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>) {}

    fn cut(&mut self, loss: &PathLoss<'_>) -> Change {
        let (window, facts, profile) = (loss.window(), loss.facts(), loss.view.profile);
        let ratio = self.rtt.with_least(&facts.rtt).map(|(present, least)| least / present);
        match (ratio, loss.cause) {
            (Some(ratio), LossCause::FastRetransmit | LossCause::Rescheduled) => {
                let left = nearest(window.cwnd.get() as f64 * ratio);
                let reason =
                    Reason::figure("reduced by the queueing delay (D-FRP)", "rtt_min_over_rtt", ratio);
                Change { window: self.reduce(window, left, facts, profile), reason }
            }
            // Without a sample there is no delay to use.
            (_, cause) => halve(window, cause, facts, profile),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{cut, paths};
    use crate::testing::World;
    use LossCause::{FastRetransmit, Rescheduled, Timeout};
    use anabranch_core::time::Span;

    const RULE: RttRatioCut = RttRatioCut { rtt: RttSource::Smoothed, window: CutWindow::Threshold };

    /// Creates one path with a window, a smoothed round-trip time of 120 ms, a latest of 160 ms and a minimum of 100 ms.
    fn one(cwnd: u64) -> World {
        let mut world = paths(&[(cwnd, 120)]);
        world.paths[0].rtt.latest = Some(Span::from_millis(160));
        world.paths[0].rtt.min = Some(Span::from_millis(100));
        world
    }

    #[test]
    fn fast_retransmit_leaves_the_window_times_the_ratio_of_delays() {
        let mut rule = RULE;
        // 20,000 x 100/120 = 16,666.7; 20,000 x 100/160 = 12,500.
        assert_eq!(cut(&mut rule, &one(20_000), 0, FastRetransmit), (16_667, 16_667));
        assert_eq!(cut(&mut rule, &one(20_000), 0, Rescheduled), (16_667, 16_667));
        let mut latest = RttRatioCut { rtt: RttSource::Latest, ..RULE };
        assert_eq!(cut(&mut latest, &one(20_000), 0, FastRetransmit), (12_500, 12_500));
    }

    #[test]
    fn loss_with_an_empty_queue_keeps_the_window() {
        let mut world = one(20_000);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        assert_eq!(cut(&mut RttRatioCut { ..RULE }, &world, 0, FastRetransmit), (20_000, 20_000));
    }

    #[test]
    fn floor_applies_to_ssthresh_and_by_default_to_the_window() {
        // 3000 x 100/120 = 2500, below 2 x 1468 = 2936.
        assert_eq!(cut(&mut RttRatioCut { ..RULE }, &one(3000), 0, FastRetransmit), (2936, 2936));
        let mut equation = RttRatioCut { window: CutWindow::Equation, ..RULE };
        assert_eq!(cut(&mut equation, &one(3000), 0, FastRetransmit), (2500, 2936));
        assert_eq!(cut(&mut equation, &one(20_000), 0, FastRetransmit), (16_667, 16_667));
    }

    #[test]
    fn a_time_out_and_a_path_without_a_sample_are_the_standards() {
        let mut rule = RULE;
        assert_eq!(cut(&mut rule, &one(20_000), 0, Timeout), (1468, 10_000));
        let mut world = one(20_000);
        world.paths[0].rtt.min = None;
        assert_eq!(cut(&mut rule, &world, 0, FastRetransmit), (10_000, 10_000));
    }
}
