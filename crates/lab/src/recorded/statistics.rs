//! Statistics of rates at equal steps.

use anabranch_core::time::Span;
use serde::Serialize;

/// Shares of the quantiles in [`RateStatistics`].
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// Lags of the autocorrelation in [`RateStatistics`], in seconds.
const LAGS_S: [f64; 3] = [1.0, 5.0, 30.0];

/// Statistics of the rate of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateStatistics {
    /// Duration in seconds.
    pub duration_s: f64,
    /// Mean rate in bit/s.
    pub mean_bps: f64,
    /// Quantiles of 5, 25, 50, 75 and 95 %, in bit/s.
    pub quantiles_bps: [f64; 5],
    /// Times with less than the threshold.
    pub outages: OutageStatistics,
    /// Autocorrelation after 1, 5 and 30 s; `None` for a trace that is shorter or constant.
    pub autocorrelation: [Option<f64>; 3],
}

/// Statistics of the times in which the rate is below a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutageStatistics {
    /// Share of the time, from 0 to 1.
    pub share: f64,
    /// Number per hour.
    pub per_hour: f64,
    /// Mean duration in seconds; 0 without outages.
    pub mean_s: f64,
    /// Longest duration in seconds.
    pub longest_s: f64,
}

impl RateStatistics {
    /// Computes the statistics of sections of a trace. Outages are steps with a rate below `outage_bps`, and do not extend over
    /// sections. There must be a rate.
    pub fn of(sections: &[&[u64]], step: Span, outage_bps: u64) -> Self {
        let step_s = step.as_secs_f64();
        let mut sorted: Vec<u64> = sections.iter().flat_map(|rates| rates.iter().copied()).collect();
        sorted.sort_unstable();
        let duration_s = sorted.len() as f64 * step_s;
        let mean_bps = sorted.iter().map(|&rate| rate as f64).sum::<f64>() / sorted.len() as f64;
        let lag = |seconds: f64| {
            let steps = (seconds / step_s).round().max(1.0) as usize;
            let pairs = sections.iter().filter(|rates| rates.len() > steps);
            let (early, late): (Vec<u64>, Vec<u64>) =
                pairs.flat_map(|rates| rates.iter().copied().zip(rates[steps..].iter().copied())).unzip();
            correlation(&early, &late)
        };
        RateStatistics {
            duration_s,
            mean_bps,
            quantiles_bps: QUANTILES.map(|share| quantile(&sorted, share)),
            outages: OutageStatistics::of(sections, step_s, outage_bps),
            autocorrelation: LAGS_S.map(lag),
        }
    }
}

impl OutageStatistics {
    fn of(sections: &[&[u64]], step_s: f64, outage_bps: u64) -> Self {
        let runs =
            sections.iter().flat_map(|rates| rates.chunk_by(|a, b| (*a < outage_bps) == (*b < outage_bps)));
        let lengths: Vec<usize> = runs.filter(|run| run[0] < outage_bps).map(<[u64]>::len).collect();
        let steps: usize = sections.iter().map(|rates| rates.len()).sum();
        let total: usize = lengths.iter().sum();
        OutageStatistics {
            share: total as f64 / steps as f64,
            per_hour: lengths.len() as f64 * 3600.0 / (steps as f64 * step_s),
            mean_s: total as f64 * step_s / lengths.len().max(1) as f64,
            longest_s: lengths.iter().max().map_or(0.0, |&longest| longest as f64 * step_s),
        }
    }
}

/// Returns a quantile of sorted values, interpolated between the nearest two.
pub(super) fn quantile(sorted: &[u64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize] as f64, sorted[place.ceil() as usize] as f64);
    low + (high - low) * place.fract()
}

/// Returns the correlation of two lists of rates, up to the end of the shorter one; `None` if one of them is constant.
pub fn correlation(one: &[u64], other: &[u64]) -> Option<f64> {
    let count = one.len().min(other.len());
    let mean = |rates: &[u64]| rates[..count].iter().map(|&rate| rate as f64).sum::<f64>() / count as f64;
    let (mean_one, mean_other) = (mean(one), mean(other));
    let (mut product, mut squares) = (0.0, [0.0, 0.0]);
    for (&a, &b) in one.iter().zip(other) {
        let (a, b) = (a as f64 - mean_one, b as f64 - mean_other);
        product += a * b;
        squares[0] += a * a;
        squares[1] += b * b;
    }
    let scale = (squares[0] * squares[1]).sqrt();
    (scale > 0.0).then(|| product / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Span = Span::from_millis(500);

    #[test]
    fn statistics_of_a_known_trace_are_exact() {
        let rates = [4, 4, 0, 0, 0, 8, 8, 0, 4, 4].map(|mbit| mbit * 1_000_000);
        let found = RateStatistics::of(&[&rates], STEP, 1_000_000);
        assert_eq!((found.duration_s, found.mean_bps), (5.0, 3.2e6));
        assert_eq!(found.quantiles_bps, [0.0, 0.0, 4e6, 4e6, 8e6]);
        let expected = OutageStatistics { share: 0.4, per_hour: 1440.0, mean_s: 1.0, longest_s: 1.5 };
        assert_eq!(found.outages, expected);
        assert_eq!(found.autocorrelation[2], None);
        let split = RateStatistics::of(&[&rates[..3], &rates[3..]], STEP, 1_000_000);
        assert_eq!(split.outages.mean_s * split.outages.per_hour, expected.mean_s * expected.per_hour);
        assert!(split.outages.longest_s < expected.longest_s);
    }

    #[test]
    fn correlation_has_its_sign_and_bounds() {
        let rising: Vec<u64> = (0..100).collect();
        let falling: Vec<u64> = (0..100).rev().collect();
        assert_eq!(correlation(&rising, &rising).map(|found| (found - 1.0).abs() < 1e-9), Some(true));
        assert_eq!(correlation(&rising, &falling).map(|found| (found + 1.0).abs() < 1e-9), Some(true));
        assert_eq!(correlation(&rising, &[5; 100]), None);
        assert_eq!(correlation(&[], &[]), None);
    }
}
