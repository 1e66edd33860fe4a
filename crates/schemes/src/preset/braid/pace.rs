//! Pacing of a path's packets.

use anabranch_core::policy::Pacing;
use anabranch_core::time::{Rate, Span};
use anabranch_core::units::ChunkBytes;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "pacing",
    rule: text!(
        "rate = {} cwnd / base in slow start, {} cwnd / base_m in delay mode, {} cwnd / (the latest round \
         trip) in competitive mode; base_m = max(base, min(SRTT, least round trip with SACKs on the path \
         itself)) is the mean over the return paths",
        SLOW_START_GAIN,
        GAIN,
        GAIN,
    ),
    file: file!(),
}];

/// Linux's `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`.
pub(super) const SLOW_START_GAIN: f64 = 2.0;
pub(super) const GAIN: f64 = 1.2;

/// Paces at `gain` windows per round trip.
pub(super) fn pace(gain: f64, cwnd: f64, round_trip: Span, in_flight_cap: Option<f64>) -> Pacing {
    let seconds = round_trip.as_secs_f64();
    // A conversion to an integer saturates.
    let rate = (seconds > 0.0).then(|| Rate::from_bps((gain * cwnd * 8.0 / seconds) as u64));
    Pacing { rate, in_flight_cap: in_flight_cap.map(|cap| ChunkBytes::new(cap as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_gain_times_the_window_per_round_trip() {
        let pacing = pace(1.2, 100_000.0, Span::from_millis(100), None);
        assert_eq!(pacing.rate, Some(Rate::from_bps(9_600_000)));
        let capped = pace(1.2, 100_000.0, Span::ZERO, Some(75.5));
        assert_eq!(capped, Pacing { rate: None, in_flight_cap: Some(ChunkBytes::new(75)) });
    }
}
