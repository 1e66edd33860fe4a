//! Limits of the packets that a path may send in one opportunity, and records of sent ones.

use crate::path_id::PathId;
use crate::paths::Paths;
use crate::policy::{DeliverySample, PathFacts};
use crate::profile::BurstArming;
use crate::time::Time;

impl Paths {
    /// Sets the number of packets that may still be sent on a path in this opportunity. The number is unlimited unless `limited` is
    /// set.
    pub(crate) fn refresh_burst(&mut self, id: PathId, limited: bool) {
        let used = self.paths[id.index()].burst_used;
        let facts = &mut self.facts[id.index()];
        // A paced path has no bursts for Max.Burst to limit.
        if !limited || facts.pacing.rate.is_some() {
            end_burst(facts);
            return;
        }
        // ns-2 tests the limit after it has sent a retransmission, so a fifth may be sent.
        let late = matches!(self.profile.burst_arming, BurstArming::AfterRecoveredLoss { .. });
        //= docs/rfc9260.txt#section-6.1
        //# D)  When the time comes for the sender to transmit new DATA chunks, the protocol parameter 'Max.Burst' SHOULD
        //# be used to limit the number of packets sent.
        //= docs/rfc9260.txt#section-6.1
        //# When calculating the number of packets to transmit, and particularly when using the formula above, cwnd SHOULD
        //# NOT be changed permanently.
        facts.burst_left = self.profile.max_burst.saturating_sub(used);
        facts.resend_burst_left = (self.profile.max_burst + u32::from(late)).saturating_sub(used);
    }

    /// Counts a packet against Max.Burst.
    pub(crate) fn count_burst(&mut self, id: PathId) {
        self.paths[id.index()].burst_used += 1;
        self.refresh_burst(id, true);
    }

    /// Resets the count against Max.Burst on every path.
    pub(crate) fn reset_bursts(&mut self) {
        for path in &mut self.paths {
            path.burst_used = 0;
        }
    }

    /// Ends a send opportunity. Exemptions from the window stay on paths for which `keeps_exemption` returns `true`.
    pub(crate) fn end_opportunity(&mut self, keeps_exemption: impl Fn(PathId) -> bool) {
        self.reset_bursts();
        for facts in &mut self.facts {
            end_burst(facts);
            if !keeps_exemption(facts.id) {
                facts.exempt_packets = 0;
            }
        }
    }

    pub(crate) fn note_sent(&mut self, id: PathId, now: Time) {
        self.facts[id.index()].last_sent_at = Some(now);
    }

    /// Adopts the delivery rate that a SACK has measured.
    pub(crate) fn note_delivery(&mut self, id: PathId, sample: DeliverySample) {
        let facts = &mut self.facts[id.index()];
        facts.delivery = Some(sample);
        facts.delivery_rate = sample.rate.or(facts.delivery_rate);
    }
}

fn end_burst(facts: &mut PathFacts) {
    facts.burst_left = u32::MAX;
    facts.resend_burst_left = u32::MAX;
}
