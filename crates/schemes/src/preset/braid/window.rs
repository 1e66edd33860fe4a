//! A path's window: doubled in slow start, then along CUBIC's curve, and cut to 0.7 once per round trip.

use anabranch_core::policy::LossCause;
use anabranch_core::time::{Span, Time};

use crate::component::cubic::curve::{BETA, Curve, Step};
use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "window",
    rule: "slow start: cwnd += bytes acknowledged; then CUBIC's curve; congestion: cwnd = 0.7 cwnd, at least `floor` M, unless the lost \
           packet left before the latest cut; T3 with nothing left in flight: half, at least 4 M",
    file: file!(),
}];

/// After silence the window is what a new path begins with.
const CHUNKS_AFTER_SILENCE: f64 = 4.0;

/// A path's window in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWindow {
    cwnd: f64,
    /// Where slow start ended last; `None` while the first one lasts.
    ssthresh: Option<f64>,
    curve: Curve,
    /// What the path is of the flow that the curve is for.
    share: f64,
    cut_at: Option<Time>,
}

impl PathWindow {
    pub(super) fn new(cwnd: f64) -> Self {
        PathWindow { cwnd, ssthresh: None, curve: Curve::default(), share: 1.0, cut_at: None }
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    pub(super) fn ssthresh(&self) -> Option<f64> {
        self.ssthresh
    }

    /// Slow start.
    pub(super) fn double(&mut self, acked: f64) {
        self.cwnd += acked;
    }

    /// Along the curve of a flow of which the path is this share. Its terms of growth are multiples of the chunk, so that n
    /// shares of it together are one curve; that each acknowledgement counts for a share too is RFC 6356's, whose n equal paths
    /// grow by 1 / n^2 each.
    pub(super) fn follow_curve(&mut self, now: Time, rtt: Span, acked: f64, share: f64, chunk: f64) {
        // The epoch's beginning was computed with the share of then.
        if share != self.share {
            self.share = share;
            self.curve.restart();
        }
        let step = Step { now, rtt, cwnd: self.cwnd, acked: share * acked, chunk: share * chunk };
        self.cwnd = self.curve.next(&step).0;
    }

    /// To this many bytes, from where it goes on along the curve.
    pub(super) fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.curve.restart();
    }

    /// To this many bytes, and what was lost before is forgotten: the curve was another flow's.
    pub(super) fn begin_anew(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.curve = Curve::default();
    }

    /// The first slow start is over.
    pub(super) fn end_slow_start(&mut self, cwnd: f64) {
        self.set(cwnd);
        self.ssthresh = Some(cwnd);
    }

    /// Whether the loss of a packet that left then is news: all that left before the latest cut is one congestion.
    pub(super) fn is_news(&self, sent_at: Time) -> bool {
        self.cut_at.is_none_or(|cut_at| sent_at >= cut_at)
    }

    /// For congestion, not below the floor.
    pub(super) fn cut(&mut self, now: Time, floor: f64) {
        self.curve.lost(LossCause::FastRetransmit, self.cwnd, true);
        self.cwnd = (BETA * self.cwnd).max(floor);
        self.ssthresh = Some(self.cwnd);
        self.cut_at = Some(now);
    }

    /// Nothing was acknowledged for a whole RTO.
    pub(super) fn silence(&mut self, chunk: f64) {
        let least = CHUNKS_AFTER_SILENCE * chunk;
        if self.cwnd > least {
            self.set((self.cwnd / 2.0).max(least));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: f64 = 1000.0;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn chunks(window: &PathWindow) -> f64 {
        window.cwnd() / CHUNK
    }

    #[test]
    fn a_cut_leaves_seven_tenths_and_the_floor_at_least() {
        let mut window = PathWindow::new(10.0 * CHUNK);
        window.cut(at(100), 2.0 * CHUNK);
        assert!((chunks(&window) - 7.0).abs() < 1e-9);
        assert_eq!(window.ssthresh(), Some(window.cwnd()));
        (0..9).for_each(|_| window.cut(at(100), 2.0 * CHUNK));
        assert!((chunks(&window) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_left_before_a_cut_is_no_news() {
        let mut window = PathWindow::new(10.0 * CHUNK);
        assert!(window.is_news(at(1)));
        window.cut(at(100), 2.0 * CHUNK);
        assert!(!window.is_news(at(99)) && window.is_news(at(100)));
    }

    #[test]
    fn a_share_of_the_growth_is_that_share() {
        let grown = |share: f64| {
            let mut window = PathWindow::new(10.0 * CHUNK);
            window.cut(at(0), 2.0 * CHUNK);
            (1..=20).for_each(|n| {
                let cwnd = window.cwnd();
                window.follow_curve(at(20 * n), Span::from_millis(20), cwnd, share, CHUNK);
            });
            chunks(&window) - 7.0
        };
        assert!(grown(1.0) > 3.0 * grown(0.25) && grown(0.25) > 0.0, "{} {}", grown(1.0), grown(0.25));
    }

    #[test]
    fn silence_halves_down_to_four_chunks_and_raises_nothing() {
        let mut window = PathWindow::new(10.0 * CHUNK);
        window.silence(CHUNK);
        assert!((chunks(&window) - 5.0).abs() < 1e-9);
        window.silence(CHUNK);
        assert!((chunks(&window) - 4.0).abs() < 1e-9);
        let mut small = PathWindow::new(3.0 * CHUNK);
        small.silence(CHUNK);
        assert!((chunks(&small) - 3.0).abs() < 1e-9);
    }
}
