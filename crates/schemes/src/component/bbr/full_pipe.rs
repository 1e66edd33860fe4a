//! Whether more data in flight still brings a higher rate (draft-ietf-ccwg-bbr-06 section 5.3.1.2).

use anabranch_core::time::Rate;

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 5.3.1.2, full pipe",
    rule: "three rounds, which nothing but the path limits, without a delivery rate of 1.25 times the largest before: the path is full",
    file: file!(),
}];

/// So much more is growth.
const GROWTH: f64 = 1.25;
/// So many rounds without it are enough.
const ROUNDS: u32 = 3;

/// The search for the rate at which a path is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    rounds: u32,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// ResetFullBW: begins to look anew, and expects more than this rate.
    pub(super) fn look_beyond(&mut self, baseline: Rate) {
        *self = FullPipe { baseline, rounds: 0, now: false, ever: self.ever };
    }

    /// A round has ended with this rate, and nothing but the path limited it.
    pub(super) fn end_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate.as_bps() as f64 >= GROWTH * self.baseline.as_bps() as f64 {
            return self.look_beyond(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.ever |= self.now;
    }

    /// Losses said so (section 5.3.1.3).
    pub(super) fn conclude(&mut self) {
        self.ever = true;
    }

    /// The losses that said so were none.
    pub(super) fn revoke(&mut self) {
        self.ever = false;
    }

    /// full_bw_now: since the search began.
    pub(super) fn is_full(&self) -> bool {
        self.now
    }

    /// full_bw_reached: at any time.
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
        // A quarter more than 8 begins the count again.
        for (rate, full) in [(10, false), (12, false), (12, false), (12, true)] {
            pipe.end_round(mbps(rate));
            assert_eq!(pipe.is_full(), full, "{rate}");
        }
        pipe.look_beyond(mbps(12));
        assert_eq!((pipe.is_full(), pipe.was_full()), (false, true));
    }
}
