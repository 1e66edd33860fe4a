//! Formulas of CMT-QA's data distribution (Xu et al. 2013, equations 7 and 9 to 13). Times are in seconds, data and windows in
//! bytes, Q in seconds per byte.

use anabranch_core::policy::PathFacts;
use anabranch_core::time::Span;

use crate::definition::{Equation, SACK_PROCESSING};

pub(crate) const RULES: &[Equation] = &[
    Equation {
        name: "equation 7",
        rule: "D_max = min(sum of (cwnd_i - outstanding_i), rwnd)",
        file: file!(),
    },
    Equation { name: "equation 8", rule: "rwnd = a_rwnd - sum of outstanding_i", file: SACK_PROCESSING },
    Equation { name: "equation 9", rule: "T_handle_i = Q_i cwnd_i", file: file!() },
    Equation { name: "equation 10", rule: "P_d = max T_handle_i", file: file!() },
    Equation {
        name: "equations 11, 12",
        rule: "k = ceil((sqrt((2 cwnd_i - MTU)^2 + 8 MTU D_i) - (2 cwnd_i - MTU)) / (2 MTU))",
        file: file!(),
    },
    Equation { name: "equation 13", rule: "T_i = k Q_i cwnd_i", file: file!() },
];

/// Equation 7: returns the amount that may be distributed: the free parts of the windows, or the peer's window if that is less.
///
/// `free` contains cwnd_i - outstanding_i of each path. `bound` is the number of bytes that were distributed but not sent. The
/// windows still have to take them; the peer's window (equation 8, computed by core) already excludes them.
pub(crate) fn most_data(free: impl Iterator<Item = u64>, bound: u64, peer_window: u64) -> u64 {
    free.fold(0_u64, u64::saturating_add).saturating_sub(bound).min(peer_window)
}

/// Returns T_handle of a path, the time for one window (equation 9): Q_i x cwnd_i.
///
/// If Q of a path was not measured yet, a window counts as delivered in a round-trip time, or in an RTO without that.
pub(crate) fn handling_time(path: &PathFacts) -> f64 {
    match path.estimates.seconds_per_byte {
        Some(q) => q * path.cwnd.get() as f64,
        None => path.rtt.smoothed.unwrap_or(path.rto).as_secs_f64(),
    }
}

/// Returns P_d, the period of distribution: the longest T_handle (equation 10).
pub(crate) fn period(handling_times: impl Iterator<Item = f64>) -> f64 {
    handling_times.fold(0.0, f64::max)
}

/// Returns how often a path is served in a period: P_d / T_handle_i, rounded up (text after equation 10). Both are compared in
/// integer nanoseconds, so that integer quotients stay exact.
pub(crate) fn frequency(period: f64, handling_time: f64) -> u64 {
    let [period, handling] = [period, handling_time].map(|s| Span::from_secs_f64(s).as_nanos());
    period.div_ceil(handling.max(1)).max(1)
}

/// Returns the left side of equation 11: the bytes delivered in k rounds, with a window that grows by a packet per round.
pub(crate) fn delivered_in(rounds: u64, cwnd: u64, mtu: u64) -> u128 {
    let [k, cwnd, mtu] = [rounds, cwnd, mtu].map(u128::from);
    k * cwnd + mtu * (k * k.saturating_sub(1) / 2)
}

/// Returns the least k that satisfies equation 11: equation 12.
///
/// The root is exact for data that fills k rounds exactly if its square is below 2^53. Beyond that, the comparison with equation 11
/// corrects it.
pub(crate) fn rounds(cwnd: u64, mtu: u64, data: u64) -> u64 {
    // No window is smaller than a packet. If either were zero, there would be no answer.
    let mtu = mtu.max(1);
    let cwnd = cwnd.max(mtu);
    let [c, m, d] = [cwnd, mtu, data].map(|n| n as f64);
    let num = (2.0 * c - m) * (2.0 * c - m) + 8.0 * m * d;
    let mut k = ((num.sqrt() - (2.0 * c - m)) / (2.0 * m)).ceil() as u64;
    if k > 0 && delivered_in(k - 1, cwnd, mtu) >= u128::from(data) {
        k -= 1;
    } else if delivered_in(k, cwnd, mtu) < u128::from(data) {
        k += 1;
    }
    k
}

/// Returns T_i, the predicted delivery time: k rounds of T_handle each (equation 13), k x Q_i x cwnd_i.
pub(crate) fn delivery_time(rounds: u64, handling_time: f64) -> f64 {
    rounds as f64 * handling_time
}

/// Returns the amount assigned to a path in its k-th round: cwnd_i + (k - 1) x MTU (text after equation 13; Algorithm 2, line 20).
pub(crate) fn round_bytes(rounds: u64, cwnd: u64, mtu: u64) -> u64 {
    cwnd.saturating_add(rounds.saturating_sub(1).saturating_mul(mtu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, bytes, path};

    fn facts(cwnd: u64, q: Option<f64>) -> PathFacts {
        let mut facts = PathFacts { cwnd: bytes(cwnd), ..PathFacts::new(path(0), bytes(M)) };
        facts.estimates.seconds_per_byte = q;
        facts.rto = Span::from_secs(3);
        facts
    }

    #[test]
    fn equation_7_on_known_numbers() {
        // 10,000 - 4000 and 20,000 - 15,000 are free: 11,000 in all.
        let free = [6000, 5000];
        assert_eq!(most_data(free.into_iter(), 0, 65_536), 11_000);
        assert_eq!(most_data(free.into_iter(), 0, 8000), 8000, "the peer's window is less");
        assert_eq!(most_data(free.into_iter(), 4000, 65_536), 7000, "4000 B wait in the paths' queues");
        assert_eq!(most_data(free.into_iter(), 12_000, 65_536), 0);
        assert_eq!(most_data(std::iter::empty(), 0, 65_536), 0);
    }

    #[test]
    fn equation_9_on_known_numbers() {
        // 20 us per byte x 15,000 B = 0.3 s.
        assert!((handling_time(&facts(15_000, Some(20e-6))) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_path_without_q_takes_a_round_trip_and_without_that_a_time_out() {
        let mut unmeasured = facts(15_000, None);
        assert_eq!(handling_time(&unmeasured), 3.0);
        unmeasured.rtt.smoothed = Some(Span::from_millis(80));
        assert_eq!(handling_time(&unmeasured), 0.08);
    }

    #[test]
    fn equation_10_takes_the_longest() {
        assert_eq!(period([0.1, 0.4, 0.25].into_iter()), 0.4);
        assert_eq!(period(std::iter::empty()), 0.0);
    }

    #[test]
    fn a_path_is_served_as_often_as_its_time_fits_in_rounded_up() {
        // 0.4 / 0.1 = 4; 0.4 / 0.25 = 1.6; 0.4 / 0.4 = 1. 0.3 / 0.1 is 2.9999... in floating point, 3.3 / 1.1 is 3.0000...04.
        let pairs = [(0.4, 0.1, 4), (0.4, 0.25, 2), (0.4, 0.4, 1), (0.3, 0.1, 3), (3.3, 1.1, 3)];
        for (period, handling, times) in pairs {
            assert_eq!(frequency(period, handling), times, "{period} / {handling}");
        }
        assert_eq!(frequency(0.4, 0.0), 400_000_000, "a path that takes no time, as if it took 1 ns");
        assert_eq!(frequency(0.0, 0.0), 1);
    }

    #[test]
    fn equation_11_on_known_numbers() {
        // cwnd 3000, MTU 1500: 3000, 3000 + 4500, 3000 + 4500 + 6000.
        assert_eq!([0, 1, 2, 3].map(|k| delivered_in(k, 3000, 1500)), [0, 3000, 7500, 13_500]);
    }

    #[test]
    fn equation_12_on_known_numbers() {
        // cwnd 3000, MTU 1500, D 7500: num = 4500^2 + 8 x 1500 x 7500 = 110,250,000 = 10,500^2; (10,500 - 4500) / 3000 = 2.
        // D 7501: num = 110,262,000, root 10,500.57, 2.0002 rounds, so 3.
        for (data, k) in [(0, 0), (1, 1), (3000, 1), (3001, 2), (7500, 2), (7501, 3), (13_500, 3)] {
            assert_eq!(rounds(3000, 1500, data), k, "D = {data}");
        }
    }

    /// Returns the least k that satisfies equation 11, by summation.
    fn counted(cwnd: u64, mtu: u64, data: u64) -> u64 {
        let (mut k, mut sum) = (0, 0);
        while sum < data {
            sum += cwnd + k * mtu;
            k += 1;
        }
        k
    }

    #[test]
    fn equation_12_is_the_least_k_of_equation_11() {
        for mtu in [1, 536, 1452, 1468, 8968] {
            for cwnd in [mtu, mtu + 1, 2 * mtu, 4380, 65_536, 1_000_003].into_iter().filter(|&c| c >= mtu) {
                for data in (0..400_000).step_by(997) {
                    assert_eq!(rounds(cwnd, mtu, data), counted(cwnd, mtu, data), "{cwnd} {mtu} {data}");
                }
                // Boundaries: data that fill k rounds exactly, and one byte more or less.
                for k in 1..60 {
                    let full = delivered_in(k, cwnd, mtu) as u64;
                    let around = [full - 1, full, full + 1].map(|data| rounds(cwnd, mtu, data));
                    assert_eq!(around, [full - 1, full, full + 1].map(|data| counted(cwnd, mtu, data)));
                }
            }
        }
    }

    #[test]
    fn equation_12_holds_beyond_what_floating_point_resolves() {
        for (cwnd, data) in [(1 << 40, (1 << 40) + 1), ((1 << 40) + 1, 1 << 41), (1 << 31, (1 << 36) + 7)] {
            let k = rounds(cwnd, M, data);
            assert!(delivered_in(k, cwnd, M) >= u128::from(data));
            assert!(delivered_in(k - 1, cwnd, M) < u128::from(data));
        }
    }

    #[test]
    fn out_of_range_arguments_have_a_result() {
        assert_eq!(rounds(0, 0, 0), 0);
        assert_eq!(rounds(0, 0, 1), 1);
        assert_eq!(rounds(0, M, M + 1), 2, "a window is one packet at least");
    }

    #[test]
    fn equation_13_on_known_numbers() {
        // Three rounds of 20 us/B x 15,000 B = 0.3 s each.
        assert!((delivery_time(3, handling_time(&facts(15_000, Some(20e-6)))) - 0.9).abs() < 1e-12);
        assert_eq!(delivery_time(0, 0.3), 0.0);
    }

    #[test]
    fn each_round_adds_a_packet() {
        assert_eq!([1, 2, 3].map(|k| round_bytes(k, 3000, 1500)), [3000, 4500, 6000]);
    }
}
