//! ACK aggregation: the excess of acknowledged data over the rate (draft-ietf-ccwg-bbr-06 section 5.5.9). This much more must be in
//! flight to keep the path full between acknowledgements.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::windowed::WindowedMax;

use crate::component::bbr::volume;

/// Window of the maximum excess, in rounds (ExtraAckedFilterLen). Startup uses one round.
const MEMORY_ROUNDS: u64 = 10;

/// Excess of a path's acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    began: Time,
    delivered: ChunkBytes,
    excess: WindowedMax<ChunkBytes>,
}

impl Aggregation {
    /// Starts a new measurement, because the path was idle.
    pub(super) fn restart(&mut self, now: Time) {
        (self.began, self.delivered) = (now, ChunkBytes::ZERO);
    }

    /// Processes an acknowledgement of `bytes`. The excess is limited to `most`.
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

    /// Returns extra_acked.
    pub(super) fn get(&self) -> ChunkBytes {
        self.excess.get().unwrap_or(ChunkBytes::ZERO)
    }
}

/// Time and state of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) round: u64,
    /// Set once Startup is over.
    pub(super) was_full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;

    /// Returns the excess after these acknowledgements (milliseconds, bytes) at 8 Mbit/s.
    fn excess(acks: &[(u64, u64)]) -> u64 {
        let mut aggregation = Aggregation::default();
        for (round, &(ms, acked)) in (0..).zip(acks) {
            let moment = Moment { now: Time::from_nanos(ms * 1_000_000), round, was_full: true };
            aggregation.acknowledge(bytes(acked), bytes(1 << 30), Rate::from_bps(8_000_000), moment);
        }
        aggregation.get().get()
    }

    #[test]
    fn arrivals_at_the_estimated_rate_aggregate_one_acknowledgement() {
        assert_eq!(excess(&[(10, 2_000), (12, 2_000), (14, 2_000), (16, 2_000)]), 2_000);
    }

    #[test]
    fn simultaneous_arrivals_are_the_excess() {
        // The rate accounts for 1,000 B in the millisecond between them.
        assert_eq!(excess(&[(10, 20_000), (11, 5_000)]), 24_000);
    }
}
