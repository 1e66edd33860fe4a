//! The head of line while it is in flight: copied to another path (opportunistic retransmission), or moved there (chunk
//! rescheduling), if the policy says so.

use anabranch_wire::DATA_HEADER_LEN;

use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{Decision, HeadOfLineAction, HeadOfLineBlocking, LossCause, SendKind};
use crate::send::ChunkState;
use crate::trace::Decided;
use crate::units::ChunkBytes;

impl Association {
    /// Asks about the head of line, which may go on another path although it is not lost.
    pub(crate) fn transmit_head_of_line(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if self.opportunity.head_of_line_declined {
            return None;
        }
        self.opportunity.head_of_line_declined = true;
        let tsn = self.sender.outstanding().first_unacked()?;
        if self.sender.outstanding().get(tsn).is_none_or(|chunk| chunk.state != ChunkState::InFlight) {
            return None;
        }
        let decision = self.ask_about_head_of_line()?;
        let path = match decision.choice {
            HeadOfLineAction::Copy(path) | HeadOfLineAction::Move(path) => path,
        };
        if !self.may_act_on(path, tsn) {
            self.outputs.statistics.overruled_picks += 1;
            return None;
        }
        self.opportunity.head_of_line_declined = false;
        self.record(Decided::HeadOfLine(decision.choice), tsn, decision.reason, &decision.refused);
        self.outputs.statistics.opportunistic_retransmissions += 1;
        match decision.choice {
            HeadOfLineAction::Copy(path) => {
                self.copy_packet(path, tsn..tsn + 1, SendKind::HeadOfLine, buf);
                self.data_packet_left(path);
                self.count_burst(path);
                Some(path)
            }
            HeadOfLineAction::Move(path) => {
                self.opportunity.moved = Some(tsn);
                self.mark_lost(tsn, LossCause::Rescheduled);
                self.cut_windows();
                self.stop_t3_if_nothing_flies();
                Some(self.resend_packet(path, tsn, buf))
            }
        }
    }

    /// New data may have closed the peer's window: it is asked once more as it comes to an end.
    pub(crate) fn transmit_head_of_line_again(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !std::mem::take(&mut self.opportunity.new_data_left) {
            return None;
        }
        self.opportunity.head_of_line_declined = false;
        self.transmit_head_of_line(buf)
    }

    fn ask_about_head_of_line(&mut self) -> Option<Decision<HeadOfLineAction>> {
        self.sender.refresh_facts();
        let payload = self.sender.queue().next_payload(self.payload_bytes_per_chunk());
        let blocking = HeadOfLineBlocking {
            next_chunk: payload.map(|payload| ChunkBytes::new((DATA_HEADER_LEN + payload) as u64)),
            peer_window_closed: payload.is_some_and(|payload| self.sender.exceeds_window(payload)),
        };
        self.policies.handle_head_of_line(&blocking, &policies::view(self.now, &self.paths, &self.sender))
    }

    fn may_act_on(&self, path: PathId, tsn: u64) -> bool {
        let flies_there =
            self.sender.outstanding().transmissions_of(tsn).any(|t| t.in_flight && t.path == path);
        self.paths.is_in_service(path)
            && self.paths.facts(path).admits_retransmission()
            && self.fits(path, tsn)
            && !flies_there
            && self.opportunity.moved != Some(tsn)
    }
}
