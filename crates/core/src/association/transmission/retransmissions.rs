//! Retransmission of lost chunks, packet by packet, on the paths that the retransmission policy chooses.

use crate::association::packets::PacketContext;
use crate::association::transmission::{Outlet, PendingCopies, Source, Transmission};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathSet};
use crate::policy::{LossCause, LostChunk, PathFacts, RetransmitChoice, WaitFor};
use crate::profile::{BurstArming, FirstFastRetransmission};
use crate::send::ChunkState;
use crate::trace::DecisionRecord;

/// Retransmissions of lost chunks.
pub(super) struct Retransmissions;

impl Source for Retransmissions {
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        while let Some(tsn) = t.next_to_resend(out) {
            if let Some((path, others)) = t.route(out, tsn) {
                return Some(t.resend_with_copies(out, path, others, tsn, buf));
            }
        }
        None
    }
}

impl Transmission {
    /// Builds a packet of lost chunks. Copies of its first chunk are then sent on the other paths.
    fn resend_with_copies(
        &mut self,
        out: &mut Outlet<'_>,
        path: PathId,
        others: PathSet,
        tsn: u64,
        buf: &mut PacketBuffer,
    ) -> PathId {
        if !others.is_empty() {
            self.copies = Some(PendingCopies { first: tsn, after: tsn + 1, others });
        }
        self.resend_packet(out, path, tsn, buf)
    }

    fn next_to_resend(&mut self, out: &Outlet<'_>) -> Option<u64> {
        let next = self.resend_from.and_then(|from| out.d.sender.lost().at_or_after(from));
        let next = next.filter(|&tsn| !self.ends_resumed_walk(&out.d, tsn));
        if next.is_none() {
            self.resend_from = None;
        }
        next
    }

    /// Asks for the path of a lost chunk, and for paths of copies. If the chunk waits, the walk continues behind it, or ends.
    fn route(&mut self, out: &mut Outlet<'_>, tsn: u64) -> Option<(PathId, PathSet)> {
        out.d.promote_if_none_active();
        let chunk = out.d.sender.outstanding().get(tsn)?;
        let cause = match chunk.state {
            ChunkState::Lost(cause) => cause,
            _ => LossCause::Timeout,
        };
        let lost = LostChunk { tsn, bytes: chunk.bytes(), path: chunk.path, cause };
        let decision = out.d.ask(|policies, view| policies.route(&lost, view));
        let admits = |path: PathId| out.d.paths.get_facts(path).is_some_and(PathFacts::admits_retransmission);
        let path =
            decision.choice.path().map(|path| out.path_for_size(path, tsn)).filter(|path| admits(*path));
        let decided = match (path, decision.choice) {
            (Some(path), _) => DecisionRecord::Retransmit(path),
            (None, RetransmitChoice::Wait(wait)) => DecisionRecord::RetransmitWait(wait),
            (None, _) => DecisionRecord::RetransmitWait(WaitFor::Window),
        };
        if let RetransmitChoice::Wait(WaitFor::Until(at)) = decision.choice {
            self.resume_at(at, out.d.now);
        }
        out.d.record(decided, tsn, decision.reason, &decision.refused);
        if path.is_none() {
            self.hold_resend(&out.d, tsn, decision.choice);
            let holds = matches!(decision.choice, RetransmitChoice::Wait(_)) && out.wait_holds();
            self.resend_from = (!holds).then_some(tsn + 1);
        }
        path.map(|path| (path, decision.choice.copies()))
    }

    /// Fills one packet for `path` with lost chunks from `first` on.
    pub(super) fn resend_packet(
        &mut self,
        out: &mut Outlet<'_>,
        path: PathId,
        first: u64,
        buf: &mut PacketBuffer,
    ) -> PathId {
        let size = out.packet_size_for(path, first);
        self.resend_from =
            out.write_packet(size, buf, |this, writer| this.fill_with_lost(path, first, writer));
        self.resent_packet(out, path);
        path
    }

    fn resent_packet(&mut self, out: &mut Outlet<'_>, path: PathId) {
        out.data_packet_left(path);
        if out.d.paths.use_exemption(path) {
            out.d.outputs.statistics.exempt_packets += 1;
        }
        let one_only = out.d.paths.profile().first_fast_retransmission == FirstFastRetransmission::OnePacket;
        if std::mem::take(&mut self.after_loss_event) && one_only {
            self.resend_from = None;
        }
        if self.burst_ends_the_walk(out, path) {
            self.resend_from = None;
        }
    }

    /// Counts a retransmission packet against its path's burst limit. Returns `true` if that ends the whole walk over lost chunks,
    /// as in ns-2, rather than the path's share of it.
    fn burst_ends_the_walk(&mut self, out: &mut Outlet<'_>, path: PathId) -> bool {
        if !self.burst_armed {
            return false;
        }
        self.count_burst(out, path);
        let spent = out.d.paths.facts(path).resend_burst_left == 0;
        match out.d.paths.profile().burst_arming {
            BurstArming::Always => false,
            BurstArming::AfterRecoveredLoss { disarms } => {
                self.burst_armed &= !(spent && disarms);
                spent
            }
        }
    }
}

impl Outlet<'_> {
    /// Returns `true` if the lost chunks behind one that waits need no question. A traced association records each decision.
    fn wait_holds(&self) -> bool {
        !self.d.outputs.records_decisions() && self.d.policies.wait_holds(&self.d.view())
    }
}
