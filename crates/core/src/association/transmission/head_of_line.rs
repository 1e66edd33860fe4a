//! Head-of-line chunk while it is in flight: copied to another path (opportunistic retransmission), or moved there (chunk
//! rescheduling), as the policy decides.

use crate::association::packets::PacketContext;
use crate::association::transmission::{Outlet, Source, Transmission};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{Decision, HeadOfLineAction, HeadOfLineBlocking, LossCause, SendKind};
use crate::send::ChunkState;
use crate::trace::DecisionRecord;
use crate::units::ChunkBytes;

/// Head-of-line chunk on another path before it is lost.
pub(super) struct HeadOfLine;

impl Source for HeadOfLine {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if t.head_of_line_declined {
            return None;
        }
        t.head_of_line_declined = true;
        let tsn = out.d.sender.outstanding().first_unacked()?;
        if out.d.sender.outstanding().get(tsn).is_none_or(|chunk| chunk.state != ChunkState::InFlight) {
            return None;
        }
        let decision = out.ask_about_head_of_line()?;
        let path = match decision.choice {
            HeadOfLineAction::Copy(path) | HeadOfLineAction::Move(path) => path,
        };
        if !t.may_act_on(out, path, tsn) {
            out.d.outputs.statistics.overruled_picks += 1;
            return None;
        }
        t.head_of_line_declined = false;
        out.d.record(DecisionRecord::HeadOfLine(decision.choice), tsn, decision.reason, &decision.refused);
        out.d.outputs.statistics.opportunistic_retransmissions += 1;
        match decision.choice {
            HeadOfLineAction::Copy(path) => {
                out.copy_packet(path, tsn..tsn + 1, SendKind::HeadOfLine, buf);
                out.data_packet_left(path);
                t.count_burst(out, path);
                Some(path)
            }
            HeadOfLineAction::Move(path) => {
                t.moved = Some(tsn);
                out.d.mark_lost(tsn, LossCause::Rescheduled);
                out.recovery.cut_windows(&mut out.d);
                out.d.stop_t3_of_empty_paths();
                Some(t.resend_packet(out, path, tsn, buf))
            }
        }
    }
}

/// Head-of-line chunk again after new data, which may have closed the peer's window.
pub(super) struct RepeatedHeadOfLine;

impl Source for RepeatedHeadOfLine {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if !std::mem::take(&mut t.new_data_left) {
            return None;
        }
        t.head_of_line_declined = false;
        HeadOfLine.next(t, out, buf)
    }
}

impl Transmission {
    fn may_act_on(&self, out: &Outlet<'_>, path: PathId, tsn: u64) -> bool {
        let in_flight_there =
            out.d.sender.outstanding().transmissions_of(tsn).any(|t| t.in_flight && t.path == path);
        out.d.paths.is_in_service(path)
            && out.d.paths.facts(path).admits_retransmission()
            && out.fits(path, tsn)
            && !in_flight_there
            && self.moved != Some(tsn)
    }
}

impl Outlet<'_> {
    fn ask_about_head_of_line(&mut self) -> Option<Decision<HeadOfLineAction>> {
        let payload = self.d.sender.queue().next_payload(self.payload_bytes_per_chunk());
        let form = self.d.sender.queue().form();
        let blocking = HeadOfLineBlocking {
            next_chunk: payload.map(|payload| ChunkBytes::new(form.chunk_len(payload) as u64)),
            peer_window_closed: payload.is_some_and(|payload| self.d.sender.exceeds_window(payload)),
        };
        self.d.ask(|policies, view| policies.handle_head_of_line(&blocking, view))
    }
}
