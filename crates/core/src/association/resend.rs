//! Sending lost chunks again, packet by packet, where the retransmission policy says.

use anabranch_wire::{COMMON_HEADER_LEN, PacketWriter, padded_len};

use crate::association::Association;
use crate::path::PathId;
use crate::policy::{Context, LossCause, LostChunk, Route, SendKind, SentTransmission, View};
use crate::profile::{BurstArming, FirstFastRetransmission};
use crate::send::{ChunkState, Stamps, Transmission};
use crate::trace::Decided;
use crate::units::ChunkBytes;

impl Association {
    /// Builds the next packet of lost chunks; `None` when this opportunity has no more.
    pub(crate) fn transmit_resend(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        while let Some(tsn) = self.next_to_resend() {
            match self.route(tsn) {
                Some(path) => return Some(self.resend_packet(path, tsn, buf)),
                None => self.turn.resend_from = Some(tsn + 1),
            }
        }
        None
    }

    fn next_to_resend(&mut self) -> Option<u64> {
        let next = self.turn.resend_from.and_then(|from| self.lost.at_or_after(from));
        if next.is_none() {
            self.turn.resend_from = None;
        }
        next
    }

    fn route(&mut self, tsn: u64) -> Option<PathId> {
        self.promote_if_none_active();
        let chunk = self.outstanding.get(tsn)?;
        let cause = match chunk.state {
            ChunkState::Lost(cause) => cause,
            _ => LossCause::Timeout,
        };
        let lost = LostChunk { tsn, bytes: chunk.bytes(), path: chunk.path, cause };
        let view =
            View { now: self.now, profile: &self.profile, paths: &self.facts, association: &self.shared };
        let context = &mut Context { entropy: &mut self.policy_entropy };
        let decision = self.policies.retransmit.route(&lost, &view, context);
        let path = match decision.choice {
            Route::Path(path) if self.facts.get(path.index()).is_some_and(|f| f.admits_retransmission()) => {
                Some(path)
            }
            _ => None,
        };
        self.record(Decided::Retransmit(path), tsn, decision.reason, &decision.refused);
        path
    }

    /// Fills one packet for `path` with lost chunks from `first` on.
    pub(crate) fn resend_packet(&mut self, path: PathId, first: u64, buf: &mut Vec<u8>) -> PathId {
        let size = self.packet_size_for(path, first);
        self.turn.resend_from =
            self.write_packet(size, buf, |this, writer| this.fill_with_lost(path, first, writer));
        self.resent_packet(path);
        path
    }

    /// The lost chunk to go on with.
    fn fill_with_lost(&mut self, path: PathId, first: u64, writer: &mut PacketWriter<'_>) -> Option<u64> {
        let bytes = self.outstanding.get(first).map_or(0, |c| c.bytes().get() as usize);
        self.bundle_control(path, bytes, writer);
        let mut next = Some(first);
        let hurried = self.hurries_answer(true);
        while let Some(tsn) = next {
            let Some(chunk) = self.outstanding.get_mut(tsn) else { break };
            chunk.draft.immediate |= hurried && chunk.state == ChunkState::Lost(LossCause::Timeout);
            // RFC 9260 section 7.2.4 item 5; also what times out may not be fast-retransmitted afterwards.
            chunk.recovered_before = true;
            if writer.data(&super::outbound::data_repr(tsn, &chunk.draft), &chunk.draft.payload).is_err() {
                break;
            }
            self.resend_chunk(path, tsn);
            //= docs/rfc9260.txt#section-6.10
            //# The transmitter MUST transmit DATA chunks within an SCTP packet in increasing order of TSN.
            next = self.lost.at_or_after(tsn + 1);
        }
        next
    }

    /// RFC 9260 section 6.9: a chunk that was cut for a larger path is not cut again, its packet is left to IP to fragment.
    //= docs/rfc9260.txt#section-6.9
    //# Instead, if the PMTU has been reduced, then IP fragmentation MUST be used.
    pub(crate) fn packet_size_for(&self, path: PathId, tsn: u64) -> usize {
        let bytes = self.outstanding.get(tsn).map_or(0, |chunk| chunk.bytes().get() as usize);
        self.paths[path.index()].packet_bytes.max(COMMON_HEADER_LEN + padded_len(bytes))
    }

    fn resend_chunk(&mut self, path: PathId, tsn: u64) {
        let Some(chunk) = self.outstanding.get_mut(tsn) else { return };
        let (old, bytes) = (chunk.path, chunk.bytes());
        self.lost.remove(tsn);
        self.no_longer_lost(old, bytes);
        if self.paths[old.index()].measuring == Some(tsn) {
            self.paths[old.index()].measuring = None;
        }
        self.restart_t3_for_resend(old, path, tsn);
        self.window_taken(bytes);
        self.charge_peer_window(self.window_cost(bytes));
        self.further_transmission(path, tsn, SendKind::Retransmission);
    }

    /// The books of a chunk that leaves again, or of a further copy of one in flight.
    pub(crate) fn further_transmission(&mut self, path: PathId, tsn: u64, kind: SendKind) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let (old, bytes) = (chunk.path, chunk.bytes());
        if old != path {
            self.paths[old.index()].pseudo.search_again();
        }
        let transmission = self.new_transmission(path, bytes);
        self.outstanding.add_transmission(tsn, transmission);
        self.facts[old.index()].held -= bytes;
        self.facts[path.index()].held += bytes;
        self.count_transmission(path, bytes);
        self.statistics.retransmissions += 1;
        let sent = SentTransmission { path, previous_path: Some(old), tsn, bytes, kind };
        self.tell(&crate::policy::Event::Sent(&sent));
    }

    /// RFC 9260 section 6.3.2 R1 and section 7.2.4 item 4: the timer follows the earliest chunk.
    //= docs/rfc9260.txt#section-6.1
    //# If the timer for that address is already running, the sender MUST restart the timer if the earliest (i.e., lowest
    //# TSN) outstanding DATA chunk sent to that address is being retransmitted.
    //= docs/rfc9260.txt#section-6.1
    //# Otherwise, the data sender MUST NOT restart the timer.
    fn restart_t3_for_resend(&mut self, old: PathId, new: PathId, tsn: u64) {
        let was_earliest = self.outstanding.earliest_on(old, tsn).is_none();
        if was_earliest && !self.facts[old.index()].in_flight.is_zero() {
            self.start_t3(old);
        }
        if self.outstanding.earliest_on(new, tsn).is_none() {
            self.start_t3(new);
        }
    }

    pub(crate) fn new_transmission(&self, path: PathId, bytes: ChunkBytes) -> Transmission {
        Transmission {
            path,
            bytes,
            stamps: Stamps {
                sent_at: self.now,
                delivered_before: self.facts[path.index()].delivered,
                delivered_before_at: self.paths[path.index()].delivered_at,
            },
            in_flight: true,
            previous: None,
        }
    }

    /// The books of a transmission that leaves on `path`.
    pub(crate) fn count_transmission(&mut self, path: PathId, bytes: ChunkBytes) {
        self.flight_begins(path, bytes);
        self.paths[path.index()].transmissions += 1;
        self.facts[path.index()].sent += bytes;
    }

    fn resent_packet(&mut self, path: PathId) {
        self.data_packet_left(path);
        let facts = &mut self.facts[path.index()];
        if facts.exempt_packets > 0 {
            facts.exempt_packets -= 1;
            if facts.in_flight > facts.cwnd {
                self.statistics.exempt_packets += 1;
            }
        }
        let one_only = self.profile.first_fast_retransmission == FirstFastRetransmission::OnePacket;
        if std::mem::take(&mut self.turn.after_loss_event) && one_only {
            self.turn.resend_from = None;
        }
        if self.burst_ends_the_walk(path) {
            self.turn.resend_from = None;
        }
    }

    /// Counts a retransmission packet against its path's burst limit; `true` if that ends the whole opportunity to
    /// retransmit, as it does in ns-2, rather than the path's share of it.
    fn burst_ends_the_walk(&mut self, path: PathId) -> bool {
        if !self.burst_armed {
            return false;
        }
        self.count_burst(path);
        let spent = self.facts[path.index()].resend_burst_left == 0;
        match self.profile.burst_arming {
            BurstArming::Always => false,
            BurstArming::AfterRecoveredLoss { disarms } => {
                self.burst_armed &= !(spent && disarms);
                spent
            }
        }
    }
}
