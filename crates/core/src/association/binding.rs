//! Chunks between the queue and their first transmission: TSN, share of the peer's window, and a place in a path's queue.

use anabranch_wire::PacketWriter;

use crate::association::Association;
use crate::path::PathId;
use crate::policy::{Event, Pick, SendAsk, SendKind, SentTransmission};
use crate::send::{ChunkState, Draft};
use crate::trace::Decided;
use crate::units::ChunkBytes;

impl Association {
    /// Gives the next chunk its TSN and its share of the peer's window.
    pub(crate) fn admit(&mut self, draft: Draft, path: PathId) -> (u64, ChunkBytes) {
        let bytes = ChunkBytes::new(16 + draft.payload.len() as u64);
        //= docs/rfc9260.txt#section-3.3.1
        //# The TSNs of DATA chunks sent SHOULD be strictly sequential.
        //= docs/rfc9260.txt#section-6.9
        //# 2)  The transmitter MUST then assign, in sequence, a separate TSN to each of the DATA chunks in the series.
        let tsn = self.outstanding.push(draft, path);
        let cost = self.window_cost(bytes);
        self.window_bound += cost;
        self.charge_peer_window(cost);
        let facts = &mut self.facts[path.index()];
        facts.bound += bytes;
        facts.held += bytes;
        (tsn, bytes)
    }

    /// The books of a chunk that leaves for the first time.
    pub(crate) fn first_transmission(&mut self, tsn: u64, kind: SendKind) {
        let Some(chunk) = self.outstanding.get(tsn) else { return };
        let (path, bytes) = (chunk.path, chunk.bytes());
        let cost = self.window_cost(bytes);
        self.window_bound -= cost;
        self.facts[path.index()].bound -= bytes;
        let transmission = self.new_transmission(path, bytes);
        self.outstanding.add_transmission(tsn, transmission);
        self.window_taken(bytes);
        self.count_transmission(path, bytes);
        self.statistics.chunks_sent += 1;
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
        self.paths[path.index()].measuring.get_or_insert(tsn);
        self.tell(&Event::Sent(&SentTransmission { path, previous_path: None, tsn, bytes, kind }));
    }

    /// Cuts the next chunk and puts it into a path's queue.
    pub(crate) fn bind_next(&mut self, path: PathId) {
        let Some(draft) = self.queue.cut(self.payload_bytes_per_chunk()) else { return };
        let draft = self.finish_draft(draft, path);
        let (tsn, bytes) = self.admit(draft, path);
        self.bound.bind(path, tsn);
        self.tell(&Event::Bound { path, tsn, bytes });
    }

    /// Chunks that were bound and not sent go back to be placed anew.
    pub(crate) fn unbind_path(&mut self, path: PathId) {
        while let Some(tsn) = self.bound.unbind_last(path) {
            let Some(chunk) = self.outstanding.get_mut(tsn) else { continue };
            chunk.state = ChunkState::Bound { placed: false };
            let bytes = chunk.bytes();
            let facts = &mut self.facts[path.index()];
            facts.bound -= bytes;
            facts.held -= bytes;
            self.tell(&Event::Unbound { path, tsn, bytes });
        }
    }

    /// A send opportunity begins: the scheduler may want to place anew what it has bound.
    pub(crate) fn consider_replanning(&mut self) {
        if self.window_bound.is_zero() {
            return;
        }
        self.refresh_shared();
        let view = crate::policy::View {
            now: self.now,
            profile: &self.profile,
            paths: &self.facts,
            association: &self.shared,
        };
        if self.policies.scheduler.replan(&view) {
            for index in 0..self.paths.len() {
                self.unbind_path(PathId::new(index));
            }
        }
    }

    /// Sends the next packet of chunks that were bound to a path whose window has room.
    pub(crate) fn transmit_bound(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        if self.window_bound.is_zero() {
            return None;
        }
        self.promote_if_none_active();
        self.place_again();
        let path = self.live_paths().find(|&id| self.bound.next_of(id).is_some() && self.has_room(id))?;
        self.bound_packet(path, buf)
    }

    /// Asks the scheduler about chunks that lost their path, in TSN order, until it waits.
    fn place_again(&mut self) {
        while let Some(tsn) = self.bound.next_unplaced() {
            let Some(bytes) = self.outstanding.get(tsn).map(|chunk| chunk.bytes()) else { return };
            let ask = SendAsk { chunk: bytes, window_probe: false };
            let decision = self.ask_scheduler(&ask);
            let path = match decision.choice {
                Pick::Bind(path) | Pick::Path(path) => Some(path),
                Pick::Copies(paths) => paths.first(),
                Pick::Wait(_) => None,
            };
            let path = path.filter(|&id| self.may_bind(id)).or_else(|| self.way_out());
            let decided = path.map_or(Decided::Schedule(None), Decided::Bind);
            self.record(decided, tsn, decision.reason, &decision.refused);
            let Some(path) = path else { return };
            self.place(tsn, path, bytes);
        }
    }

    /// With nothing in flight nothing will end a wait: then any path with room will do.
    fn way_out(&self) -> Option<PathId> {
        let nothing_flies = self.window_in_flight.is_zero() && self.lost.is_empty();
        nothing_flies.then(|| self.live_paths().find(|&id| self.has_room(id))).flatten()
    }

    fn place(&mut self, tsn: u64, path: PathId, bytes: ChunkBytes) {
        self.bound.pop_unplaced();
        self.bound.bind(path, tsn);
        if let Some(chunk) = self.outstanding.get_mut(tsn) {
            chunk.state = ChunkState::Bound { placed: true };
            chunk.path = path;
        }
        let facts = &mut self.facts[path.index()];
        facts.bound += bytes;
        facts.held += bytes;
        self.tell(&Event::Bound { path, tsn, bytes });
    }

    /// Whether a path may take a chunk into its queue; its window need not have room.
    //= docs/rfc9260.txt#section-5.4
    //# An endpoint MUST NOT send any chunks to an UNCONFIRMED address, with the following exceptions:
    pub(crate) fn may_bind(&self, path: PathId) -> bool {
        self.facts.get(path.index()).is_some_and(|facts| facts.is_active())
            && !self.paths[path.index()].removed
    }

    /// Whether new data may leave on a path now, buffer shares apart.
    pub(crate) fn has_room(&self, path: PathId) -> bool {
        self.may_bind(path) && self.facts[path.index()].burst_left > 0 && self.view().admits_new_data(path)
    }

    fn bound_packet(&mut self, path: PathId, buf: &mut Vec<u8>) -> Option<PathId> {
        let first = self.bound.next_of(path)?;
        let size = self.packet_size_for(path, first);
        self.write_packet(size, buf, |this, writer| this.fill_with_bound(path, first, writer));
        self.new_packet_left(path);
        Some(path)
    }

    fn fill_with_bound(&mut self, path: PathId, first: u64, writer: &mut PacketWriter<'_>) {
        let bytes = self.outstanding.get(first).map_or(0, |chunk| chunk.bytes().get() as usize);
        self.bundle_control(path, bytes, writer);
        while let Some(tsn) = self.bound.next_of(path) {
            let Some(chunk) = self.outstanding.get(tsn) else { break };
            let repr = super::outbound::data_repr(tsn, &chunk.draft);
            if writer.data(&repr, &chunk.draft.payload).is_err() {
                break;
            }
            self.bound.pop(path);
            self.first_transmission(tsn, SendKind::New);
        }
    }
}
