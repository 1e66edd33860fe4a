//! Tests of RFC 8985 rule by rule, on two paths with a round-trip time of 100 ms each unless stated otherwise.

use super::*;
use crate::loss::MissingReports;
use crate::testing::{M, World, bytes, path};
use anabranch_core::PathSet;
use anabranch_core::policy::{PathAck, PathSack, RttFacts, SendStamps};
use anabranch_core::profile::Profile;
use anabranch_core::units::WindowBytes;

const SETTINGS: RackSettings = RackSettings {
    divisor: 4,
    reports_count: true,
    tail_probe: true,
    recovery_probe: false,
    repeated_probes: false,
    ack_delay: Span::from_millis(200),
};
/// Returns the set of one path.
fn only(index: usize) -> PathSet {
    [path(index)].into_iter().collect()
}

const NO_PROBES: RackSettings = RackSettings { tail_probe: false, ..SETTINGS };

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

/// Returns the chunks that were sent on the first path before this time in milliseconds, or at it with a lower TSN.
fn sent_before((sent_at, tsn): (u64, u64)) -> Holes {
    let mut bounds = [None; MAX_PATHS];
    bounds[0] = Some((ms(sent_at), tsn));
    Holes::SentBefore(bounds)
}

/// Returns a chunk whose latest transmission used the first path.
fn chunk(tsn: u64, sent_at: u64) -> Missing {
    Missing::sent_once(tsn, path(0), ms(sent_at))
}

struct Sender {
    rack: Rack,
    world: World,
}

impl Sender {
    fn new(settings: RackSettings) -> Self {
        let mut world = World::new(Profile::rfc9260_multipath(), 2);
        for facts in &mut world.paths {
            let rtt = Some(Span::from_millis(100));
            facts.rtt = RttFacts { latest: rtt, min: rtt, recent_min: rtt, smoothed: rtt, variance: None };
            facts.in_flight = bytes(2 * M);
        }
        let reports = MissingReports { trigger: 3, split: true, delayed_acks: false };
        Sender { rack: Rack::new(Box::new(reports), settings), world }
    }

    fn at(&mut self, now: u64) -> &mut Self {
        self.world.now = ms(now);
        self
    }

    fn dispatch(&mut self, event: &Event<'_>) -> &mut Self {
        self.world.dispatch(&mut self.rack, event);
        self
    }

    fn sent(&mut self, index: usize, tsn: u64, kind: SendKind) -> &mut Self {
        let sent = SentTransmission { path: path(index), previous_path: None, tsn, bytes: bytes(M), kind };
        self.dispatch(&Event::Sent(&sent))
    }

    fn acked_as(&mut self, index: usize, tsn: u64, sent_at: u64, sent_once: bool) -> &mut Self {
        let acked = AckedTransmission {
            path: path(index),
            tsn,
            bytes: bytes(M),
            stamps: SendStamps { sent_at: ms(sent_at), ..SendStamps::default() },
            sent_once,
            certain: sent_once,
            cumulative: false,
            sack_path: Some(path(index)),
        };
        self.dispatch(&Event::Acked(&acked))
    }

    fn acked(&mut self, tsn: u64, sent_at: u64) -> &mut Self {
        self.acked_as(0, tsn, sent_at, true)
    }

    fn verdict(&mut self, hole: Missing) -> MissingVerdict {
        let acked = PathSack { new_gap_ack: true, highest_gap_acked: Some(1000), ..PathSack::default() };
        let sack = SackView {
            paths: &[acked, PathSack::default()],
            cumulative: 100,
            highest_newly_acked: 1000,
            new_cumulative: false,
            flags: 1,
            a_rwnd: WindowBytes::new(65_536),
            peer_window: WindowBytes::new(65_536),
        };
        if !self.rack.judging {
            self.rack.holes(&sack, &self.world.view());
        }
        self.rack.missing(&hole, &sack, &self.world.view())
    }

    fn lost(&mut self, hole: Missing) -> bool {
        self.verdict(hole).lost
    }

    /// Completes a SACK that acknowledged `acked` chunks on the first path and left `left` in flight.
    fn sack_done(&mut self, acked: u64, left: u64, cumulative: u64) -> &mut Self {
        let ack = PathAck { gap: bytes(acked * M), in_flight_after: bytes(left * M), ..PathAck::default() };
        let other = PathAck { in_flight_after: bytes(2 * M), ..PathAck::default() };
        let paths = [ack, other];
        self.dispatch(&Event::SackDone(&SackDone { paths: &paths, new_cumulative: false, cumulative }))
    }

    fn loss_event(&mut self, cause: LossCause) -> &mut Self {
        self.dispatch(&Event::LossEvent { path: path(0), cause })
    }

    fn spurious(&mut self, tsn: u64) -> &mut Self {
        self.dispatch(&Event::Spurious { path: path(0), misjudged: path(0), tsn })
    }

    /// Returns the tasks due at this time.
    fn due(&mut self, now: u64) -> LossTasks {
        self.at(now);
        self.rack.due(&self.world.view())
    }

    fn overdue(&mut self, hole: Missing) -> bool {
        self.rack.overdue(&hole, &self.world.view())
    }

    /// Returns the deadline in milliseconds.
    fn deadline(&self) -> Option<u64> {
        self.rack.deadline().map(|at| at.as_nanos() / 1_000_000)
    }
}

mod losses {
    use super::*;

    #[test]
    fn no_chunk_is_lost_before_the_first_delivery() {
        let mut sender = Sender::new(NO_PROBES);
        assert!(!sender.at(10_000).lost(chunk(101, 0)));
        assert_eq!(sender.deadline(), None);
    }

    #[test]
    fn a_chunk_is_lost_a_round_trip_and_a_reordering_window_after_it_left() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(103, 10);
        // Sent at 0, RACK.rtt is 100, the window is 100 / 4 = 25: due at 125.
        assert!(!sender.lost(chunk(101, 0)));
        assert_eq!(sender.deadline(), Some(125));
        assert_eq!(sender.due(124), LossTasks::default());
        assert_eq!(sender.due(125).recheck, Some(sent_before((10, 103))));
        assert!(sender.overdue(chunk(101, 0)));
        assert_eq!(sender.deadline(), None, "the timer is spent");
    }

    #[test]
    fn chunks_sent_after_the_latest_delivered_one_are_not_lost() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(103, 10);
        assert!(!sender.at(1000).lost(chunk(104, 11)));
        // Sent at the same time: the TSN decides (RACK_sent_after).
        assert!(!sender.lost(chunk(104, 10)) && !sender.lost(chunk(103, 10)));
        assert!(sender.lost(chunk(102, 10)));
    }

    #[test]
    fn deliveries_on_another_path_mark_no_loss() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(500).acked_as(1, 103, 400, true);
        assert!(!sender.lost(chunk(101, 0)));
        assert!(sender.lost(Missing { path: path(1), ..chunk(101, 0) }));
    }

    #[test]
    fn a_retransmission_is_lost_like_any_other_transmission() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(310).acked(110, 210);
        let again = Missing { transmissions: 3, recovered_before: true, reports: 50, ..chunk(101, 200) };
        assert!(!sender.lost(again), "not before 200 + 100 + 25");
        assert!(sender.at(325).lost(again));
    }

    #[test]
    fn lost_chunk_that_waits_is_not_marked_again() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(500).acked(110, 400);
        assert!(!sender.lost(Missing { waits: true, ..chunk(101, 0) }));
        assert!(!sender.overdue(Missing { waits: true, ..chunk(101, 0) }));
    }

    #[test]
    fn reordering_timer_covers_the_last_candidate_and_each_sack_resets_it() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(110, 10);
        let _ = [chunk(101, 5), chunk(102, 8), chunk(103, 2)].map(|hole| sender.lost(hole));
        assert_eq!(sender.deadline(), Some(133), "8 + 100 + 25");
        sender.sack_done(1, 2, 100);
        assert!(!sender.lost(chunk(103, 2)));
        assert_eq!(sender.deadline(), Some(127), "102 has arrived");
    }

    #[test]
    fn a_recheck_that_comes_early_sets_the_timer_again() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(110, 10);
        sender.lost(chunk(101, 0));
        // A slower delivery: RACK.rtt becomes 125 - 5 = 120.
        assert!(sender.due(125).recheck.is_some());
        sender.acked(109, 5);
        assert!(!sender.overdue(chunk(101, 0)));
        assert_eq!(sender.deadline(), Some(145), "0 + 120 + 25");
    }

    #[test]
    fn each_path_has_a_timer_and_the_earlier_one_is_the_deadline() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(110, 10).acked_as(1, 111, 12, true);
        sender.lost(chunk(101, 9));
        sender.lost(Missing { path: path(1), ..chunk(102, 3) });
        // 3 + 98 + 25 on the second path, 9 + 100 + 25 on the first.
        assert_eq!(sender.deadline(), Some(126));
        assert!(sender.due(126).recheck.is_some());
        assert_eq!(sender.deadline(), Some(134));
    }

    #[test]
    fn reports_come_from_the_wrapped_policy() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(110, 10);
        assert_eq!(sender.verdict(chunk(101, 0)), MissingVerdict { reports: 1, lost: false });
        let other = Missing { path: path(1), ..chunk(101, 0) };
        assert_eq!(sender.verdict(other).reports, 0, "split: no ack on its own path");
        assert!(sender.rack.timed_out(&chunk(101, 0), &sender.world.view()));
    }

    #[test]
    fn a_path_that_is_added_or_removed_begins_from_nothing() {
        for event in [Event::PathAdded(path(0)), Event::PathRemoved(path(0))] {
            let mut sender = Sender::new(SETTINGS);
            sender.at(110).sent(0, 111, SendKind::New).acked(110, 10);
            sender.lost(chunk(101, 0));
            assert!(sender.dispatch(&event).deadline().is_none());
            assert!(!sender.at(1000).lost(chunk(101, 0)));
        }
    }
}

mod delivered {
    use super::*;

    #[test]
    fn ambiguous_ack_below_the_minimum_rtt_is_ignored() {
        // Section 6.2 step 2. Sent again at 150, answered at 249: 99 < 100.
        let mut sender = Sender::new(NO_PROBES);
        sender.at(249).acked_as(0, 110, 150, false);
        assert!(!sender.at(1000).lost(chunk(101, 0)));
        sender.at(250).acked_as(0, 111, 150, false);
        assert!(sender.lost(chunk(101, 0)), "100 is believed: 0 + 100 + 25 <= 250");
    }

    #[test]
    fn ambiguous_ack_without_an_rtt_sample_is_ignored() {
        let mut sender = Sender::new(NO_PROBES);
        sender.world.paths[0].rtt = RttFacts::default();
        sender.at(500).acked_as(0, 110, 100, false);
        assert!(!sender.lost(chunk(101, 0)));
    }

    #[test]
    fn late_arrival_of_an_early_send_updates_rtt_but_not_the_latest() {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(150).acked(110, 50).acked(109, 30);
        // RACK.rtt is 120; the chunk sent at 40 is still checked, until 40 + 120 + 25.
        assert!(!sender.lost(chunk(101, 40)));
        assert_eq!(sender.deadline(), Some(185));
    }
}

mod window {
    use super::*;

    /// Returns the grace period of a chunk sent at 0 on a path where one sent at 10 arrived at 110; `None` if it is lost at once.
    fn grace(sender: &mut Sender) -> Option<u64> {
        let lost = sender.at(110).lost(chunk(101, 0));
        let until = sender.deadline();
        sender.sack_done(1, 2, 100);
        if lost { None } else { until.map(|at| at - 100) }
    }

    fn delivered() -> Sender {
        let mut sender = Sender::new(NO_PROBES);
        sender.at(110).acked(110, 10);
        sender
    }

    /// Delivers TSN 109 after 110, although it was sent before it.
    fn reordered() -> Sender {
        let mut sender = delivered();
        sender.acked(109, 10);
        sender
    }

    #[test]
    fn reordering_window_is_min_rtt_over_the_divisor() {
        assert_eq!(grace(&mut delivered()), Some(25));
        for (divisor, expected) in [(1, Some(100)), (2, Some(50)), (8, Some(12)), (0, Some(100))] {
            let mut sender = Sender::new(RackSettings { divisor, ..NO_PROBES });
            assert_eq!(grace(sender.at(110).acked(110, 10)), expected);
        }
    }

    #[test]
    fn three_reports_close_the_window_without_reordering() {
        // The third report: 0 + 100 + 0 <= 110.
        let third = Missing { reports: 2, ..chunk(101, 0) };
        assert!(!delivered().lost(Missing { reports: 1, ..third }));
        assert!(delivered().lost(third));
        assert!(!reordered().lost(third));
        let mut deaf = Sender::new(RackSettings { reports_count: false, ..NO_PROBES });
        assert!(!deaf.at(110).acked(110, 10).lost(third));
    }

    #[test]
    fn reports_without_a_later_delivery_on_the_path_mark_no_loss() {
        let mut sender = Sender::new(NO_PROBES);
        assert!(!sender.at(110).lost(Missing { reports: 9, ..chunk(101, 0) }));
    }

    #[test]
    fn recovery_closes_the_window_without_reordering() {
        let mut sender = delivered();
        sender.world.paths[0].recovery_point = Some(120);
        assert_eq!(grace(&mut sender), None);
        let mut sender = reordered();
        sender.world.paths[0].recovery_point = Some(120);
        assert_eq!(grace(&mut sender), Some(25));
    }

    #[test]
    fn timeout_closes_the_window_until_earlier_data_has_arrived() {
        let mut sender = delivered();
        sender.sent(0, 120, SendKind::New).loss_event(LossCause::Timeout);
        assert_eq!(grace(&mut sender), None);
        sender.sack_done(1, 2, 119);
        assert_eq!(grace(&mut sender), None);
        sender.sack_done(1, 2, 120);
        assert_eq!(grace(&mut sender), Some(25));
    }

    #[test]
    fn recovery_from_timeout_ends_with_an_empty_path() {
        let mut sender = delivered();
        sender.sent(0, 120, SendKind::New).loss_event(LossCause::Timeout);
        sender.world.paths[0].lost_unsent = bytes(M);
        sender.sack_done(1, 0, 110);
        assert_eq!(grace(&mut sender), None);
        sender.world.paths[0].lost_unsent = bytes(0);
        sender.sack_done(1, 0, 110);
        assert_eq!(grace(&mut sender), Some(25));
    }

    #[test]
    fn only_a_chunk_sent_once_that_left_first_and_came_second_was_reordered() {
        let recovering = |sender: &mut Sender| {
            sender.world.paths[0].recovery_point = Some(120);
            grace(sender)
        };
        assert_eq!(recovering(&mut reordered()), Some(25));
        assert_eq!(recovering(delivered().acked_as(0, 109, 9, false)), None, "it was sent twice");
        assert_eq!(recovering(delivered().acked(109, 11)), None, "it was bound first and left second");
        assert_eq!(recovering(delivered().acked_as(1, 109, 9, true)), None, "on another path");
        assert_eq!(recovering(delivered().acked(111, 9)), None, "its TSN is the higher one");
    }

    #[test]
    fn spurious_rounds_widen_the_window_by_one_step_up_to_srtt() {
        let mut sender = delivered();
        sender.spurious(101).spurious(102);
        assert_eq!(grace(&mut sender), Some(50), "two in one round are one");
        // A chunk sent at 110 or later ends the round that began then.
        sender.at(209).acked(111, 109).spurious(103);
        assert_eq!(grace(&mut sender), Some(50));
        for (step, expected) in [75, 100, 100].into_iter().enumerate() {
            let sent_at = 300 + 100 * step as u64;
            sender.at(sent_at + 50).acked(120, sent_at).spurious(104);
            // RACK.rtt is 50 here: 0 + 50 + window.
            assert!(!sender.at(20).lost(chunk(101, 0)));
            assert_eq!(sender.deadline(), Some(50 + expected));
            sender.sack_done(1, 2, 100);
        }
    }

    #[test]
    fn a_widened_window_outlasts_fifteen_recoveries_and_not_sixteen() {
        let mut sender = delivered();
        sender.spurious(101);
        for recovery in 1..=16 {
            sender.at(111);
            sender.world.paths[0].recovery_point = Some(120);
            sender.sack_done(1, 2, 100).sack_done(1, 2, 100);
            sender.world.paths[0].recovery_point = None;
            sender.sack_done(1, 2, 100).sack_done(1, 2, 100);
            assert_eq!(grace(&mut sender), Some(if recovery < 16 { 50 } else { 25 }), "{recovery}");
        }
    }

    #[test]
    fn sack_that_widens_the_window_ends_no_recovery() {
        let mut sender = delivered();
        sender.world.paths[0].recovery_point = Some(120);
        sender.sack_done(1, 2, 100);
        sender.world.paths[0].recovery_point = None;
        sender.spurious(101).sack_done(1, 2, 100);
        assert_eq!(sender.rack.records[0].persistence, 16);
    }

    #[test]
    fn latest_delivery_replaces_a_missing_min_rtt() {
        let mut sender = Sender::new(NO_PROBES);
        sender.world.paths[0].rtt = RttFacts::default();
        sender.at(110).acked(110, 30);
        // RACK.rtt is 80, the window 20.
        assert!(!sender.at(90).lost(chunk(101, 0)));
        assert_eq!(sender.deadline(), Some(100));
    }
}

mod probes {
    use super::*;

    #[test]
    fn a_tail_is_probed_two_round_trips_after_it_left() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(10).sent(0, 101, SendKind::New).at(20).sent(0, 102, SendKind::New);
        assert_eq!(sender.deadline(), Some(220), "20 + 2 * 100");
        assert_eq!(sender.due(219), LossTasks::default());
        assert_eq!(sender.due(220), LossTasks { probes: only(0), ..LossTasks::default() });
        assert_eq!(sender.deadline(), None);
    }

    #[test]
    fn probe_of_a_single_chunk_waits_for_a_delayed_sack() {
        let mut sender = Sender::new(SETTINGS);
        sender.world.paths[0].in_flight = bytes(M);
        assert_eq!(sender.at(10).sent(0, 101, SendKind::New).deadline(), Some(410), "10 + 2 * 100 + 200");
    }

    #[test]
    fn without_a_round_trip_time_the_wait_is_a_second() {
        let mut sender = Sender::new(SETTINGS);
        sender.world.paths[0].rtt = RttFacts::default();
        sender.world.paths[0].in_flight = bytes(0);
        assert_eq!(sender.at(10).sent(0, 101, SendKind::New).deadline(), Some(1010));
    }

    #[test]
    fn acknowledged_data_restarts_the_wait_and_an_empty_path_ends_it() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(10).sent(0, 101, SendKind::New);
        sender.at(110).sack_done(0, 2, 99);
        assert_eq!(sender.deadline(), Some(210), "nothing of this path was acknowledged");
        sender.at(120).sack_done(1, 2, 100);
        assert_eq!(sender.deadline(), Some(320));
        sender.at(130).sack_done(1, 1, 100);
        assert_eq!(sender.deadline(), Some(530), "one is left: 130 + 200 + 200");
        assert_eq!(sender.at(140).sack_done(1, 0, 101).deadline(), None);
    }

    #[test]
    fn one_probe_is_sent_until_it_is_answered() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(10).sent(0, 101, SendKind::New);
        assert_eq!(sender.due(210).probes, only(0));
        sender.sent(0, 101, SendKind::TailProbe).sent(0, 102, SendKind::New);
        assert_eq!(sender.deadline(), None);
        // The acknowledgement of an older chunk does not answer the probe.
        assert_eq!(sender.at(220).acked(100, 5).sack_done(1, 2, 99).deadline(), None);
        assert_eq!(sender.at(310).acked(101, 210).sack_done(1, 2, 101).deadline(), Some(510));
    }

    #[test]
    fn later_chunk_of_the_same_path_acknowledges_the_probe() {
        for (index, expected) in [(0, Some(510)), (1, None)] {
            let mut sender = Sender::new(SETTINGS);
            sender.at(210).sent(0, 101, SendKind::TailProbe);
            sender.at(310).acked_as(index, 105, 200, true).sack_done(1, 2, 99);
            assert_eq!(sender.deadline(), expected);
        }
    }

    #[test]
    fn a_lost_probe_and_a_recovery_make_room_for_the_next() {
        let lost = Event::Lost {
            path: path(0),
            tsn: 101,
            bytes: bytes(M),
            sent_at: Time::default(),
            cause: LossCause::FastRetransmit,
        };
        let event = Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit };
        for event in [lost, event] {
            let mut sender = Sender::new(SETTINGS);
            sender.at(210).sent(0, 101, SendKind::TailProbe).dispatch(&event);
            assert_eq!(sender.at(220).sent(0, 102, SendKind::New).deadline(), Some(420));
        }
    }

    #[test]
    fn a_loss_event_ends_the_wait() {
        for cause in [LossCause::FastRetransmit, LossCause::Timeout, LossCause::Rescheduled] {
            let mut sender = Sender::new(SETTINGS);
            assert_eq!(sender.at(10).sent(0, 101, SendKind::New).loss_event(cause).deadline(), None);
        }
    }

    #[test]
    fn recovery_failure_or_waiting_losses_prevent_a_probe() {
        let cases: [fn(&mut Sender); 4] = [
            |sender| sender.world.paths[0].recovery_point = Some(200),
            |sender| sender.world.paths[0].lost_unsent = bytes(M),
            |sender| sender.world.paths[0].state = PathState::PotentiallyFailed,
            |sender| {
                sender.sent(0, 99, SendKind::New).loss_event(LossCause::Timeout);
            },
        ];
        for trouble in cases {
            let mut sender = Sender::new(SETTINGS);
            trouble(sender.at(10));
            assert_eq!(sender.sent(0, 101, SendKind::New).deadline(), None);
            // Nor if it arrives while the timer is armed.
            let mut sender = Sender::new(SETTINGS);
            trouble(sender.at(10).sent(0, 101, SendKind::New));
            assert_eq!(sender.due(210).probes, PathSet::EMPTY);
            assert_eq!(sender.deadline(), None);
        }
    }

    #[test]
    fn with_the_switch_a_tail_is_probed_in_recovery_too() {
        let mut sender = Sender::new(RackSettings { recovery_probe: true, ..SETTINGS });
        sender.world.paths[0].recovery_point = Some(500);
        sender.at(10).sent(0, 101, SendKind::Retransmission);
        assert_eq!(sender.due(210).probes, only(0));
        sender.world.paths[0].lost_unsent = bytes(M);
        sender.at(300).sent(0, 102, SendKind::Retransmission);
        assert_eq!(sender.due(600).probes, PathSet::EMPTY, "a lost chunk that waits is what leaves next");
    }

    #[test]
    fn with_the_switch_probes_repeat_until_one_is_acked() {
        let mut sender = Sender::new(RackSettings { repeated_probes: true, ..SETTINGS });
        sender.at(0).sent(0, 101, SendKind::New);
        assert_eq!(sender.due(200), LossTasks { probes: only(0), ..LossTasks::default() }, "the first");
        let mut left_at = vec![200];
        sender.sent(0, 101, SendKind::TailProbe);
        while left_at.len() < 7 {
            let at = sender.deadline().unwrap();
            assert_eq!(sender.due(at), LossTasks { recheck: None, probes: only(0), repeated: only(0) });
            sender.sent(0, 101, SendKind::TailProbe);
            left_at.push(at);
        }
        assert_eq!(left_at, [200, 400, 600, 800, 1000, 1200, 1450], "a quarter of the time since the first");
        sender.acked_as(0, 101, 1450, false).sent(0, 102, SendKind::New);
        assert_eq!(sender.due(1_650).repeated, PathSet::EMPTY, "that was answered");
    }

    #[test]
    fn with_the_switch_a_time_out_ends_the_probes() {
        let mut sender = Sender::new(RackSettings { repeated_probes: true, ..SETTINGS });
        sender.at(0).sent(0, 101, SendKind::New).at(200).sent(0, 101, SendKind::TailProbe);
        assert_eq!(sender.deadline(), Some(400));
        assert_eq!(sender.loss_event(LossCause::Timeout).deadline(), None);
    }

    #[test]
    fn switch_spaces_probes_of_a_short_path_by_at_least_ten_ms() {
        let mut sender = Sender::new(RackSettings { repeated_probes: true, ..SETTINGS });
        sender.world.paths[0].rtt.smoothed = Some(Span::from_millis(1));
        sender.at(0).sent(0, 101, SendKind::New).sent(0, 101, SendKind::TailProbe);
        assert_eq!(sender.deadline(), Some(10));
    }

    #[test]
    fn no_probe_beyond_a_hole() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(110).acked(110, 10);
        sender.lost(chunk(101, 0));
        sender.sack_done(1, 2, 100).sent(0, 111, SendKind::New);
        assert_eq!(sender.deadline(), Some(125), "the reordering timer, not 110 + 200");
        sender.at(115).sack_done(1, 2, 111).sent(0, 112, SendKind::New);
        assert!(sender.due(125).recheck.is_some(), "it finds nothing");
        assert_eq!(sender.deadline(), Some(315), "the hole is closed: 115 + 200");
    }

    #[test]
    fn a_path_that_leaves_service_is_not_probed() {
        let mut sender = Sender::new(SETTINGS);
        let cause =
            anabranch_core::policy::StateCause::Errors(anabranch_core::policy::Reason::rule("errors"));
        let (from, to) = (PathState::Active, PathState::Inactive);
        sender.at(10).sent(0, 101, SendKind::New);
        assert_eq!(sender.dispatch(&Event::PathState { path: path(0), from, to, cause }).deadline(), None);
    }

    #[test]
    fn copies_and_retransmissions_but_no_window_probes_are_timed() {
        for kind in [SendKind::New, SendKind::Copy, SendKind::HeadOfLine, SendKind::Retransmission] {
            assert_eq!(Sender::new(SETTINGS).at(10).sent(0, 101, kind).deadline(), Some(210), "{kind:?}");
        }
        for kind in [SendKind::WindowProbe, SendKind::TailProbe] {
            assert_eq!(Sender::new(SETTINGS).at(10).sent(0, 101, kind).deadline(), None, "{kind:?}");
        }
    }

    #[test]
    fn two_tails_that_are_due_are_both_probed() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(10).sent(0, 101, SendKind::New).sent(1, 102, SendKind::New);
        assert_eq!(sender.due(210).probes, [path(0), path(1)].into_iter().collect());
        assert_eq!(sender.deadline(), None);
    }

    #[test]
    fn a_needless_probe_does_not_widen_the_window() {
        let mut sender = Sender::new(SETTINGS);
        sender.at(210).sent(0, 101, SendKind::TailProbe).spurious(101);
        sender.at(310).acked(103, 210);
        assert!(!sender.lost(chunk(102, 200)));
        assert_eq!(sender.deadline(), Some(325), "200 + 100 + 25");
    }

    #[test]
    fn without_the_switch_no_probe_is_sent() {
        let mut sender = Sender::new(NO_PROBES);
        assert_eq!(sender.at(10).sent(0, 101, SendKind::New).sack_done(1, 2, 99).deadline(), None);
    }
}
