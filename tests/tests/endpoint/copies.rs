//! Chunks that a scheduler sends on several paths at once.

use std::sync::Arc;

use anabranch_core::policy::{Pick, RetransmitChoice};
use anabranch_core::time::Span;
use anabranch_core::{PathState, policy::PathFacts};
use anabranch_schemes::duplicates::duplicate_marked;
use anabranch_schemes::registry;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_tests::steered::{Heard, Log, Steered, path, paths};

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// User bytes that fill a chunk of 1,468 B. Three such chunks fill a path's first window of 4,404 B.
const FULL: usize = 1_452;
const CHUNK: u64 = 1_468;
const FIRST: u64 = (1 << 32) + 1_000;

fn millis(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Returns a pair in which A sends everything on two paths with these delays, and B acknowledges every packet at once.
fn duo(delays: [u64; 2]) -> (Duo, Log) {
    duo_with(delays, Steered::new("cmt-pf").pick(|_| Pick::Copies(paths([0, 1]))))
}

fn duo_with(delays: [u64; 2], scheme: Steered) -> (Duo, Log) {
    let log = scheme.log.clone();
    let setup = Setup::new(2, "cmt-pf(sack-every=1)", "rfc9260")
        .with(|config| config.initial_tsn = Some(1_000))
        .with_side(Side::A, |config| config.scheme = Arc::new(scheme));
    let mut duo = Duo::new(setup);
    for (pair, delay) in delays.into_iter().enumerate() {
        duo.link(pair).delay = millis(delay);
    }
    duo.connect();
    duo.run(Span::from_secs(2));
    assert!(duo.nodes[A].association().paths().iter().all(PathFacts::is_active));
    duo.kept = Some(Vec::new());
    log.take();
    (duo, log)
}

fn in_flight(duo: &Duo) -> [u64; 2] {
    [0, 1].map(|i| duo.nodes[A].association().paths()[i].in_flight.get())
}

fn acked(log: &Log) -> Vec<(usize, u64)> {
    let acked = |heard| if let Heard::Acked(path, tsn) = heard { Some((path, tsn - FIRST)) } else { None };
    log.take().into_iter().filter_map(acked).collect()
}

#[test]
fn each_paths_window_counts_its_copy_and_the_peers_window_is_taken_once() {
    let (mut duo, _) = duo([25, 25]);
    let before = duo.nodes[A].association().association_facts().peer_window.get();
    duo.send_all(Side::A, FULL, 10);
    assert_eq!(in_flight(&duo), [3 * CHUNK; 2]);
    assert_eq!(duo.nodes[A].association().association_facts().peer_window.get(), before - 3 * FULL as u64);
    let sent = |pair| -> Vec<u32> {
        let to = duo.setup.address(Side::B, pair);
        let packets = duo.kept.iter().flatten().filter(|(_, packet)| packet.destination == to);
        packets.flat_map(|(_, packet)| sight::tsns(packet)).collect()
    };
    assert_eq!([sent(0), sent(1)], [[1_000, 1_001, 1_002]; 2]);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn full_path_gets_no_copy() {
    let (mut duo, _) = duo([25, 250]);
    duo.send_all(Side::A, FULL, 6);
    // The acknowledgements of the fast path return, and the window of the slow path remains full.
    duo.run(millis(60));
    assert_eq!(in_flight(&duo), [3 * CHUNK; 2]);
    let statistics = duo.nodes[A].association().statistics();
    assert_eq!((statistics.chunks_sent, statistics.retransmissions), (6, 3));
    assert!(duo.run_until(millis(60), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn duplicate_data_is_delivered_once() {
    let (mut duo, _) = duo([25, 40]);
    duo.send_all(Side::A, 5_000, 20);
    assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
    duo.run(Span::from_secs(1));
    let b = duo.nodes[B].association().statistics();
    assert_eq!(b.bytes_delivered, 20 * 5_000);
    assert!(b.duplicates_received > 0);
    assert_eq!(in_flight(&duo), [0, 0]);
    assert_eq!(duo.nodes[A].association().statistics().timeouts, 0);
}

#[test]
fn an_ack_credits_the_copy_on_the_path_that_it_came_in_on() {
    for (delays, first) in [([25, 100], 0), ([100, 25], 1)] {
        let (mut duo, log) = duo(delays);
        duo.send_all(Side::A, FULL, 1);
        duo.run(millis(60));
        assert_eq!(acked(&log), [(first, 0)], "{delays:?}");
        let mut expected = [CHUNK; 2];
        expected[first] = 0;
        assert_eq!(in_flight(&duo), expected, "the other copy is on its way: {delays:?}");
    }
}

#[test]
fn a_duplicate_report_credits_the_other_copy_and_measures_its_path() {
    let (mut duo, log) = duo([25, 100]);
    duo.send_all(Side::A, FULL, 1);
    duo.run(millis(150));
    log.take();
    assert_eq!(in_flight(&duo), [0, CHUNK]);
    duo.run(millis(51));
    assert_eq!(in_flight(&duo), [0, 0]);
    let heard = log.take();
    assert!(heard.contains(&Heard::Acked(1, FIRST)), "{heard:?}");
    assert!(heard.contains(&Heard::Rtt(1, millis(200))), "{heard:?}");
    assert!(!heard.iter().any(|h| matches!(h, Heard::Spurious(..))), "a copy was asked for: {heard:?}");
    let delivered = duo.nodes[A].association().paths().iter().map(|p| p.delivered.get());
    assert_eq!(delivered.collect::<Vec<_>>(), [CHUNK; 2]);
}

#[test]
fn redundantly_retransmitted_chunk_arrives_if_one_copy_is_lost() {
    let twice = RetransmitChoice::Copies { path: path(0), others: paths([1]) };
    let scheme = Steered::new("cmt-pf").pick(|_| Pick::Path(path(0))).route(move |_, _| twice);
    let (mut duo, log) = duo_with([25, 30], scheme);
    let first_path = duo.setup.address(Side::B, 0);
    duo.network.set_filter(move |packet: &Packet| {
        packet.destination != first_path || !sight::tsns(packet).contains(&1_001)
    });
    duo.send_all(Side::A, FULL, 8);
    assert!(duo.run_until(millis(160), |duo| duo.all_arrived(Side::A)), "two round trips and a half");
    let statistics = duo.nodes[A].association().statistics();
    assert_eq!((statistics.retransmissions, statistics.timeouts), (2, 0));
    duo.run(Span::from_secs(3));
    assert!(acked(&log).contains(&(1, 1)), "the copy is credited to the path that it took");
    assert_eq!(in_flight(&duo), [0, 0], "and what was lost is in flight no more");
}

/// Loses the first SACK that arrives over the second path.
fn lose_the_first_report(duo: &mut Duo) {
    let source = duo.setup.address(Side::B, 1);
    let mut lost = false;
    duo.network.set_filter(move |packet: &Packet| {
        let hit = !lost && packet.source == source && sight::sack(packet).is_some();
        lost |= hit;
        !hit
    });
}

#[test]
fn unreported_copy_ends_when_later_data_of_its_path_is_acked() {
    let (mut duo, log) = duo([25, 100]);
    lose_the_first_report(&mut duo);
    duo.send_all(Side::A, FULL, 1);
    duo.run(millis(400));
    assert_eq!(in_flight(&duo), [0, CHUNK], "its report is lost");
    duo.send_all(Side::A, FULL, 1);
    duo.run(millis(150));
    assert_eq!(in_flight(&duo), [0, 2 * CHUNK]);
    duo.run(millis(60));
    assert_eq!(in_flight(&duo), [0, 0]);
    assert_eq!(acked(&log), [(0, 0), (0, 1), (1, 1)], "nobody said that the first copy arrived");
    assert_eq!(duo.nodes[A].association().statistics().timeouts, 0);
}

#[test]
fn unreported_copy_is_removed_at_the_timeout_of_its_path() {
    let (mut duo, log) = duo([25, 100]);
    duo.cut(1, true);
    duo.send_all(Side::A, FULL, 1);
    duo.run(millis(990));
    assert_eq!(in_flight(&duo), [0, CHUNK]);
    duo.run(millis(20));
    assert_eq!(in_flight(&duo), [0, 0]);
    let a = duo.nodes[A].association();
    assert_eq!((a.statistics().timeouts, a.paths()[1].state), (1, PathState::PotentiallyFailed));
    assert_eq!(acked(&log), [(0, 0)]);
    assert_eq!(a.statistics().retransmissions, 1, "the copy is all that was sent again");
}

#[test]
fn data_behind_a_window_of_copies_continues_when_they_time_out() {
    // Path 0 carries the first three chunks only. The copies on path 1 are lost, and chunks that are bound to path 1 wait.
    let scheme = Steered::new("cmt-pf").pick(|view| {
        let (first, second) = (view.path(path(0)), view.path(path(1)));
        if second.is_active() && second.in_flight >= second.cwnd {
            Pick::Bind(second.id)
        } else if second.is_active() {
            Pick::Copies(paths([0, 1]))
        } else {
            Pick::Path(first.id)
        }
    });
    let silence = [None, Some(millis(500))];
    for (profile, silence) in ["rfc9260", "ns2"].into_iter().flat_map(|name| silence.map(|s| (name, s))) {
        let (mut duo, _) = duo_with_silence(scheme.clone(), profile, silence);
        duo.cut(1, true);
        duo.send_all(Side::A, FULL, 6);
        duo.run(millis(400));
        assert_eq!(in_flight(&duo), [0, 3 * CHUNK]);
        assert_eq!(duo.nodes[A].association().paths()[1].bound.get(), 3 * CHUNK);
        assert!(duo.run_until(millis(700), |duo| duo.all_arrived(Side::A)), "{profile}, {silence:?}");
    }
}

fn duo_with_silence(scheme: Steered, profile: &str, silence: Option<Span>) -> (Duo, Log) {
    let log = scheme.log.clone();
    let setup = Setup::new(2, "cmt-pf(sack-every=1)", profile).with_side(Side::A, |config| {
        config.scheme = Arc::new(scheme);
        config.path_silence_limit = silence;
    });
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(2));
    (duo, log)
}

#[test]
fn marked_message_is_copied_without_the_chunks_of_others() {
    let scheme = duplicate_marked(registry::parse("cmt+min-rtt").expect("a scheme").into_scheme());
    let setup = Setup::new(2, "cmt(sack-every=1)", "net")
        .with(|config| config.initial_tsn = Some(1_000))
        .with_side(Side::A, |config| config.scheme = scheme);
    let mut duo = Duo::connected(setup);
    // The first message measures the path of the handshake.
    duo.send_all(Side::A, 100, 1);
    duo.run(Span::from_secs(2));
    duo.kept = Some(Vec::new());
    for is_marked in [false, true, true, false] {
        let sent =
            if is_marked { duo.send_duplicated(Side::A, 100) } else { duo.send(Side::A, 100, 0, true) };
        sent.expect("an association").expect("it takes the message");
    }
    duo.settle();
    let packets = duo.kept.iter().flatten().map(|(_, packet)| sight::tsns(packet));
    let packets: Vec<Vec<u32>> = packets.filter(|tsns| !tsns.is_empty()).collect();
    assert_eq!(packets, [vec![1_001], vec![1_002, 1_003], vec![1_002, 1_003], vec![1_004]]);
    assert_eq!(duo.nodes[A].association().statistics().copies_sent, 2);
    assert!(duo.run_until(Span::from_secs(1), |duo| duo.all_arrived(Side::A)));
}
