//! Propagation delay that differs from packet to packet.

use anabranch_core::time::Span;

use crate::error::{ConfigError, probability, require};
use crate::rng::Stream;

/// Random addition to the propagation delay of each packet, independent of other packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Distribution of the added delay.
    pub distribution: JitterDistribution,
    /// Effect on the order of packets.
    pub order: JitterOrder,
}

/// Distribution of the added delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JitterDistribution {
    /// Uniform distribution from zero to this delay.
    Uniform(Span),
    /// Normal distribution, truncated at zero and at twice the mean, so that the mean is unchanged.
    Normal {
        /// Mean of the additional delay.
        mean: Span,
        /// The standard deviation before the cut, at most the mean.
        deviation: Span,
    },
    /// Retransmissions of the link layer until an attempt succeeds. The last one succeeds always.
    Retransmission {
        /// Probability that an attempt fails.
        failure: f64,
        /// Time from an attempt to the next.
        round: Span,
        /// Largest number of retransmissions of a packet.
        most: u32,
    },
}

/// Effect of jitter on the order of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterOrder {
    /// Packets do not overtake each other. A packet that would overtake arrives at the same time instead.
    Kept,
    /// Packets overtake each other.
    Free,
}

/// Number of draws outside of the truncated range after which the mean is used. At most a third of all draws is outside of the
/// bounds and repeated.
const MOST_DRAWS: u32 = 64;

impl Jitter {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self.distribution {
            JitterDistribution::Uniform(_) => Ok(()),
            JitterDistribution::Retransmission { failure, .. } => probability("jitter failure", failure),
            JitterDistribution::Normal { mean, deviation } => {
                require(deviation <= mean, "jitter deviation", "must be at most the mean")
            }
        }
    }

    /// Draws the delay of the next packet.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Span {
        match self.distribution {
            JitterDistribution::Uniform(most) => {
                Span::from_nanos(stream.below(most.as_nanos().saturating_add(1)))
            }
            JitterDistribution::Normal { mean, deviation } => draw_normal(stream, mean, deviation),
            JitterDistribution::Retransmission { failure, round, most } => {
                round.times(u64::from(draw_failures(stream, failure, most)))
            }
        }
    }

    /// Splits the delay into the part that also delays later packets and the part that delays this one alone.
    pub(crate) fn split(&self, drawn: Span) -> (Span, Span) {
        match self.order {
            JitterOrder::Kept => (drawn, Span::ZERO),
            JitterOrder::Free => (Span::ZERO, drawn),
        }
    }
}

fn draw_normal(stream: &mut Stream, mean: Span, deviation: Span) -> Span {
    let (middle, spread) = (mean.as_nanos() as f64, deviation.as_nanos() as f64);
    for _ in 0..MOST_DRAWS {
        let nanos = middle + spread * standard_normal(stream);
        if (0.0..=2.0 * middle).contains(&nanos) {
            return Span::from_nanos(libm::round(nanos) as u64);
        }
    }
    mean
}

/// Returns the number of failures before the first success, at most `most`. One draw decides, so that packets of later numbers have
/// the same draws under every probability.
fn draw_failures(stream: &mut Stream, failure: f64, most: u32) -> u32 {
    let drawn = stream.unit();
    let (mut failures, mut threshold) = (0, failure);
    while failures < most && drawn < threshold {
        failures += 1;
        threshold *= failure;
    }
    failures
}

/// Returns one of the two numbers of Box and Muller (1958).
fn standard_normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(2.0 * std::f64::consts::PI * stream.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    const DRAWS: usize = 100_000;

    fn draws(distribution: JitterDistribution) -> Vec<f64> {
        let mut stream = Seeds::new(7, 0).stream(&["jitter"]);
        let jitter = Jitter { distribution, order: JitterOrder::Free };
        (0..DRAWS).map(|_| jitter.draw(&mut stream).as_millis_f64()).collect()
    }

    /// Returns mean and standard deviation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        (mean, libm::sqrt(square / values.len() as f64))
    }

    fn within(values: &[f64], most: f64) -> bool {
        values.iter().all(|value| (0.0..=most).contains(value))
    }

    #[test]
    fn uniform_jitter_has_its_mean_its_spread_and_its_ends() {
        let values = draws(JitterDistribution::Uniform(Span::from_millis(10)));
        let (mean, deviation) = moments(&values);
        // The standard error of the mean is 0.009.
        assert!((mean - 5.0).abs() < 0.05 && (deviation - 2.887).abs() < 0.03, "{mean} {deviation}");
        assert!(within(&values, 10.0));
        let tenths = (0..10).map(|k| values.iter().filter(|v| **v as u32 == k).count());
        assert!(tenths.into_iter().all(|n| n.abs_diff(DRAWS / 10) < 500), "none is likelier than another");
    }

    #[test]
    fn normal_jitter_keeps_its_mean_however_much_is_cut_off() {
        for (deviation_ms, cut_deviation) in [(1, 1.0), (2, 1.909), (5, 2.70)] {
            let (mean, deviation) = (Span::from_millis(5), Span::from_millis(deviation_ms));
            let values = draws(JitterDistribution::Normal { mean, deviation });
            let (mean, spread) = moments(&values);
            assert!((mean - 5.0).abs() < 0.05, "{mean}");
            assert!((spread - cut_deviation).abs() < 0.05, "{spread} with {deviation_ms} ms");
            assert!(within(&values, 10.0));
        }
    }

    #[test]
    fn retransmissions_are_geometric_up_to_their_limit() {
        let round = Span::from_millis(8);
        let values = draws(JitterDistribution::Retransmission { failure: 0.1, round, most: 3 });
        for (retransmissions, expected) in [(0, 0.9), (1, 0.09), (2, 0.009), (3, 0.001)] {
            let delay = 8.0 * f64::from(retransmissions);
            let part = values.iter().filter(|value| **value == delay).count() as f64 / DRAWS as f64;
            // Five standard errors.
            let tolerance = 5.0 * libm::sqrt(expected / DRAWS as f64);
            assert!((part - expected).abs() < tolerance, "{retransmissions}: {part}");
        }
        assert!(within(&values, 24.0));
        let ever = draws(JitterDistribution::Retransmission { failure: 1.0, round, most: 3 });
        assert!(ever.iter().all(|value| *value == 24.0));
    }

    #[test]
    fn jitter_of_nothing_is_none_and_impossible_figures_are_refused() {
        let none = Span::ZERO;
        assert!(within(&draws(JitterDistribution::Uniform(none)), 0.0));
        assert!(within(&draws(JitterDistribution::Normal { mean: none, deviation: none }), 0.0));
        let normal = |mean, deviation| Jitter {
            distribution: JitterDistribution::Normal { mean, deviation },
            order: JitterOrder::Kept,
        };
        assert!(normal(Span::from_millis(1), Span::from_nanos(1_000_001)).check().is_err());
        assert!(normal(Span::from_millis(1), Span::from_millis(1)).check().is_ok());
    }
}
