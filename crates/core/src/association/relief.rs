//! Transmissions that no loss asks for: copies on several paths, relief of the head of line, tail probes.

use anabranch_wire::DATA_HEADER_LEN;

use crate::association::Association;
use crate::path_id::PathId;
use crate::policy::{Decision, LossCause, Reason, Refused, Relief, SendKind, Stall};
use crate::send::ChunkState;
use crate::trace::Decided;
use crate::units::ChunkBytes;

impl Association {
    /// The next packet of copies that the scheduler asked for.
    pub(crate) fn transmit_copy(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        let mut copies = self.opportunity.copies?;
        while let Some(path) = copies.others.first() {
            copies.others.remove(path);
            self.opportunity.copies = Some(copies);
            if self.has_room(path) && self.copy_packet(path, copies.first..copies.after, SendKind::Copy, buf)
            {
                self.new_packet_left(path);
                return Some(path);
            }
        }
        self.opportunity.copies = None;
        None
    }

    /// Sends chunks that are in flight once more; `false` if none of them is.
    fn copy_packet(
        &mut self,
        path: PathId,
        tsns: std::ops::Range<u64>,
        kind: SendKind,
        buf: &mut Vec<u8>,
    ) -> bool {
        let size = self.packet_size_for(path, tsns.start);
        let sets_immediate_bit = self.sets_immediate_bit(kind != SendKind::Copy);
        self.write_packet(size, buf, |this, writer| {
            for tsn in tsns {
                let Some(chunk) =
                    this.sender.outstanding().get(tsn).filter(|c| c.state == ChunkState::InFlight)
                else {
                    continue;
                };
                let mut repr = super::outbound::data_repr(tsn, &chunk.draft);
                repr.flags.immediate |= sets_immediate_bit;
                if writer.data(&repr, &chunk.draft.payload).is_err() {
                    break;
                }
                this.paths[path.index()].measuring.take_if(|measured| *measured == tsn);
                let now = this.now;
                let left = this.update_sender(|sender| sender.copy(tsn, path, now));
                this.further_transmission(path, tsn, left, kind);
            }
            !writer.is_empty()
        })
    }

    /// Asks the retransmission policy about the head of line, which may go on another path although it is not lost.
    pub(crate) fn transmit_relief(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        if self.opportunity.relief_declined {
            return None;
        }
        self.opportunity.relief_declined = true;
        let tsn = self.sender.outstanding().first_unacked()?;
        if self.sender.outstanding().get(tsn).is_none_or(|chunk| chunk.state != ChunkState::InFlight) {
            return None;
        }
        let decision = self.ask_for_relief()?;
        let path = match decision.choice {
            Relief::Copy(path) | Relief::Move(path) => path,
        };
        if !self.may_relieve(path, tsn) {
            self.statistics.overruled_picks += 1;
            return None;
        }
        self.opportunity.relief_declined = false;
        self.record(Decided::Relieve(decision.choice), tsn, decision.reason, &decision.refused);
        self.statistics.reliefs += 1;
        match decision.choice {
            Relief::Copy(path) => {
                self.copy_packet(path, tsn..tsn + 1, SendKind::HeadOfLine, buf);
                self.data_packet_left(path);
                self.count_burst(path);
                Some(path)
            }
            Relief::Move(path) => {
                self.opportunity.moved = Some(tsn);
                self.mark_lost(tsn, LossCause::Rescheduled);
                self.cut_windows();
                self.stop_t3_if_nothing_flies();
                Some(self.resend_packet(path, tsn, buf))
            }
        }
    }

    /// New data may have closed the peer's window: the retransmission policy is asked once more as it comes to an end.
    pub(crate) fn transmit_late_relief(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        if !std::mem::take(&mut self.opportunity.new_data_left) {
            return None;
        }
        self.opportunity.relief_declined = false;
        self.transmit_relief(buf)
    }

    fn ask_for_relief(&mut self) -> Option<Decision<Relief>> {
        self.policy.refresh(&self.sender);
        let payload = self.sender.queue().next_payload(self.payload_bytes_per_chunk());
        let stall = Stall {
            next_chunk: payload.map(|payload| ChunkBytes::new((DATA_HEADER_LEN + payload) as u64)),
            peer_window_closed: payload.is_some_and(|payload| self.sender.exceeds_window(payload)),
        };
        self.policy.relieve(&stall, self.now)
    }

    fn may_relieve(&self, path: PathId, tsn: u64) -> bool {
        let flies_there =
            self.sender.outstanding().transmissions_of(tsn).any(|t| t.in_flight && t.path == path);
        self.may_bind(path)
            && self.policy.path(path).admits_retransmission()
            && !flies_there
            && self.opportunity.moved != Some(tsn)
    }

    pub(crate) fn stop_t3_if_nothing_flies(&mut self) {
        for (path, facts) in self.paths.iter_mut().zip(self.policy.facts()) {
            if facts.in_flight.is_zero() {
                path.timers.t3 = None;
            }
        }
    }

    /// The loss policy's deadline: chunks that time alone has made lost, and a probe for a tail that nothing acknowledges.
    pub(crate) fn run_loss_tasks(&mut self) {
        self.policy.refresh(&self.sender);
        let tasks = self.policy.loss_tasks(self.now);
        if tasks.recheck {
            self.recheck_losses();
        }
        tasks.probes.iter().for_each(|path| self.opportunity.tail_probes.insert(path));
    }

    fn recheck_losses(&mut self) {
        let mut overdue = std::mem::take(&mut self.sack.newly_lost);
        overdue.clear();
        let mut next = self.sender.outstanding().first_unacked();
        while let Some(tsn) = next {
            next = self.sender.outstanding().next_unacked(tsn);
            let in_flight =
                self.sender.outstanding().get(tsn).is_some_and(|c| c.state == ChunkState::InFlight);
            let Some(missing) = in_flight.then(|| self.missing(tsn)).flatten() else { continue };
            if self.policy.overdue(&missing, self.now) {
                overdue.push(tsn);
            }
        }
        for &tsn in &overdue {
            self.mark_lost(tsn, LossCause::FastRetransmit);
        }
        let any = !overdue.is_empty();
        self.sack.newly_lost = overdue;
        if any {
            self.stop_t3_if_nothing_flies();
            self.after_losses();
        }
    }

    /// The latest chunk of a path again (RFC 8985 section 7.3), whatever its window says.
    pub(crate) fn transmit_tail_probe(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        while let Some(path) = self.opportunity.tail_probes.first() {
            self.opportunity.tail_probes.remove(path);
            let Some(tsn) = self.sender.outstanding().highest_on(path).filter(|_| self.may_bind(path)) else {
                continue;
            };
            if self.copy_packet(path, tsn..tsn + 1, SendKind::TailProbe, buf) {
                self.tail_probe_left(path, tsn);
                return Some(path);
            }
        }
        None
    }

    fn tail_probe_left(&mut self, path: PathId, tsn: u64) {
        let reason = Reason::rule("nothing acknowledged the tail");
        self.record(Decided::TailProbe(path), tsn, reason, &Refused::new());
        self.statistics.tail_probes += 1;
        self.data_packet_left(path);
        // RFC 8985 section 7.3: the time-out is counted from the probe.
        self.start_t3(path);
    }
}
