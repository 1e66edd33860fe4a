//! Compares means over our runs with ns-2's, and judges the difference.

use anabranch_lab::run::RunResult;
use anabranch_lab::statistics;
use serde::Serialize;

use crate::point::Point;

/// Difference in per cent up to which a point agrees.
const CLOSE_PERCENT: f64 = 3.0;
/// Difference in per cent above which a point is off, even inside the joint interval.
const FAR_PERCENT: f64 = 8.0;

/// Means over our runs of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SimulatedMeans {
    /// Number of runs.
    pub(crate) n: usize,
    /// Mean goodput in kbit/s.
    pub(crate) goodput_kbps: f64,
    /// Half-width of the 95 % interval of the goodput; zero if all runs gave the same.
    pub(crate) half_width_kbps: f64,
    /// Share of the first path.
    pub(crate) path1_share: f64,
    /// Mean number of retransmissions.
    pub(crate) retransmissions: f64,
    /// T3 expiries and unanswered HEARTBEATs, which ns-2 counts together.
    pub(crate) timeouts: f64,
    /// Fast retransmissions as ns-2 counts them.
    pub(crate) fast_retransmits: f64,
}

/// Judgement of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Within 3 per cent, or inside the joint 95 % interval and within 8 per cent.
    Agrees,
    /// Further off, but by no more than 8 per cent.
    Near,
    /// Off by more than 8 per cent.
    Off,
    /// Not judged: some runs of ns-2 hung, so its mean contains the other runs only.
    Exempt,
}

/// Point with the means of both simulators.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Name of the point.
    pub(crate) id: String,
    /// Our means.
    pub(crate) ours: SimulatedMeans,
    /// ns-2's goodput.
    pub(crate) ns2_goodput_kbps: f64,
    /// Half-width of the 95 % interval of ns-2's goodput.
    pub(crate) ns2_half_width_kbps: f64,
    /// ns-2's share of the first path.
    pub(crate) ns2_path1_share: Option<f64>,
    /// ns-2's retransmissions.
    pub(crate) ns2_retransmissions: f64,
    /// ns-2's time-outs.
    pub(crate) ns2_timeouts: Option<f64>,
    /// ns-2's fast retransmissions.
    pub(crate) ns2_fast_retransmits: Option<f64>,
    /// Our goodput divided by ns-2's, minus one, in per cent.
    pub(crate) difference_percent: f64,
    /// Result of the comparison.
    pub(crate) verdict: Verdict,
}

impl Comparison {
    pub(crate) fn new(point: &Point, results: &[RunResult]) -> Self {
        Comparison::between(point, SimulatedMeans::of(results))
    }

    fn between(point: &Point, ours: SimulatedMeans) -> Self {
        let difference = ours.goodput_kbps - point.goodput_kbps;
        let difference_percent = 100.0 * difference / point.goodput_kbps;
        let joint = ours.half_width_kbps.hypot(point.half_width_kbps);
        let verdict = match difference_percent.abs() {
            _ if point.hung > 0 => Verdict::Exempt,
            percent if percent > FAR_PERCENT => Verdict::Off,
            percent if percent <= CLOSE_PERCENT || difference.abs() <= joint => Verdict::Agrees,
            _ => Verdict::Near,
        };
        Comparison {
            id: point.id.clone(),
            ours,
            ns2_goodput_kbps: point.goodput_kbps,
            ns2_half_width_kbps: point.half_width_kbps,
            ns2_path1_share: point.path1_share,
            ns2_retransmissions: point.retransmissions,
            ns2_timeouts: point.timeouts,
            ns2_fast_retransmits: point.fast_retransmits,
            difference_percent,
            verdict,
        }
    }
}

impl SimulatedMeans {
    fn of(results: &[RunResult]) -> Self {
        let mean = |figure: &dyn Fn(&RunResult) -> f64| {
            statistics::Summary::of(results.iter().map(figure)).map_or(0.0, |summary| summary.mean)
        };
        let goodput = statistics::Summary::of(results.iter().map(|run| run.goodput_kbps));
        SimulatedMeans {
            n: results.len(),
            goodput_kbps: goodput.map_or(0.0, |summary| summary.mean),
            half_width_kbps: goodput.and_then(|summary| summary.half_width).unwrap_or(0.0),
            path1_share: mean(&|run| run.shares()[0]),
            retransmissions: mean(&|run| run.retransmissions as f64),
            timeouts: mean(&|run| (run.timeouts + run.heartbeat_timeouts) as f64),
            fast_retransmits: mean(&|run| run.fast_retransmits as f64),
        }
    }
}

/// Counts of verdicts, and differences of the judged points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Summary {
    /// Judged points.
    pub(crate) judged: usize,
    /// Judged points that agree.
    pub(crate) agree: usize,
    /// Judged points that are off by more than 8 per cent.
    pub(crate) off: usize,
    /// Points that are not judged.
    pub(crate) exempt: usize,
    /// Largest difference in per cent, without its sign.
    pub(crate) largest_percent: f64,
    /// Mean difference in per cent, with its sign.
    pub(crate) mean_percent: f64,
}

impl Summary {
    /// Summarises comparisons.
    pub(crate) fn of(comparisons: &[Comparison]) -> Summary {
        let mut summary = Summary::default();
        let mut total = 0.0;
        for comparison in comparisons {
            if comparison.verdict == Verdict::Exempt {
                summary.exempt += 1;
                continue;
            }
            summary.judged += 1;
            summary.agree += usize::from(comparison.verdict == Verdict::Agrees);
            summary.off += usize::from(comparison.verdict == Verdict::Off);
            summary.largest_percent = summary.largest_percent.max(comparison.difference_percent.abs());
            total += comparison.difference_percent;
        }
        summary.mean_percent = total / summary.judged.max(1) as f64;
        summary
    }

    /// Returns `true` if nine in ten judged points agree and none is off.
    pub(crate) fn meets_goal(&self) -> bool {
        self.off == 0 && self.agree * 10 >= self.judged * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::all_points;

    fn verdict(ours: f64, our_half: f64, ns2: f64, ns2_half: f64, hung: u64) -> Verdict {
        let mut point = all_points().expect("the stored data").swap_remove(0);
        point.goodput_kbps = ns2;
        point.half_width_kbps = ns2_half;
        point.hung = hung;
        let ours = SimulatedMeans {
            n: 30,
            goodput_kbps: ours,
            half_width_kbps: our_half,
            path1_share: 0.5,
            retransmissions: 0.0,
            timeouts: 0.0,
            fast_retransmits: 0.0,
        };
        Comparison::between(&point, ours).verdict
    }

    #[test]
    fn verdict_follows_difference_joint_interval_and_hung_runs() {
        assert_eq!(verdict(1029.0, 1.0, 1000.0, 1.0, 0), Verdict::Agrees);
        assert_eq!(verdict(971.0, 1.0, 1000.0, 1.0, 0), Verdict::Agrees);
        assert_eq!(verdict(1031.0, 1.0, 1000.0, 1.0, 0), Verdict::Near);
        // The joint interval is sqrt(40^2 + 30^2) = 50.
        assert_eq!(verdict(1049.0, 40.0, 1000.0, 30.0, 0), Verdict::Agrees);
        assert_eq!(verdict(1051.0, 40.0, 1000.0, 30.0, 0), Verdict::Near);
        // Wide intervals excuse nothing beyond 8 per cent.
        assert_eq!(verdict(1081.0, 500.0, 1000.0, 500.0, 0), Verdict::Off);
        assert_eq!(verdict(500.0, 1.0, 1000.0, 1.0, 1), Verdict::Exempt);
    }

    #[test]
    fn goal_is_nine_in_ten_and_none_off() {
        let summary = |judged, agree, off| Summary { judged, agree, off, ..Summary::default() };
        assert!(summary(10, 9, 0).meets_goal());
        assert!(!summary(10, 8, 0).meets_goal());
        assert!(!summary(10, 9, 1).meets_goal());
    }
}
