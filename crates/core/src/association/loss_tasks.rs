//! What a loss policy wants done at its deadline: chunks that time alone makes lost, and tail probes (RFC 8985 section 7).

use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{LossCause, Reason, Refused, SendKind};
use crate::send::ChunkState;
use crate::trace::Decided;

impl Association {
    /// The loss policy's deadline: chunks that time alone has made lost, and a probe for a tail that nothing acknowledges.
    pub(crate) fn run_loss_tasks(&mut self) {
        self.sender.refresh_facts();
        let tasks = self.policies.loss_tasks(&policies::view(self.now, &self.paths, &self.sender));
        if tasks.recheck {
            self.recheck_losses();
        }
        for path in tasks.probes.iter() {
            self.paths.set_repeated_tail_probe(path, tasks.repeated.contains(path));
            self.opportunity.tail_probes.insert(path);
        }
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
            if self.policies.overdue(&missing, &policies::view(self.now, &self.paths, &self.sender)) {
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

    /// The latest chunk in flight on a path again (RFC 8985 section 7.3), whatever its window says. In recovery later ones may have
    /// been acknowledged already.
    pub(crate) fn transmit_tail_probe(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        while let Some(path) = self.opportunity.tail_probes.first() {
            self.opportunity.tail_probes.remove(path);
            if self.paths.facts(path).paced_until.is_some() {
                self.opportunity.paced.probes.insert(path);
                continue;
            }
            let Some(tsn) = self
                .sender
                .outstanding()
                .highest_in_flight_on(path)
                .filter(|_| self.paths.is_in_service(path))
            else {
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
        self.outputs.statistics.tail_probes += 1;
        self.data_packet_left(path);
        // RFC 8985 section 7.3: the time-out is counted from the probe. Probes that follow may not put it off for ever.
        if !self.paths[path].timers.repeats_tail_probe {
            self.paths.start_t3(path, self.now);
        }
    }
}
