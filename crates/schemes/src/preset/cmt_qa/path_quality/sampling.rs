//! CMT-QA's samples of the loss-free time of a path (Xu et al. 2013, Algorithm 1), and prediction of the next one (equations 2 to
//! 6).

use anabranch_core::time::{Span, Time};

use crate::definition::Equation;

pub(crate) const RULES: &[Equation] = &[
    Equation {
        name: "Algorithm 1",
        rule: "a sample extends from the first chunk sent after a loss to the last one before the next loss is detected",
        file: file!(),
    },
    Equation { name: "equations 2, 3", rule: "X_N+1 = (X_N N + x_N+1) / (N + 1)", file: file!() },
    Equation {
        name: "equations 4, 5",
        rule: "S_N+1^2 = S_N^2 (N - 1) / N + (x_N+1 - X_N)^2 / (N + 1)",
        file: file!(),
    },
    Equation { name: "equation 6", rule: "u = X +- Z S / sqrt(N), Z = 1.96 for 95 %", file: file!() },
];

/// Algorithm 1: time from a path's first transmission after a loss to its last one before the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossFreeTime {
    /// Send times of the first and the latest chunk; `None` while d_i.FirstData is true.
    sent: Option<(Time, Time)>,
}

impl LossFreeTime {
    /// Lines 3 to 8: the first chunk sets the start, each chunk the timestamp.
    pub(crate) fn chunk_left(&mut self, now: Time) {
        let start = self.sent.map_or(now, |(start, _)| start);
        self.sent = Some((start, now));
    }

    /// Lines 16 to 22: ends the sample at a loss, from the first chunk to the latest. Returns `None` if no chunk was sent since the
    /// previous loss, so that several chunks reported by one SACK form one sample.
    pub(crate) fn loss_detected(&mut self) -> Option<Span> {
        let (start, end) = self.sent.take()?;
        Some(end.since(start))
    }
}

/// Figure that represents the confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Lower end, or zero if that is negative.
    Lower,
    /// Mean of the samples.
    Mean,
    /// Upper end.
    Upper,
}

/// Mean and standard deviation of all samples, without the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Samples {
    count: u64,
    mean_s: f64,
    deviation_s: f64,
}

impl Samples {
    /// Returns the number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a sample: equation 5, which needs the previous mean, then equation 3.
    pub(crate) fn add(&mut self, sample: Span) {
        let (n, x) = (self.count as f64, sample.as_secs_f64());
        if self.count > 0 {
            // A single sample has no deviation, which equation 5 gives for N = 1 with any S.
            let off = x - self.mean_s;
            let variance = self.deviation_s * self.deviation_s * (n - 1.0) / n + off * off / (n + 1.0);
            self.deviation_s = variance.sqrt();
        }
        self.mean_s = (self.mean_s * n + x) / (n + 1.0);
        self.count += 1;
    }

    /// Equation 6: returns an end of the confidence interval of the mean, for the quantile `z` of Table 1; `None` without samples.
    pub(crate) fn confidence(&self, bound: Bound, z: f64) -> Option<Span> {
        if self.count == 0 {
            return None;
        }
        let half = z * self.deviation_s / (self.count as f64).sqrt();
        Some(Span::from_secs_f64(match bound {
            Bound::Lower => self.mean_s - half,
            Bound::Mean => self.mean_s,
            Bound::Upper => self.mean_s + half,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn samples(all: &[Span]) -> Samples {
        let mut samples = Samples::default();
        all.iter().for_each(|&sample| samples.add(sample));
        samples
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} and {b}");
    }

    /// Returns irregular times from 0 to 10 s, from a linear congruence.
    fn unruly(n: u64) -> Vec<Span> {
        let mut x = 12_345_u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Span::from_nanos((x >> 33) % 10_000_000_000)
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn sample_spans_the_first_to_the_last_chunk_before_loss_detection() {
        let mut time = LossFreeTime::default();
        for t in [100, 150, 400] {
            time.chunk_left(at(t));
        }
        assert_eq!(time.loss_detected(), Some(ms(300)));
    }

    #[test]
    fn the_next_sample_begins_with_the_first_chunk_after_the_loss() {
        let mut time = LossFreeTime::default();
        [0, 100].into_iter().for_each(|t| time.chunk_left(at(t)));
        assert_eq!(time.loss_detected(), Some(ms(100)));
        [500, 520, 590].into_iter().for_each(|t| time.chunk_left(at(t)));
        assert_eq!(time.loss_detected(), Some(ms(90)));
    }

    #[test]
    fn a_loss_with_nothing_sent_since_the_loss_before_is_no_sample() {
        let mut time = LossFreeTime::default();
        assert_eq!(time.loss_detected(), None);
        time.chunk_left(at(1));
        assert_eq!(time.loss_detected(), Some(ms(0)), "one chunk: first and last are the same");
        assert_eq!(time.loss_detected(), None);
    }

    #[test]
    fn equation_3_on_known_numbers() {
        // Equation 2: (1 + 2 + 6) / 3 = 3. Equation 3: 1; (1 x 1 + 2) / 2 = 1.5; (1.5 x 2 + 6) / 3 = 3.
        let mut samples = Samples::default();
        for (sample, mean) in [(1, 1.0), (2, 1.5), (6, 3.0)] {
            samples.add(Span::from_secs(sample));
            assert_eq!(samples.mean_s, mean);
        }
    }

    #[test]
    fn equation_5_on_known_numbers() {
        // Equation 4 for 1, 2, 6: sqrt((4 + 1 + 9) / 2) = sqrt(7).
        // Equation 5: S_2^2 = 0 + (2 - 1)^2 / 2 = 0.5; S_3^2 = 0.5 x 1 / 2 + (6 - 1.5)^2 / 3 = 0.25 + 6.75 = 7.
        let squares = [1, 2, 3].map(|n| {
            let s = samples(&[1, 2, 6].map(Span::from_secs)[..n]).deviation_s;
            s * s
        });
        squares.into_iter().zip([0.0, 0.5, 7.0]).for_each(|(square, expected)| close(square, expected));
    }

    #[test]
    fn the_running_forms_agree_with_the_sums_of_equations_2_and_4() {
        let all = unruly(500);
        for n in 2..=all.len() {
            let (running, x) = (samples(&all[..n]), all[..n].iter().map(|s| s.as_secs_f64()));
            let mean = x.clone().sum::<f64>() / n as f64;
            let squares = x.map(|x| (x - mean) * (x - mean)).sum::<f64>();
            close(running.mean_s, mean);
            close(running.deviation_s, (squares / (n as f64 - 1.0)).sqrt());
        }
    }

    #[test]
    fn equal_samples_have_no_deviation_and_an_interval_of_no_width() {
        let samples = samples(&[ms(250); 40]);
        close(samples.deviation_s, 0.0);
        for bound in [Bound::Lower, Bound::Mean, Bound::Upper] {
            assert_eq!(samples.confidence(bound, 1.96), Some(ms(250)));
        }
    }

    #[test]
    fn equation_6_on_known_numbers() {
        // 2, 4, 4, 6: mean 4, S^2 = (4 + 0 + 0 + 4) / 3 = 8/3, S = 1.632993; 1.96 x 1.632993 / sqrt(4) = 1.600333.
        let samples = samples(&[2, 4, 4, 6].map(Span::from_secs));
        let figure = |bound, z| samples.confidence(bound, z).expect("samples").as_secs_f64();
        close(figure(Bound::Lower, 1.96), 4.0 - 1.600_333_299);
        close(figure(Bound::Upper, 1.96), 4.0 + 1.600_333_299);
        close(figure(Bound::Mean, 1.96), 4.0);
        // With 99 %: 2.576 x 1.632993 / 2 = 2.103295.
        close(figure(Bound::Upper, 2.576), 4.0 + 2.103_295_193);
    }

    #[test]
    fn a_lower_end_below_zero_is_zero() {
        // 1, 9: mean 5, S = sqrt(32) = 5.657; 1.96 x 5.657 / sqrt(2) = 7.84.
        let two = samples(&[1, 9].map(Span::from_secs));
        assert_eq!(two.confidence(Bound::Lower, 1.96), Some(Span::ZERO));
        assert_eq!(two.confidence(Bound::Upper, 1.96), Some(ms(12_840)));
    }

    #[test]
    fn one_sample_is_its_own_interval_and_none_has_none() {
        let one = samples(&[ms(700)]);
        for bound in [Bound::Lower, Bound::Mean, Bound::Upper] {
            assert_eq!(one.confidence(bound, 1.96), Some(ms(700)));
            assert_eq!(Samples::default().confidence(bound, 1.96), None);
        }
    }
}
