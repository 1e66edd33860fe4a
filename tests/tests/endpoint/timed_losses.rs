//! Losses detected by time: a loss policy's own deadline, tail loss probes, and RACK.

use std::sync::Arc;

use anabranch_core::policy::{Holes, LossTasks};
use anabranch_core::time::Span;
use anabranch_core::{PathSet, policy::PathFacts};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_tests::steered::{Alarm, Heard, Log, Steered, path, paths};

const A: usize = Side::A as usize;

/// User bytes that fill a chunk.
const FULL: usize = 1_452;
const CHUNK: u64 = 1_468;
const FIRST: u64 = (1 << 32) + 1_000;

fn millis(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Returns a pair with two paths of 25 ms. No report declares a chunk lost; TSN 1001 is overdue at each alarm of the loss policy.
fn steered() -> (Duo, Log, Alarm) {
    let scheme = Steered::new("cmt(trigger=100)").overdue(|chunk, _| chunk.tsn == FIRST + 1);
    let (log, alarm) = (scheme.log.clone(), scheme.alarm.clone());
    let setup = Setup::new(2, "cmt(sack-every=1)", "rfc9260")
        .with(|config| config.initial_tsn = Some(1_000))
        .with_side(Side::A, |config| {
            config.scheme = Arc::new(scheme);
            // The alarm is set between events.
            config.ignores_declarations = true;
        });
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(1));
    assert!(duo.nodes[A].association().paths().iter().all(PathFacts::is_active));
    duo.kept = Some(Vec::new());
    log.take();
    (duo, log, alarm)
}

fn recheck() -> LossTasks {
    LossTasks { recheck: Some(Holes::All), ..LossTasks::default() }
}

/// Loses this number of transmissions of a TSN.
fn lose(tsn: u32, mut times: u32) -> impl FnMut(&Packet) -> bool {
    move |packet| {
        let hit = times > 0 && sight::tsns(packet).contains(&tsn);
        times -= u32::from(hit);
        !hit
    }
}

fn times_sent(duo: &Duo, tsn: u32) -> usize {
    let sent = duo.kept.iter().flatten().flat_map(|(_, packet)| sight::tsns(packet));
    sent.filter(|&other| other == tsn).count()
}

fn timeouts(duo: &Duo) -> u64 {
    duo.nodes[A].association().statistics().timeouts
}

#[test]
fn recheck_marks_and_retransmits_overdue_chunks() {
    let (mut duo, log, alarm) = steered();
    duo.network.set_filter(lose(1_001, 1));
    duo.send_all(Side::A, FULL, 6);
    alarm.set(duo.now + millis(100), recheck());
    duo.refresh_deadlines(Side::A);
    duo.run(millis(99));
    assert_eq!(times_sent(&duo, 1_001), 1);
    duo.run(millis(1));
    assert_eq!(times_sent(&duo, 1_001), 2);
    let heard = log.take();
    let lost: Vec<_> = heard.iter().filter(|h| matches!(h, Heard::Lost(..) | Heard::Cut(_))).collect();
    assert!(matches!(lost[..], [Heard::Lost(_, tsn), Heard::Cut(_)] if *tsn == FIRST + 1), "{lost:?}");
    duo.run(millis(51));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(timeouts(&duo), 0);
}

#[test]
fn a_recheck_asks_about_every_chunk_in_flight() {
    let (mut duo, log, alarm) = steered();
    duo.network.set_filter(lose(1_001, 1));
    // No chunk with a higher TSN has arrived.
    duo.send_all(Side::A, FULL, 2);
    alarm.set(duo.now + millis(100), recheck());
    duo.refresh_deadlines(Side::A);
    duo.run(millis(200));
    assert_eq!((times_sent(&duo, 1_001), timeouts(&duo)), (2, 0));
    assert!(log.take().iter().any(|h| matches!(h, Heard::Lost(..))));
    assert!(duo.all_arrived(Side::A));
}

#[test]
fn a_tail_probe_sends_the_latest_chunk_of_each_path_it_is_asked_for() {
    for asked in [paths([0]), paths([1]), paths([0, 1])] {
        let (mut duo, _, alarm) = steered();
        let blocked = [0, 1].map(|pair| duo.setup.address(Side::B, pair));
        duo.network.set_filter(move |packet| !blocked.contains(&packet.destination));
        duo.send_all(Side::A, FULL, 6);
        let latest = [0, 1].map(|pair| {
            let to = duo.setup.address(Side::B, pair);
            let packets = duo.kept.iter().flatten().filter(|(_, packet)| packet.destination == to);
            packets.flat_map(|(_, packet)| sight::tsns(packet)).max().expect("both paths carry data")
        });
        alarm.set(duo.now + millis(300), LossTasks { probes: asked, ..LossTasks::default() });
        duo.refresh_deadlines(Side::A);
        duo.run(millis(310));
        for index in [0, 1] {
            let times = 1 + usize::from(asked.contains(path(index)));
            assert_eq!(times_sent(&duo, latest[index]), times, "path {index} of {asked:?}");
            let in_flight = duo.nodes[A].association().paths()[index].in_flight.get();
            assert_eq!(in_flight, (2 + times as u64) * CHUNK, "its window counts the probe: path {index}");
        }
        assert_eq!(duo.nodes[A].association().statistics().tail_probes, asked.len() as u64);
        // T3 counts from the probe, and from the last of the data elsewhere.
        let first = if asked == paths([0, 1]) { 1_300 } else { 1_000 };
        duo.run(millis(first - 310 - 1));
        assert_eq!(timeouts(&duo), 0, "{asked:?}");
        duo.run(millis(2));
        assert!(timeouts(&duo) > 0, "{asked:?}");
        duo.network.clear_filter();
        assert!(duo.run_until(Span::from_secs(120), |duo| duo.all_arrived(Side::A)));
    }
}

#[test]
fn repeated_probe_does_not_postpone_t3() {
    for (repeated, expiry) in [(PathSet::EMPTY, 1_800), (paths([0]), 1_300)] {
        let (mut duo, _, alarm) = steered();
        let blocked = duo.setup.address(Side::B, 0);
        duo.network.set_filter(move |packet| packet.destination != blocked);
        duo.send_all(Side::A, FULL, 6);
        alarm.set(duo.now + millis(300), LossTasks { probes: paths([0]), ..LossTasks::default() });
        duo.refresh_deadlines(Side::A);
        duo.run(millis(400));
        alarm.set(duo.now + millis(400), LossTasks { probes: paths([0]), repeated, ..LossTasks::default() });
        duo.refresh_deadlines(Side::A);
        duo.run(millis(expiry - 400 - 1));
        assert_eq!(duo.nodes[A].association().statistics().tail_probes, 2);
        assert_eq!(timeouts(&duo), 0, "{repeated:?}");
        duo.run(millis(2));
        assert_eq!(timeouts(&duo), 1, "{repeated:?}");
    }
}

#[test]
fn a_tail_probe_that_is_acknowledged_once_leaves_no_copy_in_flight() {
    let (mut duo, _, alarm) = steered();
    duo.network.set_filter(lose(1_002, 1));
    duo.send_all(Side::A, FULL, 3);
    alarm.set(duo.now + millis(100), LossTasks { probes: paths([0, 1]), ..LossTasks::default() });
    duo.refresh_deadlines(Side::A);
    assert!(duo.run_until(millis(200), |duo| duo.all_arrived(Side::A)));
    duo.run(millis(200));
    let in_flight = duo.nodes[A].association().paths().iter().map(|path| path.in_flight.get());
    assert_eq!(in_flight.sum::<u64>(), 0);
    assert_eq!(timeouts(&duo), 0);
}

/// Returns the duration and the number of time-outs of a transfer that loses this number of transmissions of one TSN.
fn transfer(scheme: &str, messages: usize, lost: u32, times: u32) -> (Span, u64) {
    let setup = Setup::new(1, scheme, "rfc9260").with(|config| config.initial_tsn = Some(1_000));
    let mut duo = Duo::connected(setup);
    // A first exchange measures the round trip.
    duo.send_all(Side::A, FULL, 20);
    duo.run(Span::from_secs(2));
    assert!(duo.all_arrived(Side::A));
    let start = duo.now;
    duo.network.set_filter(lose(lost, times));
    duo.send_all(Side::A, FULL, messages);
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)));
    (duo.now.since(start), timeouts(&duo))
}

#[test]
fn a_probe_beside_a_hole_is_the_latest_chunk_that_is_not_acknowledged() {
    let (mut duo, _, alarm) = steered();
    // Only the last arrives.
    duo.network.set_filter(|packet| sight::tsns(packet).iter().all(|&tsn| tsn == 1_005));
    duo.send_all(Side::A, FULL, 6);
    alarm.set(duo.now + millis(100), LossTasks { probes: paths([0, 1]), ..LossTasks::default() });
    duo.refresh_deadlines(Side::A);
    duo.run(millis(110));
    let sent: Vec<usize> = (1_000..=1_005).map(|tsn| times_sent(&duo, tsn)).collect();
    assert_eq!(sent.iter().sum::<usize>(), 8, "one more on each path: {sent:?}");
    assert_eq!(sent[5], 1, "it has arrived");
}

#[test]
fn rack_repairs_several_lost_retransmissions_without_t3() {
    let setup = Setup::new(1, "cmt+rack", "rfc9260").with(|config| config.initial_tsn = Some(1_000));
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::A, FULL, 20);
    duo.run(Span::from_secs(2));
    let mut losses = [(1_030_u32, 2_u32), (1_034, 2), (1_038, 2)];
    duo.network.set_filter(move |packet| {
        let data = sight::tsns(packet);
        let hit = losses.iter_mut().find(|(tsn, left)| *left > 0 && data.contains(tsn));
        hit.map(|(_, left)| *left -= 1).is_none()
    });
    duo.send_all(Side::A, FULL, 200);
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)));
    assert_eq!(timeouts(&duo), 0);
}

#[test]
fn rack_repairs_a_lost_tail_sooner_than_t3() {
    // TSN 1024 is the last of five.
    let (plain, plain_timeouts) = transfer("cmt", 5, 1_024, 1);
    let (rack, rack_timeouts) = transfer("cmt+rack", 5, 1_024, 1);
    assert_eq!((plain_timeouts, rack_timeouts), (1, 0));
    // A second and half a round trip, against two round trips, the peer's SACK delay, and half a round trip.
    assert!(plain > millis(1_000) && rack < millis(400), "{plain:?}, {rack:?}");
}

#[test]
fn rack_repairs_a_lost_retransmission_without_t3() {
    let (plain, plain_timeouts) = transfer("cmt", 200, 1_030, 2);
    let (rack, rack_timeouts) = transfer("cmt+rack", 200, 1_030, 2);
    assert_eq!((plain_timeouts, rack_timeouts), (1, 0));
    assert!(rack < plain, "{rack:?}, {plain:?}");
}
