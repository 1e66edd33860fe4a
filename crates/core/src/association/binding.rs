//! Chunks between the queue and their first transmission: TSN, share of the peer's window, and a place in a path's queue.

use anabranch_wire::PacketWriter;

use crate::association::outbound::waits_for;
use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{Event, Pick, SendAsk, SendKind, SentTransmission};
use crate::send::Admitted;
use crate::trace::Decided;

impl Association {
    /// A chunk leaves for the first time.
    pub(crate) fn first_transmission(&mut self, tsn: u64, kind: SendKind) {
        let now = self.now;
        let Some(left) = self.update_sender(|sender| sender.transmit(tsn, now)) else { return };
        let path = left.previous_path;
        self.outputs.statistics.chunks_sent += 1;
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
        self.paths.begin_measurement(path, tsn);
        self.paths.occupy_pacer(path, left.bytes, self.now);
        let sent = SentTransmission { path, previous_path: None, tsn, bytes: left.bytes, kind };
        self.dispatch_event(&Event::Sent(&sent));
    }

    /// Cuts the next chunk and puts it into a path's queue.
    pub(crate) fn bind_next(&mut self, path: PathId) {
        let most = self.payload_bytes_per_chunk();
        let Some(draft) = self.sender.cut(most) else { return };
        let draft = self.finish_draft(draft, path);
        let Admitted { tsn, bytes } = self.update_sender(|sender| {
            let admitted = sender.admit(draft, path);
            sender.bind(path, admitted.tsn);
            admitted
        });
        self.dispatch_event(&Event::Bound { path, tsn, bytes });
    }

    /// Chunks that were bound and not sent go back to be placed anew.
    pub(crate) fn unbind_path(&mut self, path: PathId) {
        while let Some(Admitted { tsn, bytes }) = self.update_sender(|sender| sender.unbind(path)) {
            self.dispatch_event(&Event::Unbound { path, tsn, bytes });
        }
    }

    /// A send opportunity begins: the scheduler may want to place anew what it has bound.
    pub(crate) fn consider_replanning(&mut self) {
        if !self.sender.has_bound() {
            return;
        }
        self.sender.refresh_facts();
        if self.policies.replan(&policies::view(self.now, &self.paths, &self.sender)) {
            for id in self.paths.ids() {
                self.unbind_path(id);
            }
        }
    }

    /// Sends the next packet of chunks that were bound to a path whose window has room.
    pub(crate) fn transmit_bound(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.sender.has_bound() {
            return None;
        }
        self.promote_if_none_active();
        self.place_again();
        let path =
            self.paths.live().find(|&id| self.sender.bound().next_of(id).is_some() && self.has_room(id))?;
        self.bound_packet(path, buf)
    }

    /// Asks the scheduler about chunks that lost their path, in TSN order, until it waits.
    fn place_again(&mut self) {
        while let Some(tsn) = self.sender.bound().next_unplaced() {
            let Some(bytes) = self.sender.outstanding().get(tsn).map(|chunk| chunk.bytes()) else { return };
            let ask = SendAsk { chunk: bytes, window_probe: false };
            let decision = self.ask_scheduler(&ask);
            let path = match decision.choice {
                Pick::Bind(path) | Pick::Path(path) => Some(path),
                Pick::Copies(paths) => paths.first(),
                Pick::Wait(_) => None,
            };
            let path = path.filter(|&id| self.paths.is_in_service(id)).or_else(|| self.way_out());
            let decided = path.map_or_else(|| Decided::Wait(waits_for(decision.choice)), Decided::Bind);
            self.record(decided, tsn, decision.reason, &decision.refused);
            let Some(path) = path else { return };
            self.place(path);
        }
    }

    /// With nothing in flight nothing will end a wait: then any path with room will do.
    fn way_out(&self) -> Option<PathId> {
        self.sender.nothing_flies().then(|| self.paths.live().find(|&id| self.has_room(id))).flatten()
    }

    /// Binds the first chunk without a path to this one.
    fn place(&mut self, path: PathId) {
        if let Some(Admitted { tsn, bytes }) = self.update_sender(|sender| sender.place(path)) {
            self.dispatch_event(&Event::Bound { path, tsn, bytes });
        }
    }

    /// Whether new data may leave on a path now, buffer shares apart.
    pub(crate) fn has_room(&self, path: PathId) -> bool {
        let facts = self.paths.get_facts(path);
        facts.is_some_and(|facts| facts.burst_left > 0 && facts.paced_until.is_none())
            && self.paths.is_in_service(path)
            && self.view().admits_new_data(path)
    }

    fn bound_packet(&mut self, path: PathId, buf: &mut PacketBuffer) -> Option<PathId> {
        let first = self.sender.bound().next_of(path)?;
        let size = self.packet_size_for(path, first);
        self.write_packet(size, buf, |this, writer| this.fill_with_bound(path, first, writer));
        self.new_packet_left(path);
        Some(path)
    }

    fn fill_with_bound(&mut self, path: PathId, first: u64, writer: &mut PacketWriter<'_>) {
        let bytes = self.sender.chunk_len(first);
        self.bundle_control(path, bytes, writer);
        while let Some(tsn) = self.sender.bound().next_of(path) {
            let Some(chunk) = self.sender.outstanding().get(tsn) else { break };
            let repr = super::outbound::data_repr(tsn, &chunk.draft);
            if self.identity.contents.write(writer, &repr, &chunk.draft.payload).is_err() {
                break;
            }
            self.first_transmission(tsn, SendKind::New);
        }
    }
}
