//! Packet-timed round trips (draft-ietf-ccwg-bbr-06 section 5.5.1): a round ends when a packet sent after its start is
//! acknowledged.

use anabranch_core::units::ChunkBytes;

/// Rounds of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Number of delivered bytes at which the next round begins: the acknowledgement of a transmission that was sent at or after
    /// this number ends the round.
    ends_at: ChunkBytes,
    count: u64,
    since_probe: u64,
    just_ended: bool,
}

impl Rounds {
    /// Processes the acknowledgement of a transmission that was sent when `delivered_before` bytes had been delivered.
    pub(super) fn acknowledge(&mut self, delivered_before: ChunkBytes, delivered: ChunkBytes) {
        self.just_ended = delivered_before >= self.ends_at;
        if self.just_ended {
            self.begin(delivered);
            self.count += 1;
            self.since_probe += 1;
        }
    }

    /// Processes an acknowledgement without information about rounds.
    pub(super) fn pass(&mut self) {
        self.just_ended = false;
    }

    /// Begins a round now, even if the previous one has not ended.
    pub(super) fn begin(&mut self, delivered: ChunkBytes) {
        self.ends_at = delivered;
    }

    /// Restarts the count until the next probe at a random number.
    pub(super) fn count_from(&mut self, rounds: u64) {
        self.since_probe = rounds;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn since_probe(&self) -> u64 {
        self.since_probe
    }

    /// Returns `true` if the current acknowledgement ended a round.
    pub(super) fn just_ended(&self) -> bool {
        self.just_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;

    #[test]
    fn round_ends_with_data_sent_after_its_start() {
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
