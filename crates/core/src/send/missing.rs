//! Chunks that a SACK leaves unacknowledged, as the loss policy sees them.

use crate::path_id::MAX_PATHS;
use crate::policy::Missing;
use crate::send::{ChunkState, Sender};

impl Sender {
    /// Returns `true` if a SACK can report a chunk as missing. A chunk that waits for its retransmission counts only with
    /// `pending_losses_are_cut` of the profile.
    pub(crate) fn is_hole(&self, tsn: u64) -> bool {
        let pending = self.profile.pending_losses_are_cut;
        self.outstanding.get(tsn).is_some_and(|chunk| {
            chunk.latest.is_some() && (pending || !matches!(chunk.state, ChunkState::Lost(_)))
        })
    }

    /// Returns `true` if there is a hole below this TSN.
    pub(crate) fn has_hole_below(&self, limit: u64) -> bool {
        self.outstanding.unacked().take_while(|&tsn| tsn < limit).any(|tsn| self.is_hole(tsn))
    }

    /// Describes a sent chunk for the loss policy.
    pub(crate) fn missing(&self, tsn: u64) -> Option<Missing> {
        let chunk = self.outstanding.get(tsn)?;
        let sent_at = self.outstanding.latest_of(tsn)?.stamps.sent_at;
        let (mut first_sent_at, mut in_flight_since) = (sent_at, [None; MAX_PATHS]);
        for transmission in self.outstanding.transmissions_of(tsn) {
            first_sent_at = transmission.stamps.sent_at;
            if transmission.in_flight {
                in_flight_since[transmission.path.index()].get_or_insert(transmission.stamps.sent_at);
            }
        }
        Some(Missing {
            tsn,
            path: chunk.path,
            sent_at,
            first_sent_at,
            in_flight_since,
            transmissions: chunk.transmissions,
            reports: chunk.reports,
            recovered_before: chunk.recovered_before,
            waits: matches!(chunk.state, ChunkState::Lost(_)),
        })
    }
}
