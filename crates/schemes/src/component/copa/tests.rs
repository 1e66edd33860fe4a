//! Tests on a path with given round-trip times.

use super::*;
use crate::testing::{M, World, bytes, path};
use anabranch_core::policy::{AckedTransmission, Limiter, PathAck, SendStamps};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};

struct Rig {
    world: World,
    control: CopaControl,
}

impl Rig {
    /// Creates a path of 100 ms with this window in chunks, after slow start.
    fn steady(chunks: u64, settings: Settings) -> Self {
        let mut rig = Rig::new(settings);
        rig.round(100);
        // Queueing delay ends slow start. Then the window equals the threshold.
        while rig.control.window(path(0)).ssthresh != rig.control.window(path(0)).cwnd {
            rig.round(200);
        }
        let window = Window { cwnd: bytes(chunks * M), ..Window::default() };
        rig.control.set_window(path(0), window, Reason::rule("set"), &rig.world.view());
        rig
    }

    fn new(settings: Settings) -> Self {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
        world.paths[0].limiter = Limiter::Window;
        let mut control = CopaControl { settings, paths: [None; MAX_PATHS] };
        world.dispatch(&mut control, &Event::PathAdded(path(0)));
        Rig { world, control }
    }

    fn chunks(&self) -> f64 {
        self.control.window(path(0)).cwnd.get() as f64 / M as f64
    }

    /// Advances by one round trip and acknowledges a window that was sent `rtt_ms` milliseconds ago.
    fn round(&mut self, rtt_ms: u64) {
        self.world.now += Span::from_millis(100);
        let sent_at = Time::from_nanos(self.world.now.as_nanos() - rtt_ms * 1_000_000);
        let acked = AckedTransmission {
            path: path(0),
            tsn: 7,
            bytes: bytes(M),
            stamps: SendStamps { sent_at, ..SendStamps::default() },
            sent_once: true,
            certain: true,
            cumulative: true,
            sack_path: Some(path(0)),
        };
        self.world.dispatch(&mut self.control, &Event::Acked(&acked));
        let cumulative = self.control.window(path(0)).cwnd;
        let ack = PathAck { cumulative, in_flight_before: cumulative, ..PathAck::default() };
        let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
        self.world.dispatch(&mut self.control, &Event::SackDone(&done));
    }

    fn lose(&mut self, cause: LossCause) {
        self.world.dispatch(&mut self.control, &Event::LossEvent { path: path(0), cause });
    }
}

const DEFAULT: Settings = Settings { delta: 0.5, competes: true };
const ALONE: Settings = Settings { delta: 0.5, competes: false };

#[test]
fn slow_start_doubles_the_window_until_the_rate_is_above_its_target() {
    let mut rig = Rig::new(DEFAULT);
    let first = rig.chunks();
    rig.round(100);
    rig.round(100);
    assert_eq!(rig.chunks(), 4.0 * first);
    // With 4 n chunks, 100 ms of queueing delay and 200 ms: lambda > 10 per second; the target is 20 for n = 1.
    rig.round(200);
    let reached = rig.chunks();
    rig.round(200);
    assert!(rig.chunks() <= reached, "{} chunks", rig.chunks());
}

#[test]
fn a_window_settles_where_one_over_delta_packets_queue() {
    // 0.5 s^-1 * 20 ms: 100 packets per second, which equals 12 chunks in 120 ms.
    for (chunks, grows) in [(11, true), (13, false)] {
        let mut rig = Rig::steady(chunks, ALONE);
        rig.world.now += Span::from_millis(100);
        rig.round(120);
        assert_eq!(rig.chunks() > chunks as f64, grows, "{chunks} chunks");
    }
    // With a delta of a tenth, five times as many packets are queued.
    let mut rig = Rig::steady(13, Settings { delta: 0.1, competes: false });
    rig.round(120);
    assert!(rig.chunks() > 13.0);
}

#[test]
fn one_window_of_acknowledgements_moves_it_by_one_over_delta() {
    let mut rig = Rig::steady(40, ALONE);
    rig.round(200);
    assert_eq!(rig.chunks().round(), 38.0);
}

#[test]
fn copa_paces_at_twice_its_rate() {
    let mut rig = Rig::steady(40, ALONE);
    rig.round(200);
    let kbps = rig.control.pacing(path(0)).rate.map_or(0, |rate| rate.as_bps() / 1_000);
    // 38 chunks in 200 ms, twice.
    assert_eq!(kbps, 2 * 38 * M * 8 / 200);
}

#[test]
fn only_t3_is_a_loss_that_cuts_a_window() {
    let mut rig = Rig::steady(40, DEFAULT);
    for cause in [LossCause::FastRetransmit, LossCause::Rescheduled] {
        rig.lose(cause);
        assert_eq!(rig.chunks(), 40.0);
    }
    rig.lose(LossCause::Timeout);
    assert_eq!(rig.chunks(), 1.0);
    rig.world.now += Span::from_secs(1);
    (0..3).for_each(|_| rig.round(100));
    assert!(rig.chunks() >= 8.0, "slow start: {}", rig.chunks());
}

#[test]
fn queue_filled_by_competitors_is_filled_too() {
    let run = |settings| {
        let mut rig = Rig::steady(40, settings);
        for round in 0..40 {
            rig.round(if round % 2 == 0 { 200 } else { 240 });
        }
        rig.chunks()
    };
    let (competing, alone) = (run(DEFAULT), run(ALONE));
    assert!(competing > 2.0 * alone, "{competing} and {alone} chunks");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut rig = Rig::new(DEFAULT);
    rig.round(100);
    let first = rig.chunks();
    rig.world.paths[0].limiter = Limiter::Application;
    for _ in 0..5 {
        rig.world.now += Span::from_millis(100);
        let ack = PathAck { cumulative: bytes(M), in_flight_before: bytes(M), ..PathAck::default() };
        let done = SackDone { paths: &[ack], new_cumulative: true, cumulative: 9 };
        rig.world.dispatch(&mut rig.control, &Event::SackDone(&done));
    }
    assert_eq!(rig.chunks(), first);
}
