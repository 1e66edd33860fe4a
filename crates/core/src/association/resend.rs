//! Sending lost chunks again, packet by packet, where the retransmission policy says.

use anabranch_wire::{COMMON_HEADER_LEN, PacketWriter, padded_len};

use crate::association::send_opportunity::PendingCopies;
use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathSet};
use crate::policy::{LossCause, LostChunk, PathFacts, RetransmitChoice, SendKind, SentTransmission, WaitFor};
use crate::profile::{BurstArming, FirstFastRetransmission};
use crate::send::{ChunkState, Left};
use crate::trace::Decided;

impl Association {
    /// Builds the next packet of lost chunks; `None` when this opportunity has no more.
    pub(crate) fn transmit_resend(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        while let Some(tsn) = self.next_to_resend() {
            match self.route(tsn) {
                Some((path, others)) => return Some(self.resend_with_copies(path, others, tsn, buf)),
                None => self.opportunity.resend_from = Some(tsn + 1),
            }
        }
        None
    }

    /// A packet of lost chunks, behind which the first of them is to leave on other paths as well.
    fn resend_with_copies(
        &mut self,
        path: PathId,
        others: PathSet,
        tsn: u64,
        buf: &mut PacketBuffer,
    ) -> PathId {
        if !others.is_empty() {
            self.opportunity.copies = Some(PendingCopies { first: tsn, after: tsn + 1, others });
        }
        self.resend_packet(path, tsn, buf)
    }

    fn next_to_resend(&mut self) -> Option<u64> {
        let next = self.opportunity.resend_from.and_then(|from| self.sender.lost().at_or_after(from));
        let next = next.filter(|&tsn| !self.ends_resumed_walk(tsn));
        if next.is_none() {
            self.opportunity.resend_from = None;
        }
        next
    }

    /// Where a lost chunk goes now, and where copies of it do.
    fn route(&mut self, tsn: u64) -> Option<(PathId, PathSet)> {
        self.promote_if_none_active();
        let chunk = self.sender.outstanding().get(tsn)?;
        let cause = match chunk.state {
            ChunkState::Lost(cause) => cause,
            _ => LossCause::Timeout,
        };
        let lost = LostChunk { tsn, bytes: chunk.bytes(), path: chunk.path, cause };
        let decision = self.policies.route(&lost, &policies::view(self.now, &self.paths, &self.sender));
        let admits = |path: PathId| self.paths.get_facts(path).is_some_and(PathFacts::admits_retransmission);
        let path =
            decision.choice.path().map(|path| self.path_for_size(path, tsn)).filter(|path| admits(*path));
        let decided = match (path, decision.choice) {
            (Some(path), _) => Decided::Retransmit(path),
            (None, RetransmitChoice::Wait(wait)) => Decided::RetransmitWait(wait),
            (None, _) => Decided::RetransmitWait(WaitFor::Window),
        };
        if let RetransmitChoice::Wait(WaitFor::Until(at)) = decision.choice {
            self.opportunity.resume_at(at, self.now);
        }
        self.record(decided, tsn, decision.reason, &decision.refused);
        if path.is_none() {
            self.hold_resend(tsn, decision.choice);
        }
        path.map(|path| (path, decision.choice.copies()))
    }

    /// Fills one packet for `path` with lost chunks from `first` on.
    pub(crate) fn resend_packet(&mut self, path: PathId, first: u64, buf: &mut PacketBuffer) -> PathId {
        let size = self.packet_size_for(path, first);
        self.opportunity.resend_from =
            self.write_packet(size, buf, |this, writer| this.fill_with_lost(path, first, writer));
        self.resent_packet(path);
        path
    }

    /// The lost chunk to go on with.
    fn fill_with_lost(&mut self, path: PathId, first: u64, writer: &mut PacketWriter<'_>) -> Option<u64> {
        let bytes = self.sender.chunk_len(first);
        self.bundle_control(path, bytes, writer);
        let mut next = Some(first);
        let sets_immediate_bit = self.sets_immediate_bit(true);
        while let Some(tsn) = next {
            let Some(chunk) = self.sender.prepare_retransmission(tsn, sets_immediate_bit) else { break };
            let repr = super::outbound::data_repr(tsn, &chunk.draft);
            if self.identity.contents.write(writer, &repr, &chunk.draft.payload).is_err() {
                break;
            }
            self.resend_chunk(path, tsn);
            //= docs/rfc9260.txt#section-6.10
            //# The transmitter MUST transmit DATA chunks within an SCTP packet in increasing order of TSN.
            next = self.sender.lost().at_or_after(tsn + 1);
        }
        next
    }

    /// Returns `true` if a packet of this path has room for a chunk.
    pub(crate) fn fits(&self, path: PathId, tsn: u64) -> bool {
        COMMON_HEADER_LEN + padded_len(self.sender.chunk_len(tsn)) <= self.paths[path].packet_bytes
    }

    /// Returns the path of the policy for a lost chunk, or another active one if only that one has room for the chunk. A link that drops
    /// large packets drops their retransmissions as well, and a path is not inactive for that: its HEARTBEATs are small.
    fn path_for_size(&self, path: PathId, tsn: u64) -> PathId {
        if self.fits(path, tsn) {
            return path;
        }
        let facts = |id: PathId| self.paths.facts(id);
        let fitting = || self.paths.live().filter(|id| facts(*id).is_active() && self.fits(*id, tsn));
        fitting().find(|id| facts(*id).admits_retransmission()).or_else(|| fitting().next()).unwrap_or(path)
    }

    /// RFC 9260 section 6.9: a chunk that was cut for a larger path is not cut again, its packet is left to IP to fragment.
    //= docs/rfc9260.txt#section-6.9
    //# Instead, if the PMTU has been reduced, then IP fragmentation MUST be used.
    pub(crate) fn packet_size_for(&self, path: PathId, tsn: u64) -> usize {
        let bytes = self.sender.chunk_len(tsn);
        self.packet_room(path).max(COMMON_HEADER_LEN + padded_len(bytes))
    }

    pub(crate) fn resend_chunk(&mut self, path: PathId, tsn: u64) {
        let Some(old) = self.sender.outstanding().get(tsn).map(|chunk| chunk.path) else { return };
        self.paths.end_measurement_of(old, tsn);
        self.restart_t3_for_resend(old, path, tsn);
        let now = self.now;
        let left = self.update_sender(|sender| sender.retransmit(tsn, path, now));
        self.further_transmission(path, tsn, left, SendKind::Retransmission);
    }

    /// A chunk has left again, or a further copy of one in flight.
    pub(crate) fn further_transmission(
        &mut self,
        path: PathId,
        tsn: u64,
        left: Option<Left>,
        kind: SendKind,
    ) {
        let Some(Left { previous_path, bytes }) = left else { return };
        if previous_path != path {
            self.paths.search_pseudo_again(previous_path);
        }
        self.outputs.statistics.retransmissions += 1;
        self.paths.occupy_pacer(path, bytes, self.now);
        let sent = SentTransmission { path, previous_path: Some(previous_path), tsn, bytes, kind };
        self.dispatch_event(&crate::policy::Event::Sent(&sent));
    }

    /// RFC 9260 section 6.3.2 R1 and section 7.2.4 item 4: the timer follows the earliest chunk.
    //= docs/rfc9260.txt#section-6.1
    //# If the timer for that address is already running, the sender MUST restart the timer if the earliest (i.e., lowest
    //# TSN) outstanding DATA chunk sent to that address is being retransmitted.
    //= docs/rfc9260.txt#section-6.1
    //# Otherwise, the data sender MUST NOT restart the timer.
    fn restart_t3_for_resend(&mut self, old: PathId, new: PathId, tsn: u64) {
        let was_earliest = self.sender.outstanding().earliest_on(old, tsn).is_none();
        if was_earliest && !self.paths.facts(old).in_flight.is_zero() {
            self.paths.start_t3(old, self.now);
        }
        if self.sender.outstanding().earliest_on(new, tsn).is_none() {
            self.paths.start_t3(new, self.now);
        }
    }

    fn resent_packet(&mut self, path: PathId) {
        self.data_packet_left(path);
        if self.paths.use_exemption(path) {
            self.outputs.statistics.exempt_packets += 1;
        }
        let one_only = self.profile.first_fast_retransmission == FirstFastRetransmission::OnePacket;
        if std::mem::take(&mut self.opportunity.after_loss_event) && one_only {
            self.opportunity.resend_from = None;
        }
        if self.burst_ends_the_walk(path) {
            self.opportunity.resend_from = None;
        }
    }

    /// Counts a retransmission packet against its path's burst limit; `true` if that ends the whole opportunity to
    /// retransmit, as it does in ns-2, rather than the path's share of it.
    fn burst_ends_the_walk(&mut self, path: PathId) -> bool {
        if !self.opportunity.burst_armed {
            return false;
        }
        self.count_burst(path);
        let spent = self.paths.facts(path).resend_burst_left == 0;
        match self.profile.burst_arming {
            BurstArming::Always => false,
            BurstArming::AfterRecoveredLoss { disarms } => {
                self.opportunity.burst_armed &= !(spent && disarms);
                spent
            }
        }
    }
}
