//! Rate adaptation of a radio link: the rate follows a fading channel.
//!
//! The channel is the finite-state Markov model of Rayleigh fading (Wang and Moayeri, "Finite-state Markov channel", IEEE
//! Transactions on Vehicular Technology 44(1), 1995): a state is a range of the SNR, and the channel leaves it to a neighbour as often
//! as the SNR crosses the threshold between them. The ranges are those of the modes of IEEE 802.11a, so each state is a rate.

use anabranch_core::time::{Rate, Span, Time};

use crate::dynamics::LinkChange;
use crate::error::{ConfigError, require};
use crate::rng::Stream;

/// Modes of IEEE 802.11a: rate in Mbit/s, and sensitivity of a receiver in dBm (IEEE 802.11-2016, table 17-18, 20 MHz).
const MODES: [(u64, f64); 8] =
    [(6, -82.0), (9, -81.0), (12, -79.0), (18, -77.0), (24, -74.0), (36, -70.0), (48, -66.0), (54, -65.0)];
/// Noise of a receiver in dBm: thermal noise in 20 MHz, and the noise figure of 10 dB that the standard assumes.
const NOISE_DBM: f64 = -91.0;
const COUNT: usize = MODES.len();
/// Rate of the highest mode.
const HIGHEST: u64 = MODES[COUNT - 1].0;

/// Rate adaptation over a Rayleigh channel. The link's own rate is that of the highest mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Mean SNR in dB, from 0 to 40.
    pub snr_db: f64,
    /// Largest Doppler shift in Hz: speed over wavelength.
    pub doppler_hz: f64,
}

impl Fading {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        require((0.0..=40.0).contains(&self.snr_db), "fading SNR", "must be from 0 to 40 dB")?;
        let is_moving = (0.1..=1000.0).contains(&self.doppler_hz);
        require(is_moving, "fading Doppler shift", "must be from 0.1 to 1000 Hz")
    }

    /// Returns the lower threshold of the SNR of a state over the mean SNR. The lowest state has none.
    fn threshold(&self, state: usize) -> f64 {
        let sensitivity_db = MODES[state].1 - NOISE_DBM;
        if state == 0 { 0.0 } else { libm::pow(10.0, (sensitivity_db - self.snr_db) / 10.0) }
    }

    /// Returns the probabilities of the states.
    fn shares(&self) -> [f64; COUNT] {
        let above = |state: usize| if state < COUNT { libm::exp(-self.threshold(state)) } else { 0.0 };
        std::array::from_fn(|state| above(state) - above(state + 1))
    }

    /// Returns how often per second the SNR crosses the lower threshold of a state upwards.
    fn crossings(&self, state: usize) -> f64 {
        let Some(threshold) = (1..COUNT).contains(&state).then(|| self.threshold(state)) else { return 0.0 };
        libm::sqrt(2.0 * std::f64::consts::PI * threshold) * self.doppler_hz * libm::exp(-threshold)
    }

    /// Returns the mean of a link's rate.
    pub fn mean_rate(&self, highest: Rate) -> Rate {
        let shares = self.shares().into_iter().zip(MODES);
        let part: f64 = shares.map(|(share, (rate, _))| share * rate as f64 / HIGHEST as f64).sum();
        Rate::from_bps(libm::round(highest.as_bps() as f64 * part) as u64)
    }
}

/// State of a fading channel during a run.
#[derive(Clone, Debug)]
pub(crate) struct FadingCursor {
    rates: [Rate; COUNT],
    /// Rates per second at which a state is left for the next higher one, and for either neighbour.
    exits: [(f64, f64); COUNT],
    state: usize,
    /// Time at which the channel enters `state`.
    at: Time,
    stream: Stream,
}

impl FadingCursor {
    pub(crate) fn new(fading: Fading, highest: Rate, mut stream: Stream) -> Self {
        let shares = fading.shares();
        let rates = MODES.map(|(rate, _)| Rate::from_bps((highest.as_bps() * rate / HIGHEST).max(1)));
        let exits = std::array::from_fn(|state| {
            let (up, down) = (fading.crossings(state + 1), fading.crossings(state));
            (up / shares[state], (up + down) / shares[state])
        });
        let drawn = stream.unit();
        let sums = shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let state = sums.take_while(|sum| *sum <= drawn).count().min(COUNT - 1);
        FadingCursor { rates, exits, state, at: Time::ZERO, stream }
    }

    /// Returns the time of the next change.
    pub(crate) fn next_time(&self) -> Time {
        self.at
    }

    /// Returns the rate of the next state, and draws the time and direction in which the channel leaves it.
    pub(crate) fn pop(&mut self) -> LinkChange {
        let rate = self.rates[self.state];
        let (up, either) = self.exits[self.state];
        self.at += Span::from_secs_f64(self.stream.exponential(1.0 / either)).max(Span::from_nanos(1));
        self.state = if self.stream.chance(up / either) { self.state + 1 } else { self.state - 1 };
        LinkChange::Rate(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    const HIGHEST_RATE: Rate = Rate::from_bps(54_000_000);

    fn cursor(fading: Fading, seed: u64) -> FadingCursor {
        FadingCursor::new(fading, HIGHEST_RATE, Seeds::new(seed, 0).stream(&["fading"]))
    }

    /// Returns the mean rate over this time, and the number of changes.
    fn mean_bps(fading: Fading, seed: u64, seconds: u64) -> (f64, u64) {
        let mut cursor = cursor(fading, seed);
        let (end, mut bits, mut changes) = (Time::ZERO + Span::from_secs(seconds), 0.0, 0);
        while cursor.next_time() < end {
            let from = cursor.next_time();
            let LinkChange::Rate(rate) = cursor.pop() else { panic!("another change") };
            let until = cursor.next_time().min(end);
            bits += rate.as_bps() as f64 * until.since(from).as_secs_f64();
            changes += 1;
        }
        (bits / seconds as f64, changes)
    }

    #[test]
    fn mean_rate_and_number_of_changes_are_those_of_the_channel() {
        for (snr_db, doppler_hz) in [(0.0, 10.0), (8.0, 50.0), (20.0, 10.0), (25.0, 50.0), (35.0, 10.0)] {
            let fading = Fading { snr_db, doppler_hz };
            let (found, changes) = mean_bps(fading, 7, 4000);
            let expected = fading.mean_rate(HIGHEST_RATE).as_bps() as f64;
            assert!((found / expected - 1.0).abs() < 0.02, "{snr_db} dB: {found} for {expected}");
            let crossings: f64 = (1..COUNT).map(|state| 2.0 * fading.crossings(state)).sum();
            let expected = crossings * 4000.0;
            // Crossings come in groups, so their number varies more than that of independent events.
            let tolerance = 0.04 * expected + 8.0 * expected.sqrt();
            assert!((changes as f64 - expected).abs() < tolerance, "{snr_db} dB: {changes} for {expected}");
        }
    }

    #[test]
    fn higher_snr_has_a_higher_mean_rate_up_to_the_highest_mode() {
        let mean = |snr_db: f64| Fading { snr_db, doppler_hz: 5.0 }.mean_rate(HIGHEST_RATE).as_bps();
        assert!((0..40).all(|db| mean(f64::from(db)) < mean(f64::from(db + 1))));
        assert!(mean(0.0) > 6_000_000 && mean(0.0) < 6_100_000 && mean(40.0) > 51_000_000);
    }

    #[test]
    fn neighbouring_states_follow_each_other_and_equal_seeds_repeat() {
        let fading = Fading { snr_db: 20.0, doppler_hz: 100.0 };
        let states = |seed| {
            let mut cursor = cursor(fading, seed);
            std::iter::from_fn(|| Some((cursor.state, cursor.at, cursor.pop()).0))
                .take(2000)
                .collect::<Vec<_>>()
        };
        assert!(states(1).windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1));
        assert_eq!(states(1), states(1));
        assert_ne!(states(1), states(2));
    }

    #[test]
    fn parameters_outside_of_the_model_are_refused() {
        let check = |snr_db, doppler_hz| Fading { snr_db, doppler_hz }.check().is_ok();
        assert!(check(0.0, 0.1) && check(40.0, 1000.0));
        for (snr_db, doppler_hz) in [(-1.0, 1.0), (41.0, 1.0), (20.0, 0.0), (20.0, 1001.0), (f64::NAN, 1.0)] {
            assert!(!check(snr_db, doppler_hz), "{snr_db} dB, {doppler_hz} Hz");
        }
    }
}
