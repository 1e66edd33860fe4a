//! Detection of a full path: more data in flight no longer increases the rate (draft-ietf-ccwg-bbr-06 section 5.3.1.2).

use anabranch_core::time::Rate;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.3.1.2, full pipe",
    rule: text!(
        "{} rounds that only the path limits, without a delivery rate of {} times the previous maximum: \
         the path is full",
        ROUNDS,
        GROWTH,
    ),
    file: file!(),
}];

/// Factor that counts as growth of the rate.
pub(crate) const GROWTH: f64 = 1.25;
/// Number of rounds without growth after which the path is full.
pub(crate) const ROUNDS: u32 = 3;

/// Search for the rate at which a path is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    rounds: u32,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// Restarts the search, and expects growth beyond this rate (ResetFullBW).
    pub(super) fn restart_search(&mut self, baseline: Rate) {
        *self = FullPipe { baseline, rounds: 0, now: false, ever: self.ever };
    }

    /// Ends a round with this rate, which only the path limited.
    pub(super) fn end_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate.as_bps() as f64 >= GROWTH * self.baseline.as_bps() as f64 {
            return self.restart_search(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.ever |= self.now;
    }

    /// Records a full path, as detected by losses (section 5.3.1.3).
    pub(super) fn conclude(&mut self) {
        self.ever = true;
    }

    /// Revokes that detection, because the losses were spurious.
    pub(super) fn revoke(&mut self) {
        self.ever = false;
    }

    /// Returns full_bw_now: whether the current search found a full path.
    pub(super) fn is_full(&self) -> bool {
        self.now
    }

    /// Returns full_bw_reached: whether any search found a full path.
    pub(super) fn was_full(&self) -> bool {
        self.ever
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(n: u64) -> Rate {
        Rate::from_bps(n * 1_000_000)
    }

    #[test]
    fn three_rounds_without_a_quarter_more_are_a_full_path() {
        let mut pipe = FullPipe::default();
        for rate in [4, 8, 9, 9] {
            pipe.end_round(mbps(rate));
            assert!(!pipe.is_full());
        }
        // A quarter more than 8 restarts the count.
        for (rate, full) in [(10, false), (12, false), (12, false), (12, true)] {
            pipe.end_round(mbps(rate));
            assert_eq!(pipe.is_full(), full, "{rate}");
        }
        pipe.restart_search(mbps(12));
        assert_eq!((pipe.is_full(), pipe.was_full()), (false, true));
    }
}
