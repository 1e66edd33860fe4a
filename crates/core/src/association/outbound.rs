//! Building packets: what goes first, and new data where the scheduler says.

use anabranch_wire::{DATA_HEADER_LEN, DataFlags, DataRepr, Header, PacketWriter, Ssn, StreamId, Tsn};

use crate::association::send_opportunity::PendingCopies;
use crate::association::{Association, MAX_OUTSTANDING_CHUNKS, State, WindowProbe};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathSet};
use crate::policy::{Decision, Event, OpportunityCause, Pick, Reason, Refused, SendAsk, SendKind, WaitFor};
use crate::profile::{BurstArming, ImmediateSack};
use crate::send::{Admitted, Draft};
use crate::trace::Decided;
use crate::units::ChunkBytes;

/// Where the scheduler wants the next chunk, held to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Now(PathId),
    /// On the first path now, and copies on the others.
    Copies(PathId, PathSet),
    Queue(PathId),
}

const BLOCKED: Reason = Reason::rule("the peer's window is closed");

/// What new data waits for: what the scheduler says, or room for it if the scheduler was overruled.
pub(super) fn waits_for(choice: Pick) -> WaitFor {
    match choice {
        Pick::Wait(wait) => wait,
        _ => WaitFor::Window,
    }
}

/// What a chunk looks like on the wire.
pub(super) fn data_repr(tsn: u64, draft: &Draft) -> DataRepr {
    DataRepr {
        flags: DataFlags {
            ending: draft.ending,
            beginning: draft.beginning,
            unordered: draft.unordered,
            immediate: draft.immediate,
        },
        tsn: Tsn::from_unwrapped(tsn),
        stream: StreamId::new(draft.stream),
        ssn: Ssn::new(draft.ssn),
        ppid: draft.ppid,
    }
}

impl Association {
    /// Writes the next packet into `buf` and tells its path; `None` when there is nothing to send now. A packet that is more
    /// than its destination may get yet is lost before it leaves.
    pub(crate) fn poll_transmit(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        self.abandon_due();
        loop {
            let path = self.next_packet(buf)?;
            if let Some(failure) = self.protection.failure() {
                return self.end_without_keys(failure);
            }
            // Nothing is left of a packet that could not be sealed.
            if !buf.is_empty() && self.may_send(path, buf.len()) {
                return Some(path);
            }
        }
    }

    fn next_packet(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        let awaits_keys = self.protection.awaits_keys();
        if awaits_keys {
            self.echo_again();
        }
        if let Some(path) = self.transmit_control(buf) {
            return Some(path);
        }
        if awaits_keys && let Some(path) = self.transmit_to_unproved(buf) {
            return Some(path);
        }
        if !self.sack_can_ride()
            && let Some(path) = self.transmit_sack(buf)
        {
            return Some(path);
        }
        if !self.forward_tsn_can_ride()
            && let Some(path) = self.transmit_forward_tsn(buf)
        {
            return Some(path);
        }
        if let Some(path) = self.transmit_data(buf) {
            return Some(path);
        }
        if let Some(path) = self.transmit_forward_tsn(buf) {
            return Some(path);
        }
        self.transmit_sack(buf)
    }

    fn transmit_data(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        while self.opportunity.is_open() && self.may_carry_data() {
            let path = self.transmit_in_opportunity(buf);
            if path.is_some() {
                return path;
            }
            self.end_opportunity();
            self.resume_at_once();
        }
        None
    }

    fn transmit_in_opportunity(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !std::mem::replace(&mut self.opportunity.announced, true) {
            let cause = self.opportunity.cause;
            for id in self.paths.ids() {
                self.paths.refresh_burst(id, self.opportunity.burst_armed);
            }
            self.dispatch_event(&Event::SendOpportunity(cause));
            self.consider_replanning();
        }
        self.transmit_copy(buf)
            .or_else(|| self.transmit_resend(buf))
            .or_else(|| self.transmit_tail_probe(buf))
            .or_else(|| self.transmit_head_of_line(buf))
            .or_else(|| self.transmit_new(buf))
            .or_else(|| self.transmit_head_of_line_again(buf))
    }

    /// Whether DATA may leave in this state (RFC 9260 section 6).
    //= docs/rfc9260.txt#section-3.3.11
    //# This chunk MUST precede any DATA chunk sent within the association but MAY be bundled with one or more DATA chunks
    //# in the same packet.
    //= docs/rfc9260.txt#section-5
    //# Before the first data transmission can take place from one SCTP endpoint ("A") to another SCTP endpoint ("Z"), the
    //# two endpoints MUST complete an initialization process in order to set up an SCTP association between them.
    //= docs/rfc9260.txt#section-6
    //# Data transmission MUST only happen in the ESTABLISHED, SHUTDOWN- PENDING, and SHUTDOWN-RECEIVED states.
    fn may_carry_data(&self) -> bool {
        self.opportunity.data_allowed && self.state.takes_sacks()
    }

    /// Opens a send opportunity.
    pub(crate) fn open_opportunity(&mut self, cause: OpportunityCause, new_data: bool) {
        self.opportunity.open(cause, new_data);
    }

    fn end_opportunity(&mut self) {
        if self.burst_held_data_back()
            && matches!(self.profile.burst_arming, BurstArming::AfterRecoveredLoss { disarms: true })
        {
            self.opportunity.burst_armed = false;
        }
        self.hold_paced();
        self.note_limiters();
        self.opportunity.end();
        let paced = &self.opportunity.paced;
        self.paths.end_opportunity(|id| paced.resends[id.index()].is_some());
        self.note_blocking();
    }

    /// Whether new data could leave now were it not for the burst limit.
    fn burst_held_data_back(&self) -> bool {
        self.opportunity.new_data
            && self.next_ask().is_some()
            && self.paths.live().any(|id| {
                let facts = self.paths.facts(id);
                facts.is_active() && facts.burst_left == 0 && self.view().admits_new_data(id)
            })
    }

    /// Keeps the time in which only the peer's window held data back.
    fn note_blocking(&mut self) {
        let blocked = self.is_blocked_by_peer_window();
        match (self.peer_window_block.since, blocked) {
            (None, true) => {
                self.peer_window_block.since = Some(self.now);
                let hole = self.sender.facts().head_of_line.map(|h| h.path);
                self.peer_window_block.by = hole;
                self.record(Decided::Blocked(hole), 0, BLOCKED, &Refused::new());
                self.dispatch_event(&Event::Blocked { hole });
            }
            (Some(_), true) => {
                let hole = self.sender.facts().head_of_line.map(|h| h.path);
                if std::mem::replace(&mut self.peer_window_block.by, hole) != hole {
                    self.record(Decided::Blocked(hole), 0, BLOCKED, &Refused::new());
                }
            }
            (Some(since), false) => {
                self.outputs.statistics.blocked_by_peer_window_ns += self.now.since(since).as_nanos();
                self.peer_window_block.since = None;
                let reason = Reason::rule("the peer's window is open again");
                self.record(Decided::Unblocked, 0, reason, &Refused::new());
            }
            (None, false) => {}
        }
    }

    fn is_blocked_by_peer_window(&self) -> bool {
        let Some(payload) = self.sender.queue().next_payload(self.payload_bytes_per_chunk()) else {
            return false;
        };
        self.sender.exceeds_window(payload)
            && self.paths.live().any(|id| self.paths.facts(id).is_active() && self.view().admits_new_data(id))
    }

    /// Builds the next packet of new data: what is bound already goes before what still waits for a place.
    fn transmit_new(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.opportunity.new_data {
            return None;
        }
        if let Some(path) = self.transmit_bound(buf) {
            return Some(path);
        }
        while let Some(ask) = self.next_ask() {
            self.promote_if_none_active();
            match self.pick(&ask)? {
                Place::Now(path) => return self.new_packet(path, ask, buf),
                Place::Copies(path, others) => {
                    let first = self.sender.outstanding().next_tsn();
                    let sent = self.new_packet(path, ask, buf);
                    self.opportunity.copies =
                        Some(PendingCopies { first, after: self.sender.outstanding().next_tsn(), others });
                    return sent;
                }
                Place::Queue(path) => {
                    self.bind_next(path);
                    if self.has_room(path) {
                        return self.transmit_bound(buf);
                    }
                }
            }
        }
        None
    }

    /// What the scheduler would be asked now; `None` if no new data may leave.
    //= docs/rfc9260.txt#section-6.1
    //# The following general rules MUST be applied by the data sender for transmission and/or retransmission of outbound
    //# DATA chunks:
    fn next_ask(&self) -> Option<SendAsk> {
        let payload = self.sender.queue().next_payload(self.payload_bytes_per_chunk())?;
        //= docs/rfc9260.txt#section-6.1
        //# C)  When the time comes for the sender to transmit, before sending new DATA chunks, the sender MUST first
        //# transmit any DATA chunks that are marked for retransmission (limited by the current cwnd).
        if self.sender.outstanding().len() >= MAX_OUTSTANDING_CHUNKS
            || (self.profile.retransmissions_block_new_data && !self.sender.lost().is_empty())
        {
            return None;
        }
        //= docs/rfc9260.txt#section-6.1
        //# A)  At any given time, the data sender MUST NOT transmit new data to any destination transport address if its
        //# peer's rwnd indicates that the peer has no buffer space (i.e., rwnd is smaller than the size of the next DATA
        //# chunk; see Section 6.2.1), except for zero window probes.
        let window_probe = self.sender.exceeds_window(payload);
        // RFC 9260 section 6.1 A: beyond the peer's window one chunk may probe, and only when nothing is outstanding.
        //= docs/rfc9260.txt#section-6.1
        //# A zero window probe SHOULD only be sent when all outstanding DATA chunks have been cumulatively acknowledged
        //# and no DATA chunks are in flight.
        if window_probe && !self.sender.is_idle() {
            return None;
        }
        Some(SendAsk { chunk: ChunkBytes::new((DATA_HEADER_LEN + payload) as u64), window_probe })
    }

    fn pick(&mut self, ask: &SendAsk) -> Option<Place> {
        let decision = self.ask_scheduler(ask);
        let place = self.guard_pick(ask, &decision);
        let decided = match place {
            None => Decided::Wait(waits_for(decision.choice)),
            Some(Place::Now(path)) => Decided::Schedule(path),
            Some(Place::Queue(path)) => Decided::Bind(path),
            Some(Place::Copies(path, mut paths)) => {
                paths.insert(path);
                Decided::Copies(paths)
            }
        };
        self.record(decided, self.sender.outstanding().next_tsn(), decision.reason, &decision.refused);
        place
    }

    pub(crate) fn ask_scheduler(&mut self, ask: &SendAsk) -> Decision<Pick> {
        self.sender.refresh_facts();
        self.policies.pick(ask, self.now, &mut self.paths, &self.sender)
    }

    /// Holds a scheduler to the rules: no full, failed or burst-limited path, and no waiting for nothing.
    fn guard_pick(&mut self, ask: &SendAsk, decision: &Decision<Pick>) -> Option<Place> {
        let place = match decision.choice {
            Pick::Path(path) => self.is_eligible(path).then_some(Place::Now(path)),
            Pick::Copies(paths) => {
                let mut usable: PathSet = paths.iter().filter(|&path| self.is_eligible(path)).collect();
                usable.first().map(|path| {
                    usable.remove(path);
                    Place::Copies(path, usable)
                })
            }
            // A probe of a closed window has nothing to wait for.
            Pick::Bind(path) if ask.window_probe => self.is_eligible(path).then_some(Place::Now(path)),
            Pick::Bind(path) => {
                let admitted = self.paths.is_in_service(path) && self.paths.facts(path).within_share;
                admitted.then_some(Place::Queue(path))
            }
            Pick::Wait(WaitFor::Until(at)) if self.opportunity.resume_at(at, self.now) => return None,
            Pick::Wait(_) if !self.sender.is_idle() || self.pacing_ends_the_wait() => return None,
            Pick::Wait(_) => None,
        };
        if place.is_some() {
            return place;
        }
        self.outputs.statistics.overruled_picks += 1;
        // Nothing in flight means that nothing will ever end the wait.
        let way_out = self.sender.is_idle().then(|| self.paths.live().find(|&id| self.is_eligible(id)));
        way_out.flatten().map(Place::Now)
    }

    //= docs/rfc9260.txt#section-6.1
    //# A zero window probe MUST only be sent when the cwnd allows (see rule B below).
    //= docs/rfc9260.txt#section-6.1
    //# When the window is full (i.e., transmission is disallowed by rule A and/or rule B), the sender MAY still accept
    //# send requests from its upper layer but MUST transmit no more DATA chunks until some or all of the outstanding DATA
    //# chunks are acknowledged and transmission is allowed by rule A and rule B again.
    fn is_eligible(&self, path: PathId) -> bool {
        self.has_room(path) && self.paths.facts(path).within_share
    }

    /// Fills one packet for `path` with new chunks.
    fn new_packet(&mut self, path: PathId, ask: SendAsk, buf: &mut PacketBuffer) -> Option<PathId> {
        let size = self.packet_room(path);
        let chunks = self.write_packet(size, buf, |this, writer| this.fill_with_new(path, ask, writer));
        if chunks == 0 {
            return None;
        }
        self.new_packet_left(path);
        Some(path)
    }

    /// Writes a packet of at most `size` bytes into `buf`.
    pub(crate) fn write_packet<T>(
        &mut self,
        size: usize,
        buf: &mut PacketBuffer,
        fill: impl FnOnce(&mut Self, &mut PacketWriter<'_>) -> T,
    ) -> T {
        //= docs/rfc9260.txt#section-6.10
        //# The total size of the resultant SCTP packet MUST be less that or equal to the current PMTU.
        let header = self.header();
        self.build_packet(size, header, buf, |_, _| (), fill).expect("a path's packets hold 512 B and more")
    }

    /// How many chunks there were.
    fn fill_with_new(&mut self, path: PathId, ask: SendAsk, writer: &mut PacketWriter<'_>) -> u32 {
        let most = self.payload_bytes_per_chunk();
        let first = DATA_HEADER_LEN + self.sender.queue().next_payload(most).unwrap_or(0);
        //= docs/rfc9260.txt#section-6
        //# Control chunks MUST come before DATA chunks in the packet.
        //= docs/rfc9260.txt#section-6.10
        //# When bundling control chunks with DATA chunks, an endpoint MUST place control chunks first in the outbound
        //# SCTP packet.
        self.bundle_control(path, first, writer);
        let mut chunks = 0;
        while self.next_fits(most, writer.remaining(), ask, chunks) {
            let Some(draft) = self.sender.cut(most) else { break };
            let mut draft = self.finish_draft(draft, path);
            draft.immediate |= self.sets_immediate_bit(ask.window_probe);
            let repr = data_repr(self.sender.outstanding().next_tsn(), &draft);
            if self.identity.contents.write(writer, &repr, &draft.payload).is_err() {
                debug_assert!(false, "next_fits promised room");
                break;
            }
            let kind = if ask.window_probe { SendKind::WindowProbe } else { SendKind::New };
            let Admitted { tsn, .. } = self.update_sender(|sender| sender.admit(draft, path));
            self.first_transmission(tsn, kind);
            if kind == SendKind::WindowProbe {
                //= docs/rfc9260.txt#section-6.1
                //# Senders MUST support zero window probing.
                self.peer_window_block.probe = Some(WindowProbe { tsn, answered_at: None });
                self.outputs.statistics.window_probes += 1;
            }
            chunks += 1;
        }
        chunks
    }

    //= docs/rfc9260.txt#section-6.1
    //# The sender MUST also have an algorithm for sending new DATA chunks to avoid silly window syndrome (SWS) as
    //# described in [RFC1122].
    fn next_fits(&self, most: usize, remaining: usize, ask: SendAsk, chunks: u32) -> bool {
        let Some(payload) = self.sender.queue().next_payload(most) else { return false };
        let window = if ask.window_probe { chunks == 0 } else { !self.sender.exceeds_window(payload) };
        window
            && DATA_HEADER_LEN + payload <= remaining
            && self.sender.outstanding().len() < MAX_OUTSTANDING_CHUNKS
    }

    /// The last chunk asks for a SACK at once: before a shutdown (RFC 7053 section 4.1), or whenever nothing follows it that
    /// would make the receiver acknowledge.
    pub(crate) fn finish_draft(&self, mut draft: Draft, path: PathId) -> Draft {
        let last = self.sender.queue().is_empty() && draft.ending;
        draft.immediate |= match self.profile.immediate_sack {
            ImmediateSack::BeforeShutdown => last && matches!(self.state, State::ShutdownPending),
            ImmediateSack::Tails => last || self.fills_small_window(path, draft.payload.len()),
        };
        draft
    }

    /// Whether a window that holds too few packets for a delayed acknowledgement is full with this chunk.
    fn fills_small_window(&self, path: PathId, payload_bytes: usize) -> bool {
        let facts = self.paths.facts(path);
        let after = self.view().outstanding(path) + ChunkBytes::new((DATA_HEADER_LEN + payload_bytes) as u64);
        facts.cwnd <= facts.largest_chunk.times(2) && after >= facts.cwnd
    }

    /// Whether a chunk that is retransmitted, or copied ahead of its loss, asks for a SACK at once (the I bit, RFC 7053).
    pub(crate) fn sets_immediate_bit(&self, urgent: bool) -> bool {
        urgent && self.profile.immediate_sack == ImmediateSack::Tails
    }

    pub(crate) fn new_packet_left(&mut self, path: PathId) {
        self.data_packet_left(path);
        self.restart_heartbeat_clock(path);
        self.sender.note_new_data_path(path);
        self.opportunity.new_data_left = true;
        self.count_burst(path);
    }

    /// A packet left that the burst limit counts.
    pub(crate) fn count_burst(&mut self, path: PathId) {
        if self.opportunity.burst_armed {
            self.paths.count_burst(path);
        }
    }

    /// A packet with DATA left: T3 runs if it did not (RFC 9260 section 6.3.2 R1), and the path is not idle.
    pub(crate) fn data_packet_left(&mut self, path: PathId) {
        self.outputs.statistics.data_packets_sent += 1;
        self.data_passed();
        self.paths.note_sent(path, self.now);
        //= docs/rfc9260.txt#section-6.1
        //# Whenever a transmission or retransmission is made to any address, if the T3-rtx timer of that address is not
        //# currently running, the sender MUST start that timer.
        self.paths.ensure_t3(path, self.now);
        self.await_answer(path);
        self.paths.restart_idle_clock(path, self.now);
    }

    //= docs/rfc9260.txt#section-3.1
    //# On transmit, the value of the Verification Tag MUST be set to the value of the Initiate Tag received from the peer
    //# endpoint during the association initialization, with the following exceptions:
    //= docs/rfc9260.txt#section-8.5
    //# When sending an SCTP packet, the endpoint MUST fill in the Verification Tag field of the outbound packet with the
    //# tag value in the Initiate Tag parameter of the INIT or INIT ACK chunk received from its peer.
    pub(crate) fn header(&self) -> Header {
        Header {
            source_port: self.identity.local_port,
            destination_port: self.identity.peer_port,
            verification_tag: self.identity.peer_tag,
        }
    }
}
