//! Credit of acknowledged chunks to one of their transmissions, and of duplicates to the others.

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::LossRecovery;
use crate::path_id::PathId;
use crate::policy::{AckedTransmission, Event, LivenessProof, LossCause};
use crate::send::{ChunkState, Delivered, Transmission};

impl LossRecovery {
    /// Credits one chunk to one of its transmissions.
    pub(super) fn credit(
        &mut self,
        tsn: u64,
        credited: &Transmission,
        cumulative: bool,
        d: &mut Dispatcher<'_>,
    ) {
        let Some(chunk) = d.sender.outstanding().get(tsn) else { return };
        let (path, bytes, stamps) = (credited.path, chunk.bytes(), credited.stamps);
        let once = chunk.transmissions == 1;
        let judges = self.judges_copies(d.paths);
        let timed_out = chunk.state == ChunkState::Lost(LossCause::Timeout);
        let was_lost = matches!(chunk.state, ChunkState::Lost(_));
        if was_lost {
            d.sender.revoke_loss(tsn, credited);
        }
        d.sender.acknowledge(tsn, credited);
        if !was_lost && !judges {
            d.sender.end_overtaken_duplicates(path, stamps.sent_at);
        }
        if once && judges {
            self.delivered[path.index()].note(stamps.sent_at);
        }
        self.note_ack(tsn, credited, cumulative, d);
        measure(tsn, path, once, timed_out, d);
        if once && !timed_out && self.source == Some(path) {
            // The minimum RTT uses chunks that were sent once and acknowledged on the path itself.
            d.paths.note_least_rtt(path, stamps.sent_at, d.now);
        }
        let (sack_path, now) = (self.source, d.now);
        let delivered = Delivered { stamps, certain: once, same_way: sack_path == Some(path) };
        d.update_sender(|sender| sender.deliver(path, bytes, delivered, now));
        d.path_answered(path);
        d.paths.note_delivered_size(path, bytes);
        let (sent_once, certain) = (once, once);
        let event = AckedTransmission { path, tsn, bytes, stamps, sent_once, certain, cumulative, sack_path };
        d.dispatch(&Event::Acked(&event));
        if !timed_out {
            let proof = if once { LivenessProof::Unambiguous } else { LivenessProof::Ambiguous };
            //= docs/rfc9260.txt#section-8.1
            //# The counter used for endpoint failure detection MUST be reset each time a DATA chunk sent to that peer
            //# endpoint is acknowledged (by the reception of a SACK chunk).
            d.path_proved(path, proof);
        }
        self.acknowledges = true;
    }

    fn note_ack(&mut self, tsn: u64, credited: &Transmission, cumulative: bool, d: &mut Dispatcher<'_>) {
        let (path, bytes, sent_at) = (credited.path, credited.bytes, credited.stamps.sent_at);
        let facts = d.paths.facts(path);
        let in_avoidance = facts.cwnd > facts.ssthresh;
        let ack = &mut self.acks[path.index()];
        let sack = &mut self.sacks[path.index()];
        sack.lowest_newly_acked.get_or_insert(tsn);
        sack.latest_sent_at = sack.latest_sent_at.max(Some(sent_at));
        if cumulative {
            d.paths.search_pseudo_again(path);
            ack.new_pseudo_cumulative = true;
            ack.cumulative += bytes;
            sack.new_cumulative_ack = true;
            self.highest_newly_acked = tsn;
            return;
        }
        if d.paths.advance_pseudo(path, tsn) {
            ack.new_pseudo_cumulative = true;
            self.pseudo_from[path.index()] = tsn + 1;
        }
        ack.gap += bytes;
        // Slow start counts newly acknowledged bytes, congestion avoidance each chunk once.
        if ack.new_pseudo_cumulative && (!in_avoidance || d.sender.count_toward_increment(tsn)) {
            ack.gap_after_pseudo += bytes;
        }
        sack.new_gap_ack = true;
        sack.highest_gap_acked = Some(tsn);
        self.highest_newly_acked = self.highest_newly_acked.max(tsn);
    }

    /// Credits the copy of a chunk that the peer reports as received twice, if one still counts as in flight. Returns `true` if
    /// there was one.
    pub(super) fn credit_duplicate(&mut self, tsn: u64, d: &mut Dispatcher<'_>) -> bool {
        let on = |path: &PathId| d.sender.has_duplicate_on(*path, tsn);
        let Some(path) = self.source.filter(on).or_else(|| d.paths.live().find(on)) else {
            return false;
        };
        let Some(copy) = d.sender.take_duplicate(path, tsn) else { return false };
        let (bytes, stamps) = (copy.bytes, copy.stamps);
        let ack = &mut self.acks[path.index()];
        ack.gap += bytes;
        ack.gap_after_pseudo += bytes;
        ack.new_pseudo_cumulative = true;
        self.restart_t3[path.index()] = true;
        let (sack_path, now) = (self.source, d.now);
        self.peer_reports_duplicates = true;
        let (judges, same_way) = (self.judges_copies(d.paths), sack_path == Some(path));
        // The peer reports a copy on the path on which it arrived. A report on another path means that the chunk's first
        // acknowledgement was credited to the wrong copy, so that this copy may be the first one (Karn).
        let certain = same_way || !judges;
        if certain {
            d.take_rtt(path, d.now.since(stamps.sent_at), false);
        }
        self.delivered[path.index()].note(stamps.sent_at);
        let delivered = Delivered { stamps, certain: judges && same_way, same_way };
        d.update_sender(|sender| sender.deliver(path, bytes, delivered, now));
        d.path_answered(path);
        let (sent_once, cumulative) = (false, false);
        let event = AckedTransmission { path, tsn, bytes, stamps, sent_once, certain, cumulative, sack_path };
        d.dispatch(&Event::Acked(&event));
        d.path_proved(path, LivenessProof::Ambiguous);
        if !judges {
            d.update_sender(|sender| sender.end_overtaken_duplicates(path, stamps.sent_at));
        }
        true
    }
}

/// Takes an RTT sample if this chunk carried the path's measurement and is not ambiguous (Karn).
fn measure(tsn: u64, path: PathId, once: bool, timed_out: bool, d: &mut Dispatcher<'_>) {
    //= docs/rfc9260.txt#section-6.3.1
    //# C5)  Karn's algorithm: RTT measurements MUST NOT be made using chunks that were retransmitted (and thus for
    //# which it is ambiguous whether the reply was for the first instance of the chunk or for a later instance).
    if !once || !d.paths.end_measurement_of(path, tsn) || timed_out {
        return;
    }
    if let Some(sent_at) = d.sender.outstanding().latest_of(tsn).map(|sent| sent.stamps.sent_at) {
        d.publish_counts();
        d.take_rtt(path, d.now.since(sent_at), false);
    }
}
