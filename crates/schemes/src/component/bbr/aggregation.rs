//! How much more is acknowledged at once than the rate explains (draft-ietf-ccwg-bbr-06 section 5.5.9): so much more has to be in flight
//! for the path to stay full between acknowledgements.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::windowed::WindowedMax;

use crate::component::bbr::volume;

/// ExtraAckedFilterLen, in rounds; one round in Startup.
const MEMORY_ROUNDS: u64 = 10;

/// The excess of a path's acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    began: Time,
    delivered: ChunkBytes,
    excess: WindowedMax<ChunkBytes>,
}

impl Aggregation {
    /// What was acknowledged before counts no more: the path was idle.
    pub(super) fn restart(&mut self, now: Time) {
        (self.began, self.delivered) = (now, ChunkBytes::ZERO);
    }

    /// So many bytes are acknowledged, of `most` at once.
    pub(super) fn acknowledge(&mut self, bytes: ChunkBytes, most: ChunkBytes, bw: Rate, moment: Moment) {
        let mut expected = volume(bw, moment.now.since(self.began));
        if self.delivered <= expected {
            (self.delivered, self.began) = (ChunkBytes::ZERO, moment.now);
            expected = ChunkBytes::ZERO;
        }
        self.delivered += bytes;
        let memory = if moment.was_full { MEMORY_ROUNDS } else { 1 };
        self.excess.update(moment.round, (self.delivered - expected).min(most), memory);
    }

    /// extra_acked.
    pub(super) fn get(&self) -> ChunkBytes {
        self.excess.get().unwrap_or(ChunkBytes::ZERO)
    }
}

/// When something was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) round: u64,
    /// Startup is over.
    pub(super) was_full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;

    /// The excess after acknowledgements of 8 Mbit/s, so many bytes at so many milliseconds.
    fn excess(acks: &[(u64, u64)]) -> u64 {
        let mut aggregation = Aggregation::default();
        for (round, &(ms, acked)) in (0..).zip(acks) {
            let moment = Moment { now: Time::from_nanos(ms * 1_000_000), round, was_full: true };
            aggregation.acknowledge(bytes(acked), bytes(1 << 30), Rate::from_bps(8_000_000), moment);
        }
        aggregation.get().get()
    }

    #[test]
    fn what_comes_as_fast_as_the_rate_says_is_no_more_than_one_acknowledgement() {
        assert_eq!(excess(&[(10, 2_000), (12, 2_000), (14, 2_000), (16, 2_000)]), 2_000);
    }

    #[test]
    fn what_comes_at_once_is_its_excess() {
        // In the millisecond between them the rate explains 1,000 B.
        assert_eq!(excess(&[(10, 20_000), (11, 5_000)]), 24_000);
    }
}
