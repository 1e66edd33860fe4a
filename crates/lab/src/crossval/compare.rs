//! Comparison of our figures with those of ns-2.

use serde::Serialize;

use crate::crossval::Point;
use crate::run::RunResult;
use crate::statistics;

/// Largest difference, in per cent, at which a point agrees independently of the intervals.
const CLOSE_PERCENT: f64 = 3.0;
/// Difference, in per cent, above which a point is off independently of the intervals.
const FAR_PERCENT: f64 = 8.0;

/// Our figures for a point, as means over the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ours {
    /// Number of runs.
    pub n: usize,
    /// Mean goodput in kbit/s.
    pub goodput_kbps: f64,
    /// Half-width of its 95 % interval; zero if all runs have the same goodput.
    pub half_width_kbps: f64,
    /// Share of the first path in the data packets that arrived.
    pub path1_share: f64,
    /// Mean retransmissions per run.
    pub retransmissions: f64,
    /// Mean number of T3-rtx expiries and unanswered HEARTBEATs per run, which ns-2 counts together.
    pub timeouts: f64,
    /// Mean fast retransmissions per run, as ns-2 counts them.
    pub fast_retransmits: f64,
}

/// Verdict on a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The difference is at most 3 per cent, or within the joint 95 % interval.
    Agrees,
    /// The difference is larger, but at most 8 per cent.
    Near,
    /// The difference exceeds 8 per cent.
    Off,
    /// Runs of ns-2 hung, so its figure covers only the others. The point is shown, but not judged.
    Exempt,
}

/// Figures of both simulators for a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the point.
    pub id: String,
    /// Our figures.
    pub ours: Ours,
    /// Mean goodput of ns-2 in kbit/s.
    pub ns2_goodput_kbps: f64,
    /// Half-width of its 95 % interval, in kbit/s.
    pub ns2_half_width_kbps: f64,
    /// Share of the first path in ns-2.
    pub ns2_path1_share: Option<f64>,
    /// Mean retransmissions per run in ns-2.
    pub ns2_retransmissions: f64,
    /// Mean time-outs per run in ns-2.
    pub ns2_timeouts: Option<f64>,
    /// Mean fast retransmissions per run in ns-2.
    pub ns2_fast_retransmits: Option<f64>,
    /// Relative difference of our goodput from that of ns-2, in per cent.
    pub difference_percent: f64,
    /// Verdict on the difference.
    pub verdict: Verdict,
}

impl Comparison {
    pub(crate) fn new(point: &Point, results: &[RunResult]) -> Self {
        Comparison::between(point, Ours::of(results))
    }

    fn between(point: &Point, ours: Ours) -> Self {
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

impl Ours {
    fn of(results: &[RunResult]) -> Self {
        let mean = |figure: &dyn Fn(&RunResult) -> f64| {
            statistics::Summary::of(results.iter().map(figure)).map_or(0.0, |s| s.mean)
        };
        let goodput = statistics::Summary::of(results.iter().map(|r| r.goodput_kbps));
        Ours {
            n: results.len(),
            goodput_kbps: goodput.map_or(0.0, |s| s.mean),
            half_width_kbps: goodput.and_then(|s| s.half_width).unwrap_or(0.0),
            path1_share: mean(&|r| r.shares()[0]),
            retransmissions: mean(&|r| r.retransmissions as f64),
            timeouts: mean(&|r| (r.timeouts + r.heartbeat_timeouts) as f64),
            fast_retransmits: mean(&|r| r.fast_retransmits as f64),
        }
    }
}

/// Verdicts of all points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of judged points.
    pub judged: usize,
    /// Number of points that agree.
    pub agree: usize,
    /// Number of points that are off by more than 8 per cent.
    pub off: usize,
    /// Number of points that are shown but not judged.
    pub exempt: usize,
    /// Largest difference of a judged point, in per cent.
    pub largest_percent: f64,
    /// Mean difference of judged points with its sign, in per cent.
    pub mean_percent: f64,
}

impl Summary {
    /// Returns `true` if nine in ten points agree and none is off.
    pub fn meets_goal(&self) -> bool {
        self.off == 0 && self.agree * 10 >= self.judged * 9
    }
}

/// Counts verdicts.
pub fn summarise(comparisons: &[Comparison]) -> Summary {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossval::all_points;

    fn verdict(ours: f64, our_half: f64, ns2: f64, ns2_half: f64, hung: u64) -> Verdict {
        let mut point = all_points().expect("the repository's own data").swap_remove(0);
        point.goodput_kbps = ns2;
        point.half_width_kbps = ns2_half;
        point.hung = hung;
        let ours = Ours {
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
    fn each_verdict_occurs_where_it_should() {
        assert_eq!(verdict(1029.0, 1.0, 1000.0, 1.0, 0), Verdict::Agrees);
        assert_eq!(verdict(971.0, 1.0, 1000.0, 1.0, 0), Verdict::Agrees);
        assert_eq!(verdict(1031.0, 1.0, 1000.0, 1.0, 0), Verdict::Near);
        // Joint interval: sqrt(40^2 + 30^2) = 50.
        assert_eq!(verdict(1049.0, 40.0, 1000.0, 30.0, 0), Verdict::Agrees);
        assert_eq!(verdict(1051.0, 40.0, 1000.0, 30.0, 0), Verdict::Near);
        // Wide intervals do not excuse differences beyond 8 per cent.
        assert_eq!(verdict(1081.0, 500.0, 1000.0, 500.0, 0), Verdict::Off);
        assert_eq!(verdict(500.0, 1.0, 1000.0, 1.0, 1), Verdict::Exempt);
    }

    #[test]
    fn the_goal_is_nine_in_ten_and_none_off() {
        let summary = |judged, agree, off| Summary { judged, agree, off, ..Summary::default() };
        assert!(summary(10, 9, 0).meets_goal());
        assert!(!summary(10, 8, 0).meets_goal());
        assert!(!summary(10, 9, 1).meets_goal());
    }
}
