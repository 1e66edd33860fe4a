//! Several copies of a chunk in flight at once: how they leave, and what becomes of those whose chunk has arrived in another
//! copy.

use crate::association::Association;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{AckedTransmission, Event, ProofOfLife, SendKind};
use crate::send::{ChunkState, Orphan};

impl Association {
    /// The next packet of copies that the scheduler or the retransmission policy asked for.
    pub(crate) fn transmit_copy(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        let mut copies = self.opportunity.copies?;
        while let Some(path) = copies.others.first() {
            copies.others.remove(path);
            self.opportunity.copies = Some(copies);
            if self.has_room(path) && self.copy_packet(path, copies.first..copies.after, SendKind::Copy, buf)
            {
                self.new_packet_left(path);
                return Some(path);
            }
        }
        self.opportunity.copies = None;
        None
    }

    /// Sends chunks once more that are in flight. Returns `false` if none of them is, or if the packets of the path are too small.
    pub(crate) fn copy_packet(
        &mut self,
        path: PathId,
        tsns: std::ops::Range<u64>,
        kind: SendKind,
        buf: &mut PacketBuffer,
    ) -> bool {
        if !self.fits(path, tsns.start) {
            return false;
        }
        let size = self.packet_size_for(path, tsns.start);
        let sets_immediate_bit = self.sets_immediate_bit(kind != SendKind::Copy);
        self.write_packet(size, buf, |this, writer| {
            for tsn in tsns {
                let Some(chunk) =
                    this.sender.outstanding().get(tsn).filter(|c| c.state == ChunkState::InFlight)
                else {
                    continue;
                };
                let mut repr = super::outbound::data_repr(tsn, &chunk.draft);
                repr.flags.immediate |= sets_immediate_bit;
                if this.identity.contents.write(writer, &repr, &chunk.draft.payload).is_err() {
                    break;
                }
                this.paths.end_measurement_of(path, tsn);
                let now = this.now;
                let left = this.update_sender(|sender| sender.copy(tsn, path, now));
                this.further_transmission(path, tsn, left, kind);
            }
            !writer.is_empty()
        })
    }

    /// The peer reported a chunk as received twice: if a copy of it is still counted as in flight, it has arrived, and its
    /// path is credited. `true` if there was one.
    pub(crate) fn credit_orphan(&mut self, tsn: u64) -> bool {
        let on = |path: &PathId| self.sender.has_orphan_on(*path, tsn);
        let Some(path) = self.sack.source.filter(on).or_else(|| self.paths.live().find(on)) else {
            return false;
        };
        let Some(orphan) = self.sender.take_orphan(path, tsn) else { return false };
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
        let sample = self.deliver(path, orphan.bytes, orphan.stamps, false);
        self.path_spoke(path);
        self.dispatch_event(&Event::Acked(&AckedTransmission { tsn: orphan.tsn, ..sample }));
        self.path_proved(path, ProofOfLife::Ambiguous);
    }
}
