//! Window of a path: doubles in slow start, then follows CUBIC's curve, and is reduced to 0.7 once per round trip.

use anabranch_core::policy::LossCause;
use anabranch_core::time::{Span, Time};

use crate::component::cubic::curve::{BETA, Curve, Step};
use crate::definition::{Equation, text};
use crate::preset::braid::mode::TARGET_PACKETS;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "window",
    rule: text!(
        "slow start: cwnd += bytes acknowledged; after congestion in slow start: cwnd = min(rate base_m + \
         {} M, {} cwnd), at least {} M; then CUBIC's curve; congestion: cwnd = {} of its part in use, at least \
         `floor` M, unless the lost packet was sent before the latest reduction or while more was in \
         flight than it left; T3 without data in flight: half, at least {} M",
        TARGET_PACKETS,
        BETA,
        2.0 * TARGET_PACKETS,
        BETA,
        CHUNKS_AFTER_SILENCE,
    ),
    file: file!(),
}];

/// Minimum window after silence: the initial window of a path.
const CHUNKS_AFTER_SILENCE: f64 = 4.0;

/// Window of a path, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWindow {
    cwnd: f64,
    /// Window at the latest end of slow start; `None` during the first one.
    ssthresh: Option<f64>,
    curve: Curve,
    /// Share of the path in the flow of the curve.
    share: f64,
    cut_at: Option<Time>,
    /// Set while more may be in flight than the latest reduction left.
    cut_pending: bool,
}

impl PathWindow {
    pub(super) fn new(cwnd: f64) -> Self {
        PathWindow {
            cwnd,
            ssthresh: None,
            curve: Curve::default(),
            share: 1.0,
            cut_at: None,
            cut_pending: false,
        }
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    pub(super) fn ssthresh(&self) -> Option<f64> {
        self.ssthresh
    }

    /// Grows in slow start.
    pub(super) fn double(&mut self, acked: f64) {
        self.cwnd += acked;
    }

    /// Grows along the curve of a flow of which the path is this share. Its growth terms are multiples of the chunk, so that n
    /// shares together follow one curve. Each acknowledgement also counts for a share, as in RFC 6356: n equal paths grow by 1 /
    /// n^2 each.
    pub(super) fn follow_curve(&mut self, now: Time, rtt: Span, acked: f64, share: f64, chunk: f64) {
        // The beginning of the epoch was computed with the previous share.
        if share != self.share {
            self.share = share;
            self.curve.restart();
        }
        let step = Step { now, rtt, cwnd: self.cwnd, acked: share * acked, chunk: share * chunk };
        self.cwnd = self.curve.next(&step).0;
    }

    /// Sets the window to this many bytes, where the curve restarts.
    pub(super) fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.curve.restart();
    }

    /// Sets the window to this many bytes and forgets earlier losses, because the curve was another flow's.
    pub(super) fn restart(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.curve = Curve::default();
    }

    /// Ends the first slow start.
    pub(super) fn end_slow_start(&mut self, cwnd: f64) {
        self.set(cwnd);
        self.ssthresh = Some(cwnd);
    }

    /// Ends the first slow start after a loss. It is not proportional to the window, which may be several times the path's
    /// capacity, but at most that share of its part `in_use`.
    pub(super) fn cut_slow_start(&mut self, now: Time, held: f64, in_use: f64, floor: f64) {
        self.end_slow_start(held.min(BETA * in_use).max(floor));
        (self.cut_at, self.cut_pending) = (Some(now), true);
    }

    /// Returns `true` if more than the window is in flight. After a reduction, packets sent meanwhile, mostly retransmissions, meet
    /// the previous queue and belong to the same congestion.
    pub(super) fn is_exceeded_by(&mut self, in_flight: f64, chunk: f64, now: Time) -> bool {
        // RFC 9260 section 6.1 B lets the data in flight exceed the window by less than a chunk.
        let exceeded = in_flight >= self.cwnd + chunk;
        self.cut_pending &= exceeded;
        if self.cut_pending {
            self.cut_at = Some(now);
        }
        exceeded
    }

    /// Returns `true` if the loss of a packet sent at this time is new. Packets sent before the latest reduction belong to one
    /// event.
    pub(super) fn is_new(&self, sent_at: Time) -> bool {
        self.cut_at.is_none_or(|cut_at| sent_at >= cut_at)
    }

    /// Reduces the window after congestion, from its part `in_use`, to the floor or more.
    pub(super) fn cut(&mut self, now: Time, in_use: f64, floor: f64) {
        self.curve.lost(LossCause::FastRetransmit, in_use, true);
        self.cwnd = (BETA * in_use).max(floor);
        self.ssthresh = Some(self.cwnd);
        (self.cut_at, self.cut_pending) = (Some(now), true);
    }

    /// Reduces the window after an RTO without any acknowledgement.
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

    /// Reduces a window in full use.
    fn cut(window: &mut PathWindow, now: Time) {
        window.cut(now, window.cwnd(), 2.0 * CHUNK);
    }

    fn chunks(window: &PathWindow) -> f64 {
        window.cwnd() / CHUNK
    }

    #[test]
    fn a_cut_leaves_seven_tenths_and_the_floor_at_least() {
        let mut window = PathWindow::new(10.0 * CHUNK);
        cut(&mut window, at(100));
        assert!((chunks(&window) - 7.0).abs() < 1e-9);
        assert_eq!(window.ssthresh(), Some(window.cwnd()));
        (0..9).for_each(|_| cut(&mut window, at(100)));
        assert!((chunks(&window) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_cut_starts_at_the_part_in_use() {
        let mut window = PathWindow::new(100.0 * CHUNK);
        window.cut(at(100), 20.0 * CHUNK, 2.0 * CHUNK);
        assert!((chunks(&window) - 14.0).abs() < 1e-9);
    }

    #[test]
    fn data_sent_before_a_cut_causes_no_further_cut() {
        let mut window = PathWindow::new(10.0 * CHUNK);
        assert!(window.is_new(at(1)));
        cut(&mut window, at(100));
        assert!(!window.is_new(at(99)) && window.is_new(at(100)));
    }

    #[test]
    fn data_sent_with_excess_flight_after_a_cut_causes_no_cut() {
        let mut window = PathWindow::new(100.0 * CHUNK);
        assert!(window.is_exceeded_by(102.0 * CHUNK, CHUNK, at(50)));
        assert!(window.is_new(at(50)), "it was not cut");
        cut(&mut window, at(100));
        assert!(window.is_exceeded_by(90.0 * CHUNK, CHUNK, at(120)) && !window.is_new(at(119)));
        assert!(!window.is_exceeded_by(70.5 * CHUNK, CHUNK, at(140)) && window.is_new(at(140)));
        assert!(window.is_exceeded_by(90.0 * CHUNK, CHUNK, at(160)) && window.is_new(at(159)), "it was over");
    }

    #[test]
    fn slow_start_with_losses_ends_at_the_bdp_or_at_a_cut() {
        for (held, expected) in [(30.0, 30.0), (90.0, 70.0), (1.0, 2.0)] {
            let mut window = PathWindow::new(100.0 * CHUNK);
            window.cut_slow_start(at(100), held * CHUNK, 100.0 * CHUNK, 2.0 * CHUNK);
            assert!((chunks(&window) - expected).abs() < 1e-9, "{held}");
            assert_eq!(window.ssthresh(), Some(window.cwnd()));
            assert!(!window.is_new(at(99)));
        }
    }

    #[test]
    fn a_share_of_the_growth_is_that_share() {
        let grown = |share: f64| {
            let mut window = PathWindow::new(10.0 * CHUNK);
            cut(&mut window, at(0));
            (1..=20).for_each(|n| {
                let cwnd = window.cwnd();
                window.follow_curve(at(20 * n), Span::from_millis(20), cwnd, share, CHUNK);
            });
            chunks(&window) - 7.0
        };
        assert!(grown(1.0) > 3.0 * grown(0.25) && grown(0.25) > 0.0, "{} {}", grown(1.0), grown(0.25));
    }

    #[test]
    fn silence_halves_down_to_four_chunks_and_never_raises() {
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
