//! Tests of Fig. 4 of the paper, branch by branch, with SACKs that advertise given shares of a buffer of 100,000 B.

use super::*;
use crate::testing::{World, path};
use anabranch_core::policy::{PathSack, SackDone};
use anabranch_core::profile::Profile;
use anabranch_core::units::WindowBytes;

const BUFFER: u64 = 100_000;
const PIVOTS: Pivots = Pivots { substantial: 0.4, moderate: 0.8, tolerable: 0.9 };
const ADAPTATION: Adaptation =
    Adaptation { pivots: PIVOTS, occurrences: 3, consecutive: false, free_space: FreeSpace::Advertised };
const SFR: MissingReports = MissingReports { trigger: 99, split: true, delayed_acks: false };
/// Returns TSN 101, missing on a path after this many reports.
fn hole(index: usize, reports: u32) -> Missing {
    Missing { reports, ..Missing::sent_once(101, path(index), Time::ZERO) }
}

/// Policy and the SACKs that it receives.
struct Sender {
    policy: AdaptiveTrigger,
    world: World,
}

impl Sender {
    fn new(adaptation: Adaptation) -> Self {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.association.peer_window_initial = WindowBytes::new(BUFFER);
        Sender { policy: AdaptiveTrigger::new(SFR, adaptation), world }
    }

    /// Returns the verdict of a SACK with `holes` holes on a chunk reported `before` times.
    fn sack_with(&mut self, a_rwnd: u64, peer_window: u64, holes: u32, before: u32) -> MissingVerdict {
        let acked = PathSack {
            new_gap_ack: true,
            new_cumulative_ack: false,
            lowest_newly_acked: Some(103),
            highest_gap_acked: Some(103),
            latest_sent_at: None,
        };
        let paths = [acked, PathSack::default()];
        let sack = SackView {
            paths: &paths,
            cumulative: 100,
            highest_newly_acked: 103,
            new_cumulative: false,
            flags: 1,
            a_rwnd: WindowBytes::new(a_rwnd),
            peer_window: WindowBytes::new(peer_window),
        };
        let mut verdict = MissingVerdict { reports: 0, lost: false };
        if holes > 0 {
            self.policy.holes(&sack, &self.world.view());
        }
        for _ in 0..holes {
            verdict = self.policy.missing(&hole(0, before), &sack, &self.world.view());
        }
        let done = SackDone { paths: &[], new_cumulative: false, cumulative: 100 };
        self.world.dispatch(&mut self.policy, &Event::SackDone(&done));
        verdict
    }

    /// Returns the trigger after a SACK that advertises this many thousandths of the buffer.
    fn trigger_at(&mut self, thousandths: u64) -> u32 {
        self.sack_with(thousandths * BUFFER / 1000, 0, 1, 0);
        self.policy.reports.trigger
    }

    fn triggers_at<const N: usize>(&mut self, thousandths: [u64; N]) -> [u32; N] {
        thousandths.map(|share| self.trigger_at(share))
    }
}

#[test]
fn each_zone_has_its_trigger_and_a_zone_begins_at_its_pivot() {
    // P1 = 0.4 and P2 = 0.8 belong to the zone above, P3 = 0.9 to the one below: both conditions of Fig. 4 hold, and the first one
    // applies.
    let shares = [0, 399, 400, 799, 800, 900, 901, 1000];
    assert_eq!(shares.map(|share| Sender::new(ADAPTATION).trigger_at(share)), [3, 3, 4, 4, 5, 5, 6, 6]);
}

#[test]
fn substantial_zone_pulls_the_second_pivot_below_the_free_share() {
    let mut sender = Sender::new(ADAPTATION);
    assert_eq!(sender.triggers_at([500, 600, 550]), [4, 4, 4]);
    // The third SACK, at 0.55, moved P2 to 0.55 - 0.001 = 0.549.
    assert_eq!(sender.policy.pivots, Pivots { moderate: 0.55 - 0.001, ..PIVOTS });
    assert_eq!(sender.triggers_at([548, 550]), [4, 5]);
}

#[test]
fn moderate_zone_pulls_the_third_pivot_below_the_free_share() {
    let mut sender = Sender::new(ADAPTATION);
    assert_eq!(sender.triggers_at([850, 820, 860]), [5, 5, 5]);
    // 0.86 - 0.001 = 0.859.
    assert_eq!(sender.policy.pivots, Pivots { tolerable: 0.86 - 0.001, ..PIVOTS });
    assert_eq!(sender.triggers_at([858, 860]), [5, 6]);
}

#[test]
fn persistent_level_climbs_until_the_critical_zone_resets_it() {
    let mut sender = Sender::new(ADAPTATION);
    // Three SACKs at 0.5 in the substantial zone: P2 = 0.499. Three in the moderate one: P3 = 0.499. Then tolerable.
    assert_eq!(sender.triggers_at([500; 7]), [4, 4, 4, 5, 5, 5, 6]);
    // Above P1 the pivots are not restored. 0.45 is still substantial, since 0.45 < P2.
    assert_eq!(sender.triggers_at([950, 450, 500]), [6, 4, 6]);
    assert_eq!(sender.triggers_at([399, 500]), [3, 4]);
    assert_eq!(sender.policy.pivots, PIVOTS);
}

#[test]
fn tolerable_zone_counts_without_moving_pivots() {
    let mut sender = Sender::new(ADAPTATION);
    assert_eq!(sender.triggers_at([950; 10]), [6; 10]);
    assert_eq!((sender.policy.pivots, sender.policy.counts), (PIVOTS, [0, 0]));
}

#[test]
fn counts_outlive_a_visit_elsewhere_even_to_the_critical_zone() {
    let mut sender = Sender::new(ADAPTATION);
    sender.triggers_at([500, 850, 950, 300, 500]);
    assert_eq!(sender.policy.counts, [2, 1]);
    sender.triggers_at([850, 600]);
    // The third substantial SACK, at 0.6; the moderate count is its own.
    assert_eq!(sender.policy.counts, [0, 2]);
    assert_eq!(sender.policy.pivots, Pivots { moderate: 0.6 - 0.001, ..PIVOTS });
}

#[test]
fn counts_of_consecutive_sacks_end_with_the_zone() {
    let mut sender = Sender::new(Adaptation { consecutive: true, ..ADAPTATION });
    sender.triggers_at([500, 500, 850, 500, 500]);
    assert_eq!((sender.policy.counts, sender.policy.pivots), ([2, 0], PIVOTS));
    sender.triggers_at([300, 500, 850, 850, 950]);
    assert_eq!((sender.policy.counts, sender.policy.pivots), ([0, 0], PIVOTS));
    sender.triggers_at([500; 3]);
    assert_eq!(sender.policy.pivots.moderate, 0.5 - 0.001);
}

#[test]
fn a_pivot_that_is_pulled_below_its_neighbour_closes_the_zone_between() {
    let mut sender = Sender::new(Adaptation { occurrences: 1, ..ADAPTATION });
    // At P1 itself: P2 = 0.4 - 0.001, below P1. From P1 on it is moderate, and the first such SACK moves P3 too.
    assert_eq!(sender.triggers_at([400, 400, 400, 399]), [4, 5, 6, 3]);
}

#[test]
fn sack_is_evaluated_once_for_any_number_of_holes() {
    let mut sender = Sender::new(ADAPTATION);
    sender.sack_with(50_000, 0, 5, 0);
    sender.sack_with(50_000, 0, 5, 0);
    assert_eq!((sender.policy.counts, sender.policy.pivots), ([2, 0], PIVOTS));
}

#[test]
fn the_trigger_holds_for_the_holes_of_the_very_sack_that_set_it() {
    let lost = |share: u64, before| Sender::new(ADAPTATION).sack_with(share, 0, 1, before).lost;
    for (share, trigger) in [(30_000, 3), (50_000, 4), (85_000, 5), (95_000, 6)] {
        assert!(!lost(share, trigger - 2) && lost(share, trigger - 1), "{share}");
    }
}

#[test]
fn filling_buffer_marks_spared_chunks_lost() {
    let mut sender = Sender::new(ADAPTATION);
    assert!(!sender.sack_with(95_000, 0, 1, 3).lost, "four reports of six");
    assert!(sender.sack_with(10_000, 0, 1, 4).lost);
}

#[test]
fn free_space_is_the_advertised_or_remaining_window() {
    let less = Adaptation { free_space: FreeSpace::LessOutstanding, ..ADAPTATION };
    // 0.95 advertised, 0.3 left: tolerable or critical.
    for (adaptation, trigger) in [(ADAPTATION, 6), (less, 3)] {
        let mut sender = Sender::new(adaptation);
        sender.sack_with(95_000, 30_000, 1, 0);
        assert_eq!(sender.policy.reports.trigger, trigger);
    }
}

#[test]
fn larger_window_means_free_buffer_and_unknown_keeps_the_default() {
    let mut sender = Sender::new(ADAPTATION);
    assert_eq!(sender.trigger_at(3000), 6);
    sender.world.association.peer_window_initial = WindowBytes::ZERO;
    assert_eq!(sender.trigger_at(1000), 3);
}

#[test]
fn reports_are_counted_as_without_afr() {
    let mut sender = Sender::new(ADAPTATION);
    assert_eq!(sender.sack_with(95_000, 0, 1, 0), MissingVerdict { reports: 1, lost: false });
    let other = hole(1, 0);
    let paths = [PathSack::default(); 2];
    let sack = SackView {
        paths: &paths,
        cumulative: 100,
        highest_newly_acked: 110,
        new_cumulative: false,
        flags: 1,
        a_rwnd: WindowBytes::new(BUFFER),
        peer_window: WindowBytes::new(BUFFER),
    };
    let verdict = sender.policy.missing(&other, &sack, &sender.world.view());
    assert_eq!(verdict, MissingVerdict { reports: 0, lost: false }, "no ack on its own path");
    assert!(sender.policy.timed_out(&other, &sender.world.view()));
    assert_eq!(sender.policy.due(&sender.world.view()), LossTasks::default());
    assert!(!sender.policy.overdue(&other, &sender.world.view()));
    assert_eq!(sender.policy.deadline(), None);
}

#[test]
fn any_sequence_of_levels_leaves_a_trigger_from_three_to_six() {
    let mut sender = Sender::new(Adaptation { occurrences: 2, ..ADAPTATION });
    // 7919 is prime, so every level from 0 to 1000 occurs.
    for step in 0..5000 {
        let share = step * 7919 % 1001;
        let trigger = sender.trigger_at(share);
        assert!((3..=6).contains(&trigger));
        assert_eq!(trigger == 3, share < 400, "P1 never moves");
    }
}
