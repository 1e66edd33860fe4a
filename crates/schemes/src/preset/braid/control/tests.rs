use super::*;
use crate::testing::{M, World, bytes, path};
use anabranch_core::policy::{DeliverySample, PathAck, SackDone, SendStamps};
use anabranch_core::profile::Profile;
use anabranch_core::time::Rate;

const ALL: Parts = Parts { delay: true, noise: true, coupling: true, pacing: true };

/// Control of paths with a base of 100 ms and 100 packets per second.
struct Rig {
    world: World,
    control: BraidControl,
}

/// Returns the acknowledgement, beyond doubt, of data that was sent once.
fn acked(index: usize, bytes: ChunkBytes, sent_at: Time) -> AckedTransmission {
    AckedTransmission {
        path: path(index),
        tsn: 1,
        bytes,
        stamps: SendStamps { sent_at, ..SendStamps::default() },
        sent_once: true,
        certain: true,
        cumulative: true,
        sack_path: Some(path(index)),
    }
}

impl Rig {
    fn new(parts: Parts, paths: usize) -> Self {
        let profile = Profile { fast_retransmit_floor: 2, ..Profile::rfc9260() };
        let mut world = World::new(profile, paths);
        for facts in &mut world.paths {
            facts.estimates.bottleneck_rate = Some(Rate::from_bps(100 * M * 8));
        }
        let mut rig = Rig { world, control: BraidControl::new(parts) };
        rig.dispatch(&Event::Established);
        rig
    }

    fn dispatch(&mut self, event: &Event<'_>) {
        self.world.dispatch(&mut self.control, event);
    }

    fn chunks(&self, index: usize) -> f64 {
        self.control.window(path(index)).cwnd.get() as f64 / M as f64
    }

    /// Runs a round trip on a path with this queue in milliseconds, in which the window is in full use and acknowledged.
    fn round(&mut self, index: usize, queue_ms: u64) {
        let sent_at = self.world.now;
        self.world.now = sent_at + Span::from_millis(100 + queue_ms);
        let cwnd = self.control.window(path(index)).cwnd;
        let acked = acked(index, cwnd, sent_at);
        let estimates = &mut self.world.paths[index].estimates;
        estimates.propagation = Some(Span::from_millis(100));
        estimates.queueing = Some(Span::from_millis(queue_ms));
        self.dispatch(&Event::Acked(&acked));
        self.end_sack(index, PathAck { cumulative: cwnd, in_flight_before: cwnd, ..PathAck::default() });
    }

    /// Ends a SACK with this acknowledgement on a path.
    fn end_sack(&mut self, index: usize, ack: PathAck) {
        let mut acks = [PathAck::default(); MAX_PATHS];
        acks[index] = ack;
        let count = self.world.paths.len();
        self.dispatch(&Event::SackDone(&SackDone {
            paths: &acks[..count],
            new_cumulative: true,
            cumulative: 1,
        }));
    }

    /// Loses data sent at the current time.
    fn lose(&mut self, index: usize) {
        let (sent_at, cause) = (self.world.now, LossCause::FastRetransmit);
        self.dispatch(&Event::Lost { path: path(index), tsn: 9, bytes: bytes(M), sent_at, cause });
    }

    /// Creates paths after slow start, without competing flows and with empty queues.
    fn delay_mode(parts: Parts, paths: usize) -> Self {
        let mut rig = Rig::new(parts, paths);
        for index in 0..paths {
            rig.round(index, 0);
            rig.round(index, 50);
            rig.round(index, 0);
        }
        rig
    }
}

#[test]
fn slow_start_ends_at_a_queue_with_bdp_plus_two_packets() {
    let mut rig = Rig::new(ALL, 1);
    assert!((rig.chunks(0) - 3.0).abs() < 0.1);
    for expected in [6.0, 12.0, 24.0] {
        rig.round(0, 0);
        assert!((rig.chunks(0) - expected).abs() < 0.1, "{}", rig.chunks(0));
    }
    rig.round(0, 50);
    // 100 packets per second times 100 ms.
    assert!((rig.chunks(0) - 12.0).abs() < 0.1, "{}", rig.chunks(0));
}

#[test]
fn own_queue_shrinks_the_window_and_foreign_queue_only_briefly() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let before = rig.chunks(0);
    rig.round(0, 50);
    assert!(rig.chunks(0) < before);
    (0..8).for_each(|_| rig.round(0, 50));
    let competing = rig.chunks(0);
    assert!(competing > before, "{competing} {before}");
    rig.round(0, 50);
    assert!(rig.chunks(0) >= competing, "it grows whatever the queue");
}

#[test]
fn window_after_slow_start_covers_the_mean_round_trip_over_return_paths() {
    // SACKs that return on a faster path take 100 ms, and those on the path itself 160 ms.
    for (mean_ms, expected) in [(100, 12.0), (140, 16.0), (300, 18.0)] {
        let mut rig = Rig::new(ALL, 1);
        (0..3).for_each(|_| rig.round(0, 0));
        let rtt = &mut rig.world.paths[0].rtt;
        (rtt.smoothed, rtt.recent_min) = (Some(Span::from_millis(mean_ms)), Some(Span::from_millis(160)));
        rig.round(0, 50);
        assert!((rig.chunks(0) - expected).abs() < 0.1, "{mean_ms}: {}", rig.chunks(0));
    }
}

#[test]
fn window_without_a_queue_grows_faster_until_a_queue_builds() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let before = rig.chunks(0);
    (0..12).for_each(|_| rig.round(0, 0));
    let grown = rig.chunks(0);
    assert!(grown > 5.0 * before, "{grown} {before}");
    rig.round(0, 30);
    let shrunk = rig.chunks(0);
    assert!(shrunk < grown);
    (0..3).for_each(|_| rig.round(0, 0));
    assert!(rig.chunks(0) < shrunk + 4.0, "{} {shrunk}", rig.chunks(0));
}

#[test]
fn loss_at_a_short_queue_leaves_the_growth_to_the_curve() {
    let mut rig = Rig::delay_mode(ALL, 1);
    rig.round(0, 50);
    rig.lose(0);
    let before = rig.chunks(0);
    (0..12).for_each(|_| rig.round(0, 0));
    assert!(rig.chunks(0) < before + 12.0, "{} {before}", rig.chunks(0));
}

#[test]
fn disabled_delay_rule_ignores_queues() {
    let mut rig = Rig::new(Parts { delay: false, ..ALL }, 1);
    for _ in 0..5 {
        let before = rig.chunks(0);
        rig.round(0, 50);
        assert!(rig.chunks(0) > 1.9 * before);
    }
}

#[test]
fn a_loss_beside_a_long_queue_cuts_to_seven_tenths_once_per_round_trip() {
    let mut rig = Rig::delay_mode(ALL, 1);
    rig.round(0, 50);
    let before = rig.chunks(0);
    rig.lose(0);
    assert!((rig.chunks(0) - 0.7 * before).abs() < 0.01);
    let sent_at = Time::from_nanos(rig.world.now.as_nanos() - 1);
    let again =
        Event::Lost { path: path(0), tsn: 8, bytes: bytes(M), sent_at, cause: LossCause::FastRetransmit };
    rig.dispatch(&again);
    assert!((rig.chunks(0) - 0.7 * before).abs() < 0.01, "it left before the cut");
}

/// Creates paths in slow start with windows of 96 chunks, the first of which has lost a packet. Their queues of 15 ms count as
/// congestion, and with less than two packets do not end slow start.
fn lost_in_slow_start(paths: usize) -> Rig {
    let mut rig = Rig::new(ALL, paths);
    for index in 0..paths {
        (0..4).for_each(|_| rig.round(index, 0));
        rig.round(index, 15);
        assert!((rig.chunks(index) - 96.0).abs() < 0.1, "{}", rig.chunks(index));
    }
    rig.lose(0);
    rig
}

#[test]
fn slow_start_with_losses_leaves_bdp_plus_two_packets() {
    let rig = lost_in_slow_start(1);
    assert!((rig.chunks(0) - 12.0).abs() < 0.1, "{}", rig.chunks(0));
}

#[test]
fn losses_of_slow_starts_that_begin_together_couple_no_paths() {
    let mut rig = lost_in_slow_start(2);
    assert!((rig.chunks(1) - 96.0).abs() < 0.1, "{}", rig.chunks(1));
    rig.lose(1);
    assert!((rig.chunks(0) - 12.0).abs() < 0.1, "{}", rig.chunks(0));
    let share = rig.control.share_of_growth(path(0), &rig.world.view());
    assert!((share - 1.0).abs() < 1e-9, "{share}");
}

#[test]
fn data_beyond_the_window_does_not_shrink_it_again() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let before = rig.chunks(0);
    rig.world.paths[0].in_flight = bytes(20 * M);
    rig.round(0, 50);
    assert!((rig.chunks(0) - before).abs() < 0.01, "it left before");
    rig.world.paths[0].in_flight = ChunkBytes::ZERO;
    rig.round(0, 50);
    assert!(rig.chunks(0) < before);
}

#[test]
fn a_loss_beside_a_short_queue_leaves_the_window_unless_noise_is_off() {
    for (noise, share) in [(true, 1.0), (false, 0.7)] {
        let mut rig = Rig::delay_mode(Parts { noise, ..ALL }, 1);
        let before = rig.chunks(0);
        rig.lose(0);
        assert!((rig.chunks(0) - share * before).abs() < 0.01, "{noise}");
    }
}

#[test]
fn a_chunk_that_was_moved_is_no_loss() {
    let mut rig = Rig::delay_mode(Parts { noise: false, ..ALL }, 1);
    let before = rig.chunks(0);
    let (sent_at, cause) = (rig.world.now, LossCause::Rescheduled);
    rig.dispatch(&Event::Lost { path: path(0), tsn: 9, bytes: bytes(M), sent_at, cause });
    assert!((rig.chunks(0) - before).abs() < 0.01);
}

#[test]
fn congested_paths_are_cut_together_and_others_unchanged() {
    for (coupling, second) in [(true, 0.7), (false, 1.0)] {
        let mut rig = Rig::delay_mode(Parts { coupling, ..ALL }, 3);
        for _ in 0..9 {
            rig.round(0, 50);
            rig.round(1, 50);
        }
        let before = [0, 1, 2].map(|index| rig.chunks(index));
        rig.lose(0);
        let left = [0, 1, 2].map(|index| rig.chunks(index) / before[index]);
        for (left, expected) in left.into_iter().zip([0.7, second, 1.0]) {
            assert!((left - expected).abs() < 0.01, "{left} {expected} {coupling}");
        }
    }
}

#[test]
fn pacing_starts_with_a_known_rtt_above_the_window_rate() {
    let mut rig = Rig::new(ALL, 1);
    assert_eq!(rig.control.pacing(path(0)), Pacing::OFF);
    rig = Rig::delay_mode(ALL, 1);
    let cwnd = rig.control.window(path(0)).cwnd.get() as f64;
    let rate = rig.control.pacing(path(0)).rate.expect("it is paced").as_bps() as f64;
    assert!((rate / (cwnd * 8.0 / 0.1) - 1.2).abs() < 0.01);
    let unpaced = Rig::delay_mode(Parts { pacing: false, ..ALL }, 1);
    assert_eq!(unpaced.control.pacing(path(0)).rate, None);
}

#[test]
fn a_queue_that_never_empties_is_drained() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let mut drained = false;
    for _ in 0..60 {
        rig.round(0, 15);
        drained |= rig.control.pacing(path(0)).in_flight_cap.is_some();
    }
    assert!(drained);
}

#[test]
fn loss_cuts_after_a_long_time_of_ambiguous_acknowledgements() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let smoothed = Span::from_millis(100);
    rig.world.paths[0].rtt.smoothed = Some(smoothed);
    let before = rig.chunks(0);
    let acked_again = |rig: &mut Rig| {
        let once = acked(0, bytes(M), rig.world.now);
        let acked = AckedTransmission { sent_once: false, certain: false, ..once };
        rig.dispatch(&Event::Acked(&acked));
    };
    for chunk in 0..16 {
        rig.world.now += smoothed.over(8);
        rig.lose(0);
        assert!((rig.chunks(0) - before).abs() < 0.01, "noise so far: {chunk}");
        acked_again(&mut rig);
    }
    rig.world.now += smoothed;
    rig.lose(0);
    let cut = rig.chunks(0);
    assert!((cut - 0.7 * before).abs() < 0.01, "{cut} of {before}");
    rig.lose(0);
    assert!((rig.chunks(0) - cut).abs() < 0.01, "once");
}

/// Delivers these bytes in the round trip of a path's newest packet, with nothing in flight before.
fn deliver(rig: &mut Rig, bytes: ChunkBytes) {
    let sample = DeliverySample {
        stamps: SendStamps::default(),
        delivered: bytes,
        send_elapsed: Span::ZERO,
        ack_elapsed: Span::ZERO,
        lost: ChunkBytes::ZERO,
        rtt: None,
        rate: None,
    };
    rig.end_sack(0, PathAck { sample: Some(sample), ..PathAck::default() });
}

#[test]
fn window_beyond_twice_the_delivered_bytes_is_reduced_by_half_at_most() {
    let mut rig = Rig::new(ALL, 1);
    (0..5).for_each(|_| rig.round(0, 0));
    assert!((rig.chunks(0) - 96.0).abs() < 0.1, "{}", rig.chunks(0));
    // The initial window has three chunks.
    for (delivered, expected) in [(47, 96.0), (20, 96.0)] {
        deliver(&mut rig, bytes(delivered * M));
        assert!((rig.chunks(0) - expected).abs() < 0.1, "{delivered}: {}", rig.chunks(0));
    }
    for expected in [48.0, 43.0, 43.0] {
        rig.world.now += Span::from_secs(21);
        deliver(&mut rig, bytes(20 * M));
        assert!((rig.chunks(0) - expected).abs() < 0.1, "{}", rig.chunks(0));
    }
}

#[test]
fn cut_of_an_unused_window_starts_at_the_delivered_bytes() {
    let mut rig = Rig::delay_mode(ALL, 1);
    rig.round(0, 50);
    deliver(&mut rig, bytes(100 * M));
    let window = Window { cwnd: bytes(40 * M), ..rig.control.window(path(0)) };
    rig.control.set_window(path(0), window, Reason::rule("a test"), &rig.world.view());
    rig.world.now += Span::from_secs(2);
    deliver(&mut rig, bytes(10 * M));
    assert!((rig.chunks(0) - 40.0).abs() < 0.01, "twice 100 chunks were delivered");
    rig.lose(0);
    assert!((rig.chunks(0) - 7.0).abs() < 0.01, "{}", rig.chunks(0));
}

#[test]
fn silence_halves_the_window_only_with_an_empty_flight() {
    let mut rig = Rig::delay_mode(ALL, 1);
    let before = rig.chunks(0);
    let timeout = Event::LossEvent { path: path(0), cause: LossCause::Timeout };
    rig.world.paths[0].in_flight = bytes(M);
    rig.dispatch(&timeout);
    assert!((rig.chunks(0) - before).abs() < 0.01);
    rig.world.paths[0].in_flight = ChunkBytes::ZERO;
    rig.dispatch(&timeout);
    assert!(rig.chunks(0) < before);
}

#[test]
fn rebound_path_restarts() {
    let mut rig = Rig::delay_mode(ALL, 1);
    rig.dispatch(&Event::PathRebound(path(0)));
    assert!((rig.chunks(0) - 3.0).abs() < 0.1);
    assert_eq!(rig.control.pacing(path(0)), Pacing::OFF);
}

/// Sends packets every 10 ms and loses a quarter of them beside a short queue. Their outcome is known a round trip after
/// transmission. The first is sent now or at `from`.
fn lose_a_quarter(rig: &mut Rig, packets: u32, from: Option<Time>) {
    let from = from.unwrap_or(rig.world.now);
    rig.world.now = rig.world.now.max(from + Span::from_millis(100));
    for n in 0..packets {
        rig.world.now += Span::from_millis(10);
        let sent_at = from + Span::from_millis(10).times(u64::from(n) + 1);
        if n % 4 == 0 {
            let cause = LossCause::FastRetransmit;
            rig.dispatch(&Event::Lost { path: path(0), tsn: 9, bytes: bytes(M), sent_at, cause });
        } else {
            let acked = acked(0, bytes(M), sent_at);
            rig.dispatch(&Event::Acked(&acked));
            rig.end_sack(0, PathAck::default());
        }
    }
}

fn tests_the_rate(rig: &mut Rig) -> bool {
    let now = rig.world.now;
    rig.control.path(path(0)).expect("a path").policer.ceiling(now).is_some()
}

#[test]
fn chunks_of_one_sack_have_the_queue_of_the_latest() {
    let early_met_a_long_queue = |sack_for_each: bool| {
        let mut rig = Rig::delay_mode(ALL, 1);
        let early = rig.world.now;
        rig.world.now += Span::from_millis(150);
        for (sent_at, queue_ms) in [(early, 50), (early + Span::from_millis(50), 0)] {
            rig.world.paths[0].estimates.queueing = Some(Span::from_millis(queue_ms));
            rig.dispatch(&Event::Acked(&acked(0, bytes(M), sent_at)));
            if sack_for_each {
                rig.end_sack(0, PathAck::default());
            }
        }
        rig.end_sack(0, PathAck::default());
        rig.control.path(path(0)).expect("a path").judge.was_long(early, Span::from_millis(100))
    };
    assert!(early_met_a_long_queue(true));
    assert!(!early_met_a_long_queue(false));
}

#[test]
fn many_losses_start_the_policer_test_unless_sent_before_a_cut() {
    let mut rig = Rig::delay_mode(ALL, 1);
    lose_a_quarter(&mut rig, 128, None);
    assert!(tests_the_rate(&mut rig));

    let mut rig = Rig::delay_mode(ALL, 1);
    rig.round(0, 50);
    let before_the_cut = rig.world.now;
    rig.world.now += Span::from_secs(4);
    rig.lose(0);
    lose_a_quarter(&mut rig, 300, Some(before_the_cut));
    assert!(!tests_the_rate(&mut rig));
}

#[test]
fn outage_restarts_the_loss_count_with_later_transmissions() {
    for (silent, begins) in [(true, false), (false, true)] {
        let mut rig = Rig::delay_mode(ALL, 1);
        rig.world.paths[0].in_flight = bytes(M);
        lose_a_quarter(&mut rig, 100, None);
        let before = rig.world.now;
        // Shorter than the silence that shows an outage of its own.
        rig.world.now += Span::from_millis(400);
        if silent {
            rig.dispatch(&Event::LossEvent { path: path(0), cause: LossCause::Timeout });
        }
        lose_a_quarter(&mut rig, 60, Some(before));
        assert_eq!(tests_the_rate(&mut rig), begins);
    }
}

/// Runs a round trip beside an empty queue, in which these numbers of packets arrive and are lost.
fn lossy_round(rig: &mut Rig, arrive: u64, lost: u64) {
    let sent_at = rig.world.now;
    rig.world.now = sent_at + Span::from_millis(100);
    rig.world.paths[0].estimates.propagation = Some(Span::from_millis(100));
    for _ in 0..lost {
        let cause = LossCause::FastRetransmit;
        rig.dispatch(&Event::Lost { path: path(0), tsn: 9, bytes: bytes(M), sent_at, cause });
    }
    for _ in 0..arrive {
        let acked = acked(0, bytes(M), sent_at);
        rig.dispatch(&Event::Acked(&acked));
    }
    deliver(rig, bytes(arrive * M));
}

#[test]
fn losses_in_place_of_deliveries_end_slow_start_at_a_short_queue() {
    for (lost, ends) in [(0, false), (8, false), (70, true)] {
        let mut rig = Rig::new(ALL, 1);
        for arrive in [20, 40, 70, 70, 70] {
            lossy_round(&mut rig, arrive, if arrive == 70 { lost } else { 0 });
        }
        let in_slow_start =
            |rig: &mut Rig| rig.control.path(path(0)).is_some_and(|own| own.mode == Mode::SlowStart);
        assert!(in_slow_start(&mut rig), "{lost} lost for two round trips");
        lossy_round(&mut rig, 70, lost);
        assert_eq!(!in_slow_start(&mut rig), ends, "{lost} lost");
    }
}
