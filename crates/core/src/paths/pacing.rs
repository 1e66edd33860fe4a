//! Pacing of a path in its facts: the rate in force and the time at which the next packet may be sent.

use crate::path_id::PathId;
use crate::paths::Paths;
use crate::policy::Pacing;
use crate::time::{Rate, Time};
use crate::units::ChunkBytes;

impl Paths {
    /// Clears the wait of paths whose next packet may be sent now.
    pub(crate) fn release_paced(&mut self, now: Time) {
        for facts in &mut self.facts {
            facts.paced_until.take_if(|at| *at <= now);
        }
    }

    /// Counts DATA that is sent on a path against the path's rate.
    pub(crate) fn occupy_pacer(&mut self, id: PathId, bytes: ChunkBytes, now: Time) {
        if self.facts[id.index()].pacing.rate.is_some() {
            self.paths[id.index()].pacer.occupy(bytes, now);
            self.publish_pacer(id, now);
        }
    }

    fn publish_pacer(&mut self, id: PathId, now: Time) {
        self.facts[id.index()].paced_until = self.paths[id.index()].pacer.held_until(now);
    }

    /// Adopts the pacing that congestion control requests. Returns the pacing in force if it has changed. A rate that delays a
    /// packet by more than the longest time-out would block the path, and so would a cap below one largest chunk: both are raised.
    pub(crate) fn adopt_pacing(&mut self, id: PathId, wanted: Pacing, now: Time) -> Option<Pacing> {
        let largest = self.facts[id.index()].largest_chunk;
        let rate = wanted.rate.map(|rate| rate.max(self.slowest_rate(id)));
        let pacing = Pacing { rate, in_flight_cap: wanted.in_flight_cap.map(|cap| cap.max(largest)) };
        let changed = std::mem::replace(&mut self.facts[id.index()].pacing, pacing) != pacing;
        if rate.is_some() || changed {
            self.paths[id.index()].pacer.set(rate, largest, self.profile.pacing_timer, now);
            self.publish_pacer(id, now);
        }
        self.pacing_changed |= changed;
        changed.then_some(pacing)
    }

    /// Returns the rate of one largest chunk per longest retransmission time-out.
    fn slowest_rate(&self, id: PathId) -> Rate {
        let bits = self.facts[id.index()].largest_chunk.get().saturating_mul(8_000);
        let milliseconds = (self.profile.rto_max.as_nanos() / 1_000_000).max(1);
        Rate::from_bps((bits / milliseconds).max(1))
    }
}
