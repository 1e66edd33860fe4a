//! Parts of an association that a packet with DATA passes through, and the steps of its transmission.

use anabranch_wire::PacketWriter;

use crate::association::Identity;
use crate::association::ack_state::AckState;
use crate::association::dispatch::Dispatcher;
use crate::association::packets::PacketContext;
use crate::association::recovery::LossRecovery;
use crate::association::state::State;
use crate::data_header::DataHeader;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::Paths;
use crate::policy::{Event, SendKind, SentTransmission};
use crate::profile::ImmediateSack;
use crate::protection::PacketProtection;
use crate::recv::Receiver;
use crate::send::{ChunkState, Draft, Sender, Transmitted};
use crate::units::ChunkBytes;

/// Parts of an association that a packet with DATA passes through, borrowed for one call.
#[derive(Debug)]
pub(crate) struct Outlet<'a> {
    pub(crate) d: Dispatcher<'a>,
    pub(crate) identity: &'a Identity,
    pub(crate) protection: &'a mut PacketProtection,
    pub(crate) ack: &'a mut AckState,
    pub(crate) receiver: Option<&'a mut Receiver>,
    pub(crate) recovery: &'a mut LossRecovery,
    pub(crate) state: &'a mut State,
}

impl PacketContext for Outlet<'_> {
    fn identity(&self) -> &Identity {
        self.identity
    }

    fn packet_protection(&self) -> &PacketProtection {
        self.protection
    }

    fn packet_protection_mut(&mut self) -> &mut PacketProtection {
        self.protection
    }

    fn sender(&self) -> &Sender {
        self.d.sender
    }

    fn paths(&self) -> &Paths {
        self.d.paths
    }
}

impl Outlet<'_> {
    /// Sends a chunk for the first time.
    pub(crate) fn first_transmission(&mut self, tsn: u64, kind: SendKind) {
        let now = self.d.now;
        let Some(left) = self.d.update_sender(|sender| sender.transmit(tsn, now)) else { return };
        let path = left.previous_path;
        self.d.outputs.statistics.chunks_sent += 1;
        //= docs/rfc9260.txt#section-6.3.1
        //# C4)  When data is in flight and when allowed by rule C5 below, a new RTT measurement MUST be made each round
        //# trip.
        //= docs/rfc9260.txt#section-6.3.1
        //# Furthermore, new RTT measurements SHOULD be made no more than once per round trip for a given destination
        //# transport address.
        //= docs/rfc9260.txt#section-6.3.1
        //= type=implication
        //# There are two reasons for this recommendation: First, it appears that measuring more frequently often does not
        //# in practice yield any significant benefit [ALLMAN99]; second, if measurements are made more often, then the
        //# values of 'RTO.Alpha' and 'RTO.Beta' in rule C3 above SHOULD be adjusted so that SRTT and RTTVAR still adjust
        //# to changes at roughly the same rate (in terms of how many round trips it takes them to reflect new values) as
        //# they would if making only one measurement per round trip and using 'RTO.Alpha' and 'RTO.Beta' as given in rule
        //# C3.
        self.d.paths.begin_measurement(path, tsn);
        self.d.paths.occupy_pacer(path, left.bytes, self.d.now);
        let sent = SentTransmission { path, previous_path: None, tsn, bytes: left.bytes, kind };
        self.d.dispatch(&Event::Sent(&sent));
    }

    pub(crate) fn resend_chunk(&mut self, path: PathId, tsn: u64) {
        let Some(old) = self.d.sender.outstanding().get(tsn).map(|chunk| chunk.path) else { return };
        self.d.paths.end_measurement_of(old, tsn);
        self.restart_t3_for_resend(old, path, tsn);
        let now = self.d.now;
        let transmitted = self.d.update_sender(|sender| sender.retransmit(tsn, path, now));
        self.further_transmission(path, tsn, transmitted, SendKind::Retransmission);
    }

    /// Records a retransmission, or a further copy of a chunk in flight.
    pub(crate) fn further_transmission(
        &mut self,
        path: PathId,
        tsn: u64,
        transmitted: Option<Transmitted>,
        kind: SendKind,
    ) {
        let Some(Transmitted { previous_path, bytes }) = transmitted else { return };
        if previous_path != path {
            self.d.paths.search_pseudo_again(previous_path);
        }
        self.d.outputs.statistics.retransmissions += 1;
        self.d.paths.occupy_pacer(path, bytes, self.d.now);
        let sent = SentTransmission { path, previous_path: Some(previous_path), tsn, bytes, kind };
        self.d.dispatch(&Event::Sent(&sent));
    }

    /// Restarts T3 for the earliest chunk of a path (RFC 9260 section 6.3.2 R1 and section 7.2.4 item 4).
    //= docs/rfc9260.txt#section-6.1
    //# If the timer for that address is already running, the sender MUST restart the timer if the earliest (i.e., lowest
    //# TSN) outstanding DATA chunk sent to that address is being retransmitted.
    //= docs/rfc9260.txt#section-6.1
    //# Otherwise, the data sender MUST NOT restart the timer.
    fn restart_t3_for_resend(&mut self, old: PathId, new: PathId, tsn: u64) {
        let was_earliest = self.d.sender.outstanding().earliest_on(old, tsn).is_none();
        if was_earliest && !self.d.paths.facts(old).in_flight.is_zero() {
            self.d.paths.start_t3(old, self.d.now);
        }
        if self.d.sender.outstanding().earliest_on(new, tsn).is_none() {
            self.d.paths.start_t3(new, self.d.now);
        }
    }

    /// Fills a packet with lost chunks, and returns the lost chunk to continue with.
    pub(super) fn fill_with_lost(
        &mut self,
        path: PathId,
        first: u64,
        writer: &mut PacketWriter<'_>,
    ) -> Option<u64> {
        let bytes = self.d.sender.chunk_len(first);
        self.bundle_control(path, bytes, writer);
        let mut next = Some(first);
        let sets_immediate_bit = self.sets_immediate_bit(true);
        while let Some(tsn) = next {
            let Some(chunk) = self.d.sender.prepare_retransmission(tsn, sets_immediate_bit) else { break };
            let header = DataHeader::new(tsn, &chunk.draft);
            if self.identity.contents.write(writer, &header, &chunk.draft.payload).is_err() {
                break;
            }
            self.resend_chunk(path, tsn);
            //= docs/rfc9260.txt#section-6.10
            //# The transmitter MUST transmit DATA chunks within an SCTP packet in increasing order of TSN.
            next = self.d.sender.lost().at_or_after(tsn + 1);
        }
        next
    }

    /// Sends copies of chunks in flight. Returns `false` if none of them is, or if the packets of the path are too small.
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
                    this.d.sender.outstanding().get(tsn).filter(|c| c.state == ChunkState::InFlight)
                else {
                    continue;
                };
                let mut header = DataHeader::new(tsn, &chunk.draft);
                header.ask_for_sack(sets_immediate_bit);
                if this.identity.contents.write(writer, &header, &chunk.draft.payload).is_err() {
                    break;
                }
                this.d.paths.end_measurement_of(path, tsn);
                let now = this.d.now;
                let left = this.d.update_sender(|sender| sender.copy(tsn, path, now));
                this.d.outputs.statistics.copies_sent += u64::from(kind == SendKind::Copy);
                this.further_transmission(path, tsn, left, kind);
            }
            !writer.is_empty()
        })
    }

    /// Returns the policy's path for a lost chunk, or another active path if only that path has room for the chunk. A link that
    /// drops large packets drops their retransmissions too, while its path stays active because HEARTBEATs are small.
    pub(super) fn path_for_size(&self, path: PathId, tsn: u64) -> PathId {
        if self.fits(path, tsn) {
            return path;
        }
        let facts = |id: PathId| self.d.paths.facts(id);
        let fitting = || self.d.paths.live().filter(|id| facts(*id).is_active() && self.fits(*id, tsn));
        fitting().find(|id| facts(*id).admits_retransmission()).or_else(|| fitting().next()).unwrap_or(path)
    }

    /// Returns `true` if new data may be sent on a path now, apart from buffer shares.
    pub(crate) fn has_room(&self, path: PathId) -> bool {
        let facts = self.d.paths.get_facts(path);
        facts.is_some_and(|facts| facts.burst_left > 0 && facts.paced_until.is_none())
            && self.d.paths.is_in_service(path)
            && self.d.view().admits_new_data(path)
    }

    /// Returns `true` if a new chunk asks for a SACK at once by the I bit: the last one before a shutdown (RFC 7053 section 4.1), or
    /// one after which no later chunk would make the receiver acknowledge.
    pub(crate) fn asks_for_sack(&self, draft: &Draft, path: PathId) -> bool {
        let last = || self.d.sender.queue().is_empty() && draft.ending;
        match self.d.paths.profile().immediate_sack {
            ImmediateSack::BeforeShutdown => matches!(self.state, State::ShutdownPending) && last(),
            ImmediateSack::Tails => last() || self.fills_small_window(path, draft.payload.len()),
        }
    }

    /// Returns `true` if this chunk fills a window that has too few packets for a delayed acknowledgement.
    fn fills_small_window(&self, path: PathId, payload_bytes: usize) -> bool {
        let facts = self.d.paths.facts(path);
        let bytes = self.d.sender.queue().form().chunk_len(payload_bytes);
        let after = self.d.view().outstanding(path) + ChunkBytes::new(bytes as u64);
        facts.cwnd <= facts.largest_chunk.times(2) && after >= facts.cwnd
    }

    /// Returns `true` if a chunk that is retransmitted, or copied ahead of its loss, asks for a SACK at once (the I bit, RFC 7053).
    pub(crate) fn sets_immediate_bit(&self, urgent: bool) -> bool {
        urgent && self.d.paths.profile().immediate_sack == ImmediateSack::Tails
    }

    /// Records a sent packet with DATA: T3 starts unless it runs (RFC 9260 section 6.3.2 R1), and the path is not idle.
    pub(crate) fn data_packet_left(&mut self, path: PathId) {
        self.d.outputs.statistics.data_packets_sent += 1;
        self.d.data_passed();
        self.d.paths.note_sent(path, self.d.now);
        //= docs/rfc9260.txt#section-6.1
        //# Whenever a transmission or retransmission is made to any address, if the T3-rtx timer of that address is not
        //# currently running, the sender MUST start that timer.
        self.d.paths.ensure_t3(path, self.d.now);
        self.d.await_answer(path);
        self.d.paths.restart_idle_clock(path, self.d.now);
    }
}
