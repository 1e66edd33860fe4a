//! Round trips counted by packets (draft-ietf-ccwg-bbr-06 section 5.5.1): one is over when something is acknowledged that left after
//! it had begun.

use anabranch_core::units::ChunkBytes;

/// The rounds of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// The round ends with a transmission that left after so much had been delivered.
    ends_at: ChunkBytes,
    count: u64,
    since_probe: u64,
    just_ended: bool,
}

impl Rounds {
    /// A transmission is acknowledged that left when `delivered_before` had been delivered; now it is `delivered`.
    pub(super) fn acknowledge(&mut self, delivered_before: ChunkBytes, delivered: ChunkBytes) {
        self.just_ended = delivered_before >= self.ends_at;
        if self.just_ended {
            self.begin(delivered);
            self.count += 1;
            self.since_probe += 1;
        }
    }

    /// An acknowledgement that says nothing about rounds.
    pub(super) fn pass(&mut self) {
        self.just_ended = false;
    }

    /// A round begins now, whatever became of the one before.
    pub(super) fn begin(&mut self, delivered: ChunkBytes) {
        self.ends_at = delivered;
    }

    /// Counts anew until the next probe, from a number that is drawn.
    pub(super) fn count_from(&mut self, rounds: u64) {
        self.since_probe = rounds;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn since_probe(&self) -> u64 {
        self.since_probe
    }

    /// The present acknowledgement ended one.
    pub(super) fn just_ended(&self) -> bool {
        self.just_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;

    #[test]
    fn a_round_ends_with_what_left_after_it_had_begun() {
        let mut rounds = Rounds::default();
        rounds.acknowledge(bytes(0), bytes(1_000));
        assert!(rounds.just_ended());
        for before in [0, 500, 999] {
            rounds.acknowledge(bytes(before), bytes(2_000));
            assert!(!rounds.just_ended(), "{before} was delivered before the round began");
        }
        rounds.acknowledge(bytes(1_000), bytes(3_000));
        assert_eq!((rounds.just_ended(), rounds.count()), (true, 2));
        rounds.pass();
        assert!(!rounds.just_ended());
    }
}
