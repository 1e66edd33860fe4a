//! Several copies of a chunk in flight at once: which one an acknowledgement credits, and what becomes of the others.

use crate::association::Association;
use crate::path::{Orphan, PathId};
use crate::policy::{AckedTransmission, Event, ProofOfLife};
use crate::send::Transmission;
use crate::time::Time;

impl Association {
    /// The copy that an acknowledgement credits: of those in flight the one on the path that the SACK came in on, because
    /// the receiver answers on the path of the latest DATA (RFC 9260 section 6.4); else the latest.
    pub(crate) fn credited_copy(&self, tsn: u64) -> Option<Transmission> {
        let in_flight = || self.outstanding.transmissions_of(tsn).filter(|copy| copy.in_flight);
        let on_source = in_flight().find(|copy| Some(copy.path) == self.scratch.source);
        on_source.or_else(|| in_flight().next()).or_else(|| self.outstanding.latest_of(tsn)).copied()
    }

    /// Ends the flights of a chunk's copies. The credited one's bytes stay in flight until growth has been decided, and
    /// copies on other paths go on as orphans.
    pub(crate) fn end_other_flights(&mut self, tsn: u64, credited: &Transmission) {
        let (paths, facts) = (&mut self.paths, &mut self.facts);
        let mut credited_seen = false;
        self.outstanding.end_flights(tsn, |copy| {
            let is_credited = copy.path == credited.path && copy.stamps == credited.stamps;
            if is_credited && !std::mem::replace(&mut credited_seen, true) {
                return;
            }
            if copy.path == credited.path {
                facts[copy.path.index()].in_flight -= copy.bytes;
                return;
            }
            let orphan = Orphan { tsn, bytes: copy.bytes, stamps: copy.stamps };
            paths[copy.path.index()].orphans.push_back(orphan);
        });
    }

    /// Ends the flights of a chunk on one path.
    pub(crate) fn end_copies_on(&mut self, tsn: u64, path: PathId) {
        if self.outstanding.get(tsn).is_none_or(|chunk| chunk.transmissions < 2) {
            return;
        }
        let facts = &mut self.facts[path.index()];
        self.outstanding.end_flights_on(tsn, path, |copy| facts.in_flight -= copy.bytes);
    }

    /// Something sent at `sent_at` has arrived on this path: what left before it and was not reported is gone.
    pub(crate) fn end_overtaken_orphans(&mut self, path: PathId, sent_at: Time) {
        while let Some(orphan) =
            self.paths[path.index()].orphans.front().filter(|o| o.stamps.sent_at < sent_at)
        {
            let bytes = orphan.bytes;
            self.paths[path.index()].orphans.pop_front();
            self.flight_ends(path, bytes);
        }
    }

    /// T3 expired on the path, or it is gone.
    pub(crate) fn end_orphans(&mut self, path: PathId) {
        while let Some(orphan) = self.paths[path.index()].orphans.pop_front() {
            self.flight_ends(path, orphan.bytes);
        }
    }

    /// The acknowledgement that made them orphans was taken back: their flights are over.
    pub(crate) fn forget_orphans_of(&mut self, tsn: u64) {
        for (path, facts) in self.paths.iter_mut().zip(&mut self.facts) {
            path.orphans.retain(|orphan| {
                let other = orphan.tsn != tsn;
                if !other {
                    facts.in_flight -= orphan.bytes;
                }
                other
            });
        }
    }

    pub(crate) fn has_orphans(&self) -> bool {
        self.paths.iter().any(|path| !path.orphans.is_empty())
    }

    /// The peer reported a chunk as received twice: if a copy of it is still counted as in flight, it has arrived, and its
    /// path is credited. `true` if there was one.
    pub(crate) fn credit_orphan(&mut self, tsn: u64) -> bool {
        let source = self.scratch.source;
        let on = |path: &PathId| self.paths[path.index()].orphans.iter().any(|orphan| orphan.tsn == tsn);
        let Some(path) = source.filter(on).or_else(|| self.live_paths().find(on)) else { return false };
        let orphans = &mut self.paths[path.index()].orphans;
        let Some(orphan) = orphans.iter().position(|o| o.tsn == tsn).and_then(|at| orphans.remove(at)) else {
            return false;
        };
        let ack = &mut self.scratch.acks[path.index()];
        ack.gap += orphan.bytes;
        ack.gap_after_pseudo += orphan.bytes;
        ack.new_pseudo_cumulative = true;
        self.scratch.restart_t3[path.index()] = true;
        // Only this copy can have been the second to arrive, so its round trip is no guess (Karn).
        self.take_rtt(path, self.now.since(orphan.stamps.sent_at), false);
        self.credit_orphan_delivery(path, &orphan);
        self.end_overtaken_orphans(path, orphan.stamps.sent_at);
        true
    }

    fn credit_orphan_delivery(&mut self, path: PathId, orphan: &Orphan) {
        let sample = self.deliver(path, orphan.bytes, orphan.stamps);
        self.path_spoke(path);
        self.tell(&Event::Acked(&AckedTransmission { tsn: orphan.tsn, ..sample }));
        self.path_proved(path, ProofOfLife::Ambiguous);
    }
}
