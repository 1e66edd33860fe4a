//! Detection of a full path by losses in slow start.
//!
//! A queue of a few packets overflows before its delay is long. Its losses then look like those of a lossy link, and slow start sends
//! at twice the rate of the link for ever. On a lossy link, twice the data in flight deliver twice the data. BBR ends its start-up
//! at such a plateau too, or at losses of 2 %, which a lossy link exceeds (draft-ietf-ccwg-bbr sections 5.3.1.2 and 5.3.1.3).

use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::full_pipe::{GROWTH, ROUNDS};
use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "plateau with losses",
    rule: text!(
        "slow start ends if the bytes delivered in a round trip have not grown by {} for {} round trips, and more \
         than {} % of the packets sent and judged since then, at least {}, are lost: cwnd = min(cwnd, rate base_m + target)",
        GROWTH,
        ROUNDS,
        100.0 * MANY,
        LEAST_PACKETS,
    ),
    file: file!(),
}];

/// Share of lost packets that few lossy links have. A window of twice the path's capacity loses half of its packets.
const MANY: f64 = 0.25;
/// Number of packets below which a burst of losses may be such a share.
const LEAST_PACKETS: u32 = 64;

/// Deliveries and losses of a path since its deliveries grew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossyPlateau {
    /// Largest number of bytes delivered in a round trip.
    most: ChunkBytes,
    /// Time at which they grew.
    since: Time,
    delivered: u32,
    lost: u32,
}

impl LossyPlateau {
    /// Restarts the count with packets sent from now on.
    pub(super) fn restart(&mut self, now: Time) {
        *self = LossyPlateau { most: self.most, since: now, ..LossyPlateau::default() };
    }

    /// Records the bytes that the path delivered in the round trip of a SACK's newest packet.
    pub(super) fn grew_to(&mut self, delivered: ChunkBytes, now: Time) {
        if delivered.get() as f64 > GROWTH * self.most.get() as f64 {
            self.most = delivered;
            self.restart(now);
        }
    }

    /// Records a delivered packet.
    pub(super) fn delivered(&mut self, sent_at: Time) {
        self.delivered = self.delivered.saturating_add(u32::from(sent_at >= self.since));
    }

    /// Records a lost packet.
    pub(super) fn lost(&mut self, sent_at: Time) {
        self.lost = self.lost.saturating_add(u32::from(sent_at >= self.since));
    }

    /// Returns the share of lost packets if it shows that more data in flight are lost.
    pub(super) fn lost_at_plateau(&self, round_trip: Span, now: Time) -> Option<f64> {
        let judged = self.delivered.saturating_add(self.lost);
        let share = f64::from(self.lost) / f64::from(judged.max(1));
        let is_plateau =
            now.since(self.since) >= round_trip.times(u64::from(ROUNDS)) && judged >= LEAST_PACKETS;
        (is_plateau && share > MANY).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Returns the result of rounds, each with the kB and packets that arrive and the packets that are lost.
    fn after(rounds: &[(u64, u32, u32)]) -> Option<f64> {
        let mut plateau = LossyPlateau::default();
        let mut now = at(0);
        for &(kbytes, delivered, lost) in rounds {
            let sent_at = now;
            now += RTT;
            plateau.grew_to(ChunkBytes::new(1_000 * kbytes), now);
            (0..delivered).for_each(|_| plateau.delivered(sent_at));
            (0..lost).for_each(|_| plateau.lost(sent_at));
        }
        plateau.lost_at_plateau(RTT, now)
    }

    #[test]
    fn many_losses_without_growth_for_three_round_trips_show_a_full_path() {
        let plateau = [(100, 70, 0), (105, 73, 60), (110, 76, 60), (100, 70, 60)];
        assert!(after(&plateau).is_some_and(|share| (0.4..0.5).contains(&share)));
        assert_eq!(after(&plateau[..3]), None);
    }

    #[test]
    fn growing_deliveries_show_spare_capacity_at_any_loss() {
        assert_eq!(after(&[(20, 14, 14), (30, 20, 20), (45, 30, 30), (70, 45, 45), (100, 70, 70)]), None);
    }

    #[test]
    fn losses_of_a_lossy_link_show_no_full_path() {
        assert_eq!(after(&[(100, 70, 8), (100, 70, 8), (100, 70, 8), (100, 70, 20), (100, 70, 8)]), None);
    }

    #[test]
    fn few_packets_show_nothing() {
        assert_eq!(after(&[(10, 7, 0), (10, 7, 7), (10, 7, 7), (10, 7, 7), (10, 7, 7)]), None);
    }

    #[test]
    fn packets_sent_before_a_restart_do_not_count() {
        let mut plateau = LossyPlateau::default();
        plateau.restart(at(1_000));
        (0..100).for_each(|_| plateau.lost(at(999)));
        assert_eq!(plateau.lost_at_plateau(RTT, at(2_000)), None);
        (0..100).for_each(|_| plateau.lost(at(1_000)));
        assert_eq!(plateau.lost_at_plateau(RTT, at(2_000)), Some(1.0));
    }
}
