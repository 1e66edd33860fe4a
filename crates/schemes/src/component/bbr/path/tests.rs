//! Tests on a path of 8 Mbit/s and 40 ms, with acknowledgements once per round trip.

use anabranch_core::policy::{
    CongestionControl, DeliverySample, Event, Limiter, LossCause, PathAck, Reason, SackDone, SendStamps,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;

use crate::component::bbr::control::BbrControl;
use crate::testing::{M, World, bytes, path};

/// Bandwidth-delay product in bytes: 8 Mbit/s for 40 ms.
const BDP: u64 = 40_000;

struct Rig {
    world: World,
    control: BbrControl,
    rtt: Span,
    kbps: u64,
    limiter: Limiter,
    tsn: u64,
}

impl Rig {
    fn new() -> Self {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(40));
        let mut control = BbrControl::default();
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        Rig { world, control, rtt: Span::from_millis(40), kbps: 8_000, limiter: Limiter::Window, tsn: 1 }
    }

    /// Returns a control that has found the path full and drains its queue.
    fn in_drain() -> Self {
        let mut rig = Rig::new();
        while rig.state() != "Drain (BBR)" {
            rig.round();
        }
        rig
    }

    fn in_cruise() -> Self {
        let mut rig = Rig::in_drain();
        rig.round_with(BDP / 2);
        rig.round_with(BDP / 2);
        assert_eq!(rig.state(), "ProbeBW_CRUISE (BBR)");
        rig
    }

    fn in_up() -> Self {
        let mut rig = Rig::in_cruise();
        while rig.state() != "ProbeBW_UP (BBR)" {
            rig.round();
        }
        rig
    }

    fn state(&self) -> &'static str {
        self.control.last_reason(path(0)).rule
    }

    fn cwnd(&self) -> u64 {
        self.control.window(path(0)).cwnd.get()
    }

    fn rate_kbps(&self) -> u64 {
        self.control.pacing(path(0)).rate.map_or(0, |rate| rate.as_bps() / 1_000)
    }

    /// Runs a round trip with a full window in flight.
    fn round(&mut self) {
        self.round_with(self.cwnd());
    }

    /// Runs a round trip in which the data in flight is acknowledged and `in_flight` bytes are sent.
    fn round_with(&mut self, in_flight: u64) {
        self.world.now += self.rtt;
        let facts = &mut self.world.paths[0];
        let delivered_before = facts.delivered;
        let acked = self.kbps * 1_000 / 8 * self.rtt.as_nanos() / 1_000_000_000;
        facts.delivered += bytes(acked);
        facts.limiter = self.limiter;
        let stamps = SendStamps {
            sent_at: Time::from_nanos(self.world.now.as_nanos() - self.rtt.as_nanos()),
            delivered: delivered_before,
            in_flight: bytes(in_flight),
            limiter: self.limiter,
            ..SendStamps::default()
        };
        let sample = DeliverySample {
            stamps,
            delivered: bytes(acked),
            send_elapsed: self.rtt,
            ack_elapsed: self.rtt,
            lost: ChunkBytes::ZERO,
            rtt: Some(self.rtt),
            rate: Some(Rate::from_bps(self.kbps * 1_000)),
        };
        facts.delivery = Some(sample);
        let ack = PathAck {
            cumulative: bytes(acked),
            in_flight_before: bytes(in_flight),
            in_flight_after: bytes(in_flight),
            sample: Some(sample),
            ..PathAck::default()
        };
        let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
        self.world.dispatch(&mut self.control, &Event::SackDone(&done));
    }

    /// Loses chunks that were sent with `in_flight` bytes in flight.
    fn lose(&mut self, chunks: u64, in_flight: u64, cause: LossCause) {
        let lost_before = self.world.paths[0].lost;
        for _ in 0..chunks {
            let facts = &mut self.world.paths[0];
            facts.lost += bytes(M);
            let limiter = self.limiter;
            let stamps = SendStamps {
                in_flight: bytes(in_flight),
                lost: lost_before,
                limiter,
                ..SendStamps::default()
            };
            facts.latest_loss = Some(stamps);
            self.tsn += 1;
            let lost =
                Event::Lost { path: path(0), tsn: self.tsn, bytes: bytes(M), sent_at: stamps.sent_at, cause };
            self.world.dispatch(&mut self.control, &lost);
        }
    }
}

#[test]
fn startup_ends_after_three_flat_rounds_and_drain_at_empty_queue() {
    let mut rig = Rig::new();
    rig.kbps = 2_000;
    rig.round();
    let first = rig.rate_kbps();
    for kbps in [4_000, 8_000, 8_000, 8_000] {
        rig.kbps = kbps;
        rig.round();
        assert_eq!(rig.state(), "Startup (BBR)");
    }
    assert_eq!((first, rig.rate_kbps()), (2_000 * 277 * 99 / 10_000, 8_000 * 277 * 99 / 10_000));
    rig.round();
    assert_eq!((rig.state(), rig.rate_kbps()), ("Drain (BBR)", 8_000 * 99 / 200));
    rig.round_with(BDP + M);
    assert_eq!(rig.state(), "Drain (BBR)");
    rig.round_with(BDP);
    // DOWN has nothing to drain and ends at once.
    assert_eq!((rig.state(), rig.rate_kbps()), ("ProbeBW_CRUISE (BBR)", 8_000 * 99 / 100));
}

#[test]
fn drain_ends_after_three_rounds_with_any_flight() {
    let mut rig = Rig::in_drain();
    for _ in 0..3 {
        rig.round_with(3 * BDP);
        assert_eq!(rig.state(), "Drain (BBR)");
    }
    rig.round_with(3 * BDP);
    assert_eq!(rig.state(), "ProbeBW_DOWN (BBR)");
}

#[test]
fn application_limited_path_stays_in_startup_and_peer_limited_leaves() {
    for (limiter, state) in [
        (Limiter::Application, "Startup (BBR)"),
        (Limiter::Scheduler, "Startup (BBR)"),
        (Limiter::PeerWindow, "Drain (BBR)"),
    ] {
        let mut rig = Rig::new();
        rig.limiter = limiter;
        (0..4).for_each(|_| rig.round());
        assert_eq!(rig.state(), state, "{limiter:?}");
    }
}

#[test]
fn window_is_two_bdp_plus_the_aggregated_acknowledgements() {
    let mut rig = Rig::in_cruise();
    for _ in 0..10 {
        rig.round_with(BDP);
    }
    // Acknowledgements arrive once per round trip, which adds another bandwidth-delay product beside the margin.
    assert_eq!(rig.state(), "ProbeBW_CRUISE (BBR)");
    assert!((2 * BDP..=3 * BDP).contains(&rig.cwnd()), "{}", rig.cwnd());
}

#[test]
fn probe_starts_within_rounds_of_half_a_standard_window_growth() {
    // The product is 27 chunks; the count begins with 0 or 1.
    let mut rig = Rig::in_cruise();
    let mut rounds = 1;
    while rig.state() == "ProbeBW_CRUISE (BBR)" {
        rig.round_with(BDP);
        rounds += 1;
    }
    assert_eq!(rig.state(), "ProbeBW_REFILL (BBR)");
    assert!((BDP / M - 1..=BDP / M).contains(&rounds), "{rounds}");
    rig.round();
    assert_eq!((rig.state(), rig.rate_kbps()), ("ProbeBW_UP (BBR)", 8_000 * 125 * 99 / 10_000));
}

#[test]
fn probe_ends_after_three_flat_rounds_and_continues_with_growth() {
    let mut rig = Rig::in_up();
    for _ in 0..2 {
        rig.round();
        assert_eq!(rig.state(), "ProbeBW_UP (BBR)");
    }
    rig.kbps = 10_000;
    rig.round();
    rig.kbps = 12_500;
    for _ in 0..3 {
        rig.round();
        assert_eq!(rig.state(), "ProbeBW_UP (BBR)");
    }
    rig.round();
    assert_eq!((rig.state(), rig.rate_kbps()), ("ProbeBW_DOWN (BBR)", 12_500 * 9 * 99 / 1_000));
}

#[test]
fn probe_with_more_than_two_percent_loss_ends_and_bounds_the_flight() {
    let mut within = Rig::in_up();
    within.lose(1, 100 * M, LossCause::FastRetransmit);
    within.round();
    assert_eq!(within.state(), "ProbeBW_UP (BBR)");
    let mut beyond = Rig::in_up();
    beyond.lose(1, 49 * M, LossCause::FastRetransmit);
    beyond.round_with(45 * M);
    assert_eq!(beyond.state(), "ProbeBW_DOWN (BBR)");
    // Data in flight when losses reached 2 % of it: nearly all of the 49 chunks.
    assert!((48 * M..=49 * M).contains(&beyond.cwnd()), "{}", beyond.cwnd());
}

#[test]
fn probe_after_a_lossy_one_ends_at_the_bound_and_another_follows() {
    let mut rig = Rig::in_up();
    rig.lose(3, 49 * M, LossCause::FastRetransmit);
    rig.round_with(BDP / 2);
    let mut states = vec![rig.state()];
    for _ in 0..60 {
        rig.round_with(rig.cwnd().min(BDP * 9 / 10));
        if states.last() != Some(&rig.state()) {
            states.push(rig.state());
        }
        if rig.state() == "ProbeBW_UP (BBR)" {
            rig.round_with(60 * M);
            states.push(rig.state());
        }
    }
    let cycle = ["ProbeBW_CRUISE (BBR)", "ProbeBW_REFILL (BBR)", "ProbeBW_UP (BBR)"];
    assert_eq!(states[..3], cycle);
    // It enters DOWN at once, and REFILL without CRUISE, because no loss is reported.
    assert_eq!(states[3..5], ["ProbeBW_DOWN (BBR)", "ProbeBW_REFILL (BBR)"]);
}

#[test]
fn a_round_with_losses_bounds_rate_and_volume_until_the_next_probe() {
    let mut rig = Rig::in_cruise();
    rig.kbps = 4_000;
    rig.round_with(BDP);
    rig.lose(1, BDP, LossCause::FastRetransmit);
    rig.round_with(BDP);
    // The round delivered at 4 Mbit/s; the bound falls to 0.7 of 8 and no further.
    assert_eq!(rig.rate_kbps(), 8_000 * 7 * 99 / 1_000);
    while rig.state() == "ProbeBW_CRUISE (BBR)" {
        rig.round_with(BDP / 2);
    }
    assert_eq!(rig.rate_kbps(), 8_000 * 99 / 100, "{}", rig.state());
}

#[test]
fn path_without_new_min_rtt_for_five_seconds_is_drained() {
    let mut rig = Rig::in_cruise();
    rig.rtt = Span::from_millis(50);
    let mut probed = Vec::new();
    for _ in 0..140 {
        rig.round_with(rig.cwnd().min(BDP));
        if rig.state() == "ProbeRTT (BBR)" {
            probed.push((rig.world.now, rig.cwnd()));
        }
    }
    let (first, last) = (probed.first().expect("a probe"), probed.last().expect("a probe"));
    assert!(probed.iter().all(|(_, cwnd)| *cwnd <= BDP / 2), "{probed:?}");
    let took = last.0.since(first.0);
    assert!(Span::from_millis(200) <= took && took <= Span::from_millis(300), "{took:?}");
    assert!(rig.cwnd() >= BDP, "the window is what it was: {}", rig.cwnd());
}

#[test]
fn t3_leaves_one_chunk_until_all_losses_are_repaired() {
    let mut rig = Rig::in_cruise();
    let before = rig.cwnd();
    rig.world.dispatch(&mut rig.control, &Event::LossEvent { path: path(0), cause: LossCause::Timeout });
    assert_eq!((rig.cwnd(), rig.control.last_reason(path(0))), (M, Reason::rule("T3 expired")));
    rig.world.paths[0].lost_unsent = bytes(M);
    rig.round_with(M);
    assert!(rig.cwnd() < before);
    rig.world.paths[0].lost_unsent = ChunkBytes::ZERO;
    rig.round_with(M);
    assert!(rig.cwnd() >= before.min(2 * BDP), "{} of {before}", rig.cwnd());
}

#[test]
fn a_recovery_whose_chunks_all_arrive_after_all_is_undone() {
    let mut rig = Rig::in_up();
    rig.lose(2, 49 * M, LossCause::FastRetransmit);
    let bounded = rig.cwnd();
    rig.world
        .dispatch(&mut rig.control, &Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
    let arrive = |rig: &mut Rig, tsn| {
        let event = Event::Spurious { path: path(0), misjudged: path(0), tsn };
        rig.world.dispatch(&mut rig.control, &event);
    };
    arrive(&mut rig, 2);
    rig.round();
    assert_eq!(rig.state(), "ProbeBW_DOWN (BBR)", "one of the two is lost");
    arrive(&mut rig, 3);
    rig.round();
    assert!(rig.state() == "ProbeBW_UP (BBR)" || rig.state() == "ProbeBW_REFILL (BBR)", "{}", rig.state());
    assert!(rig.cwnd() >= bounded);
}

#[test]
fn a_chunk_that_was_moved_to_another_path_is_no_loss() {
    let mut rig = Rig::in_up();
    rig.lose(5, 20 * M, LossCause::Rescheduled);
    rig.world.dispatch(&mut rig.control, &Event::LossEvent { path: path(0), cause: LossCause::Rescheduled });
    rig.round();
    assert_eq!(rig.state(), "ProbeBW_UP (BBR)");
}
