//! The rates of a trace while its mean is at one level.

use anabranch_sim::Stream;

use super::chain::{Chain, Visit};
use crate::recorded::statistics::quantile;

/// Number of quantiles of a bin.
pub(super) const QUANTILES: usize = 7;
/// Shares of these quantiles. The upper ones are close together, since the largest rates are rare.
const SHARES: [f64; QUANTILES] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0];
/// Largest change of a rate's place within its bin in a step, as a share of the bin.
const DRIFT: f64 = 0.25;

/// Quantiles of the rates of a bin in bit/s.
pub(super) type Bin = [u64; QUANTILES];

/// Rates of one trace at one level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Level {
    /// Bin of each state.
    pub(super) bins: Vec<Bin>,
    pub(super) chain: Chain,
}

/// State of a trace that is generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    visit: Visit,
    /// Place of the rate within its bin, from 0 to 1.
    place: f64,
}

impl Level {
    /// Describes the rates of a trace during a level by at most `most` bins. There must be a rate.
    pub(super) fn of(rates: &[u64], most: usize, outage_bps: u64) -> Level {
        let lows = lower_ends(rates, most, outage_bps);
        let mut members = vec![Vec::new(); lows.len()];
        let mut sequence = Vec::with_capacity(rates.len());
        for &rate in rates {
            let bin = lows.partition_point(|low| *low <= rate) - 1;
            members[bin].push(rate);
            sequence.push(bin);
        }
        Level { chain: Chain::of(&sequence, lows.len()), bins: members.into_iter().map(quantiles).collect() }
    }

    pub(super) fn enter(&self, stream: &mut Stream) -> Course {
        Course { visit: self.chain.enter(stream), place: stream.unit() }
    }

    /// Returns the rate of the next step.
    pub(super) fn rate(&self, course: &mut Course, stream: &mut Stream) -> u64 {
        if course.visit.left == 0 {
            let visit = self.chain.leave(course.visit.state, stream);
            *course = Course { visit, place: stream.unit() };
        } else {
            // A reflected walk keeps places equally likely.
            let moved: f64 = course.place + DRIFT * (2.0 * stream.unit() - 1.0);
            course.place = 1.0 - (1.0 - moved.abs()).abs();
        }
        course.visit.left -= 1;
        interpolate(&self.bins[course.visit.state], course.place)
    }
}

/// Returns the lower ends of the bins of a trace: zero for outages, and bins with equal numbers of the other rates.
fn lower_ends(rates: &[u64], most: usize, outage_bps: u64) -> Vec<u64> {
    let mut rates = rates.to_vec();
    rates.sort_unstable();
    let outages = rates.partition_point(|rate| *rate < outage_bps);
    let rest = &rates[outages..];
    let mut lows = vec![0];
    if !rest.is_empty() {
        let bins = most - 1;
        let low = |bin: usize| rest[bin * rest.len() / bins];
        lows.extend((usize::from(outages == 0)..bins).map(low).filter(|low| *low > 0));
    }
    lows.dedup();
    lows
}

fn quantiles(mut rates: Vec<u64>) -> Bin {
    rates.sort_unstable();
    SHARES.map(|share| if rates.is_empty() { 0 } else { quantile(&rates, share).round() as u64 })
}

/// Returns the rate of a bin at a share from 0 to 1.
fn interpolate(bin: &Bin, share: f64) -> u64 {
    let upper = SHARES.partition_point(|other| *other < share).clamp(1, QUANTILES - 1);
    let [low, high] = [bin[upper - 1] as f64, bin[upper] as f64];
    let part = (share - SHARES[upper - 1]) / (SHARES[upper] - SHARES[upper - 1]);
    (low + (high - low) * part).round() as u64
}
