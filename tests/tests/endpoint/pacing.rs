//! Paced paths: first transmissions and retransmissions are sent at the rate of congestion control, and no packet waits without end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_core::PathId;
use anabranch_core::policy::{Pacing, Pick, Refusal, View, WaitFor};
use anabranch_core::profile::InitialWindow;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Link, Side};
use anabranch_tests::sight;
use anabranch_tests::steered::{Heard, Log, Steered, path};
use proptest::prelude::*;

const A: usize = Side::A as usize;

/// User bytes that fill a chunk.
const FULL: usize = 1_452;
const CHUNK: u64 = 1_468;

fn at_kbps(kbps: u64) -> Pacing {
    Pacing { rate: Some(Rate::from_bps(kbps * 1_000)), in_flight_cap: None }
}

/// Returns the transmission time of a full chunk at a rate, rounded down to nanoseconds.
fn spacing(kbps: u64) -> Span {
    Rate::from_bps(kbps * 1_000).serialise(CHUNK, 0).0
}

/// Returns a pair connected over paths of this delay. The first side has this pacing and this initial window in packets.
fn paced(
    paths: usize,
    delay_ms: u64,
    window: u64,
    steer: impl FnOnce(Steered) -> Steered,
    pace: impl Fn(PathId) -> Pacing + Send + Sync + 'static,
) -> (Duo, Log) {
    let scheme = steer(Steered::new("cmt(sack-every=1)").pace(pace));
    let log = scheme.log.clone();
    let target = ChunkBytes::new(window * CHUNK);
    let mut setup = Setup::new(paths, "cmt(sack-every=1)", "rfc9260")
        .with(|config| {
            config.profile.initial_window = InitialWindow { chunks: window, target, target_ipv6: target };
            config.recv_buffer_bytes = 1 << 22;
        })
        .with_side(Side::A, |config| config.scheme = Arc::new(scheme));
    setup.link = Link::good(Span::from_millis(delay_ms));
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(10));
    duo.kept = Some(Vec::new());
    log.take();
    (duo, log)
}

/// Returns the times of packets with DATA on a path, with their numbers of chunks.
fn departures(duo: &Duo, path: usize) -> Vec<(Time, u64)> {
    let to = duo.setup.address(Side::B, path);
    let packets = duo.kept.iter().flatten().filter(|(_, packet)| packet.destination == to);
    let chunks = packets.map(|(at, packet)| (*at, sight::tsns(packet).len() as u64));
    chunks.filter(|&(_, chunks)| chunks > 0).collect()
}

fn spans(departures: &[(Time, u64)]) -> Vec<Span> {
    departures.windows(2).map(|pair| pair[1].0.since(pair[0].0)).collect()
}

#[test]
fn paced_packets_are_sent_at_the_rate_without_a_new_opportunity() {
    // No SACK returns before the last packet has left.
    let (mut duo, log) = paced(1, 500, 30, |scheme| scheme, |_| at_kbps(1_000));
    duo.send_all(Side::A, FULL, 30);
    duo.run(Span::from_millis(900));
    let left = departures(&duo, 0);
    assert_eq!(left.len(), 30);
    assert!(spans(&left).iter().all(|&span| span.abs_diff(spacing(1_000)) <= Span::from_nanos(1)));
    let opportunities = log.take().iter().filter(|heard| **heard == Heard::Opportunity).count();
    assert_eq!(opportunities, 1, "the one that the application opened");
    duo.run(Span::from_secs(10));
    assert!(duo.all_arrived(Side::A));
}

#[test]
fn retransmissions_are_paced_too() {
    let (mut duo, _) = paced(1, 20, 30, |scheme| scheme, |_| at_kbps(1_000));
    duo.cut(0, true);
    duo.send_all(Side::A, FULL, 30);
    duo.run(Span::from_millis(400));
    duo.cut(0, false);
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)));
    let statistics = duo.nodes[A].association().statistics();
    assert!(statistics.retransmissions >= 30 && statistics.overruled_picks == 0, "{statistics:?}");
    let least = spacing(1_000) - Span::from_nanos(1);
    assert!(spans(&departures(&duo, 0)).iter().all(|&span| span >= least));
}

#[test]
fn scheduler_sees_a_paced_path_as_refused_and_may_wait_for_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let pick = move |view: &View<'_>| {
        let refusal = view.refusal(path(0));
        note.lock().expect("nobody panicked").push((refusal, view.now, view.path(path(0)).paced_until));
        if refusal.is_none() { Pick::Path(path(0)) } else { Pick::Wait(WaitFor::Window) }
    };
    let (mut duo, _) = paced(2, 20, 4, |scheme| scheme.pick(pick), |_| at_kbps(100));
    duo.send_all(Side::A, FULL, 3);
    // Each is acknowledged long before the next one may be sent.
    duo.run(Span::from_millis(400));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(duo.nodes[A].association().statistics().overruled_picks, 0);
    let seen = seen.lock().expect("nobody panicked");
    assert!(seen.iter().any(|(refusal, ..)| *refusal == Some(Refusal::Paced)));
    for (refusal, now, until) in seen.iter() {
        match refusal {
            Some(Refusal::Paced) => assert!(until.is_some_and(|until| until > *now)),
            _ => assert_eq!((*refusal, *until), (None, None)),
        }
    }
}

#[test]
fn a_slow_path_holds_up_neither_new_data_nor_repairs_of_a_fast_one() {
    let pace = |id: PathId| if id == path(0) { at_kbps(24) } else { at_kbps(10_000) };
    let steer =
        |scheme: Steered| scheme.route(|lost, _| anabranch_core::policy::RetransmitChoice::Path(lost.path));
    let (mut duo, _) = paced(2, 20, 40, steer, pace);
    (0..2).for_each(|pair| duo.cut(pair, true));
    duo.send_all(Side::A, FULL, 40);
    duo.run(Span::from_millis(500));
    (0..2).for_each(|pair| duo.cut(pair, false));
    duo.run(Span::from_secs(2));
    let slow = departures(&duo, 0);
    let fast = departures(&duo, 1);
    assert!(slow.len() <= 6, "half a second each: {}", slow.len());
    assert!(fast.len() >= 60, "{} on the fast path, which lost what it carried first", fast.len());
    assert!(duo.run_until(Span::from_secs(120), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn a_cap_limits_what_is_in_flight_beside_the_window() {
    let cap = Some(ChunkBytes::new(3 * CHUNK));
    let most = Arc::new(AtomicUsize::new(0));
    let note = Arc::clone(&most);
    let pick = move |view: &View<'_>| {
        let facts = view.path(path(0));
        note.fetch_max((facts.in_flight.get() / CHUNK) as usize, Ordering::Relaxed);
        assert!(facts.in_flight < facts.cwnd, "the window has room");
        match view.refusal(path(0)) {
            None => Pick::Path(path(0)),
            why => {
                assert_eq!(why, Some(Refusal::InFlightCap));
                Pick::Wait(WaitFor::Window)
            }
        }
    };
    let steer = |scheme: Steered| scheme.pick(pick);
    let (mut duo, _) = paced(1, 20, 30, steer, move |_| Pacing { rate: None, in_flight_cap: cap });
    duo.send_all(Side::A, FULL, 20);
    duo.run(Span::from_secs(2));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(most.load(Ordering::Relaxed), 3);
}

#[test]
fn rate_or_cap_of_zero_does_not_stop_data() {
    let nothing = Pacing { rate: Some(Rate::from_bps(0)), in_flight_cap: Some(ChunkBytes::ZERO) };
    let (mut duo, _) = paced(2, 20, 4, |scheme| scheme, move |_| nothing);
    duo.send_all(Side::A, FULL, 6);
    // RTO.Max, 60 s, for each packet on each path.
    duo.run(Span::from_secs(200));
    assert!(duo.all_arrived(Side::A));
    let left = departures(&duo, 0);
    assert!(spans(&left).iter().all(|&span| span >= Span::from_secs(59)), "{left:?}");
}

/// The lost timer costs only time, and the burst afterwards is one packet.
#[test]
fn exact_timer_allows_no_burst_after_a_late_call() {
    let (mut duo, _) = paced(1, 500, 10, |scheme| scheme, |_| at_kbps(1_000));
    duo.send_all(Side::A, FULL, 10);
    duo.oversleep(Span::from_millis(100));
    duo.settle();
    assert_eq!(departures(&duo, 0).len(), 2);
    duo.run(Span::from_secs(20));
    assert!(duo.all_arrived(Side::A));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any losses and any precision of the driver's timer, each interval of a path carries at most its rate and one burst.
    /// Everything arrives, and the same calls lead to the same packets.
    #[test]
    fn path_keeps_its_rate_under_any_losses(
        kbps in [50_u64..20_000, 50..20_000],
        loss in [0_u32..150, 0..150],
        timer_us in prop_oneof![Just(0_u64), 0..3_000_u64],
        seed in 0..1_000_u64,
    ) {
        let run = || {
            let pace = move |id: PathId| at_kbps(kbps[id.index()]);
            let scheme = Arc::new(Steered::new("cmt+rack").pace(pace));
            let mut setup = Setup::new(2, "cmt", "rfc9260").with_side(Side::A, |config| {
                config.scheme = scheme;
                config.profile.pacing_timer = Span::from_micros(timer_us);
            });
            setup.seed = seed;
            let mut duo = Duo::connected(setup);
            duo.kept = Some(Vec::new());
            for (pair, loss) in loss.into_iter().enumerate() {
                duo.link(pair).loss = loss;
            }
            duo.send_all(Side::A, FULL, 150);
            assert!(duo.run_until(Span::from_secs(600), |duo| duo.all_arrived(Side::A)));
            duo
        };
        let duo = run();
        prop_assert_eq!(duo.hash, run().hash);
        for (index, kbps) in kbps.into_iter().enumerate() {
            let left = departures(&duo, index);
            let burst = CHUNK as f64 + kbps as f64 * timer_us as f64 / 8e3;
            for (at, &(from, _)) in left.iter().enumerate() {
                let mut bytes = 0;
                for &(to, chunks) in &left[at..] {
                    bytes += chunks * CHUNK;
                    let most = to.since(from).as_secs_f64() * kbps as f64 * 125.0 + burst + 2.0;
                    prop_assert!(bytes as f64 <= most, "path {}: {} B of {} B", index, bytes, most);
                }
            }
        }
    }
}
