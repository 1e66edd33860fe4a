//! Copies of chunks whose acknowledgement has been credited to another copy.

use crate::association::Association;
use crate::path_id::PathId;
use crate::policy::{AckedTransmission, Event, ProofOfLife};
use crate::send::Orphan;

impl Association {
    /// The peer reported a chunk as received twice: if a copy of it is still counted as in flight, it has arrived, and its
    /// path is credited. `true` if there was one.
    pub(crate) fn credit_orphan(&mut self, tsn: u64) -> bool {
        let on = |path: &PathId| self.sender.has_orphan_on(*path, tsn);
        let Some(path) = self.sack.source.filter(on).or_else(|| self.live_paths().find(on)) else {
            return false;
        };
        let Some(orphan) = self.update_sender(|sender| sender.take_orphan(path, tsn)) else { return false };
        let ack = &mut self.sack.acks[path.index()];
        ack.gap += orphan.bytes;
        ack.gap_after_pseudo += orphan.bytes;
        ack.new_pseudo_cumulative = true;
        self.sack.restart_t3[path.index()] = true;
        // Only this copy can have been the second to arrive, so its round trip is no guess (Karn).
        self.take_rtt(path, self.now.since(orphan.stamps.sent_at), false);
        self.credit_orphan_delivery(path, &orphan);
        self.update_sender(|sender| sender.end_overtaken_orphans(path, orphan.stamps.sent_at));
        true
    }

    fn credit_orphan_delivery(&mut self, path: PathId, orphan: &Orphan) {
        let sample = self.deliver(path, orphan.bytes, orphan.stamps);
        self.path_spoke(path);
        self.dispatch_event(&Event::Acked(&AckedTransmission { tsn: orphan.tsn, ..sample }));
        self.path_proved(path, ProofOfLife::Ambiguous);
    }
}
