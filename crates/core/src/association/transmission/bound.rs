//! Chunks between the queue and their first transmission: TSN, share of the peer's window, and a place in a path's queue.

use anabranch_wire::PacketWriter;

use crate::association::packets::PacketContext;
use crate::association::transmission::{Outlet, Source, Transmission};
use crate::data_header::DataHeader;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{Event, Pick, SendAsk, SendKind, WaitFor};
use crate::send::Admitted;
use crate::trace::DecisionRecord;

/// Returns the event for which new data waits: the scheduler's, or window space if the scheduler was overruled.
pub(super) fn waits_for(choice: Pick) -> WaitFor {
    match choice {
        Pick::Wait(wait) => wait,
        _ => WaitFor::Window,
    }
}

/// Chunks that are bound to a path whose window has room. They precede chunks without a path.
pub(super) struct BoundChunks;

impl Source for BoundChunks {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if !t.new_data || !out.d.sender.has_bound() {
            return None;
        }
        out.d.promote_if_none_active();
        out.place_again();
        let path =
            out.d.paths.live().find(|&id| out.d.sender.bound().next_of(id).is_some() && out.has_room(id))?;
        t.bound_packet(out, path, buf)
    }
}

impl Transmission {
    fn bound_packet(&mut self, out: &mut Outlet<'_>, path: PathId, buf: &mut PacketBuffer) -> Option<PathId> {
        let first = out.d.sender.bound().next_of(path)?;
        let size = out.packet_size_for(path, first);
        out.write_packet(size, buf, |this, writer| this.fill_with_bound(path, first, writer));
        self.new_packet_left(out, path);
        Some(path)
    }
}

impl Outlet<'_> {
    /// Cuts the next chunk and puts it into a path's queue.
    pub(super) fn bind_next(&mut self, path: PathId) {
        let most = self.payload_bytes_per_chunk();
        let Some(mut draft) = self.d.sender.cut(most) else { return };
        // The packet of a bound chunk is not known yet.
        self.d.sender.end_packet();
        draft.immediate |= self.asks_for_sack(&draft, path);
        let Admitted { tsn, bytes } = self.d.update_sender(|sender| {
            let admitted = sender.admit(draft, path);
            sender.bind(path, admitted.tsn);
            admitted
        });
        self.d.dispatch(&Event::Bound { path, tsn, bytes });
    }

    /// Asks the scheduler about chunks without a path, in TSN order, until it waits.
    fn place_again(&mut self) {
        while let Some(tsn) = self.d.sender.bound().next_unplaced() {
            let Some(bytes) = self.d.sender.outstanding().get(tsn).map(|chunk| chunk.bytes()) else { return };
            let ask = SendAsk { chunk: bytes, window_probe: false, duplicate: false };
            let decision = self.ask_scheduler(&ask);
            let path = match decision.choice {
                Pick::Bind(path) | Pick::Path(path) => Some(path),
                Pick::Copies(paths) => paths.first(),
                Pick::Wait(_) => None,
            };
            let path =
                path.filter(|&id| self.d.paths.is_in_service(id)).or_else(|| self.any_path_with_room());
            let decided =
                path.map_or_else(|| DecisionRecord::Wait(waits_for(decision.choice)), DecisionRecord::Bind);
            self.d.record(decided, tsn, decision.reason, &decision.refused);
            let Some(path) = path else { return };
            self.place(path);
        }
    }

    /// Returns any path with room if no chunk is in flight, because then no event would end a wait.
    fn any_path_with_room(&self) -> Option<PathId> {
        self.d.sender.is_flight_empty().then(|| self.d.paths.live().find(|&id| self.has_room(id))).flatten()
    }

    /// Binds the first chunk without a path to this one.
    fn place(&mut self, path: PathId) {
        if let Some(Admitted { tsn, bytes }) = self.d.update_sender(|sender| sender.place(path)) {
            self.d.dispatch(&Event::Bound { path, tsn, bytes });
        }
    }

    fn fill_with_bound(&mut self, path: PathId, first: u64, writer: &mut PacketWriter<'_>) {
        let bytes = self.d.sender.chunk_len(first);
        self.bundle_control(path, bytes, writer);
        while let Some(tsn) = self.d.sender.bound().next_of(path) {
            let Some(chunk) = self.d.sender.outstanding().get(tsn) else { break };
            let header = DataHeader::new(tsn, &chunk.draft);
            if self.identity.contents.write(writer, &header, &chunk.draft.payload).is_err() {
                break;
            }
            self.first_transmission(tsn, SendKind::New);
        }
    }
}

/// Unbinds bound chunks at the start of a send opportunity, if the scheduler wants to place them again.
pub(super) fn consider_replanning(out: &mut Outlet<'_>) {
    if !out.d.sender.has_bound() {
        return;
    }
    if out.d.ask(|policies, view| policies.replan(view)) {
        for id in out.d.paths.ids() {
            out.d.unbind_path(id);
        }
    }
}
