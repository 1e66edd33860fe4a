//! The head of line is retransmitted on another path although it is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_core::policy::{HeadOfLineAction, HeadOfLineBlocking, LossTasks, Pick, View};
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::sight;
use anabranch_tests::steered::{Heard, Log, Steered, path};

const A: usize = Side::A as usize;

/// User bytes that fill a chunk of 1,468 B. Three such chunks fill a path's first window of 4,404 B.
const FULL: usize = 1_452;
const CHUNK: u64 = 1_468;
const FIRST: u64 = (1 << 32) + 1_000;

/// Receive buffer of B, so small that a gap soon closes the window.
const BUFFER: u64 = 8_000;

fn millis(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Returns a scheme that sends the first `slow` chunks on path 1 and the rest on path 0.
fn scheme(
    slow: usize,
    handle: impl Fn(&HeadOfLineBlocking, &View<'_>) -> Option<HeadOfLineAction> + Send + Sync + 'static,
) -> Steered {
    let left = AtomicUsize::new(slow);
    let next = move |_: &View<'_>| {
        let slow = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        Pick::Path(path(usize::from(slow)))
    };
    Steered::new("cmt-pf").pick(next).head_of_line(handle)
}

fn duo(
    slow: usize,
    handle: impl Fn(&HeadOfLineBlocking, &View<'_>) -> Option<HeadOfLineAction> + Send + Sync + 'static,
) -> (Duo, Log) {
    steered(scheme(slow, handle))
}

/// Returns a pair with a fast path of 25 ms, path 0, and a slow one of 400 ms, path 1.
fn steered(scheme: Steered) -> (Duo, Log) {
    let log = scheme.log.clone();
    let setup = Setup::new(2, "cmt-pf(sack-every=1)", "rfc9260")
        .with(|config| config.initial_tsn = Some(1_000))
        .with_side(Side::A, |config| {
            config.scheme = Arc::new(scheme);
            // The alarm is set between events.
            config.ignores_declarations = true;
        })
        .with_side(Side::B, |config| config.recv_buffer_bytes = BUFFER);
    let mut duo = Duo::new(setup);
    for (pair, delay) in [25, 400].into_iter().enumerate() {
        duo.link(pair).delay = millis(delay);
    }
    duo.connect();
    duo.run(Span::from_secs(3));
    duo.kept = Some(Vec::new());
    log.take();
    (duo, log)
}

/// Returns `true` if the window is closed, the head of line is in flight on the slow path only, and the fast one has room.
fn is_stuck(blocking: &HeadOfLineBlocking, view: &View<'_>) -> bool {
    let head = view.association.head_of_line;
    let fast = view.path(path(0));
    blocking.peer_window_closed
        && fast.in_flight < fast.cwnd
        && head
            .is_some_and(|head| head.in_flight_on.contains(path(1)) && !head.in_flight_on.contains(path(0)))
}

fn copies(blocking: &HeadOfLineBlocking, view: &View<'_>) -> Option<HeadOfLineAction> {
    is_stuck(blocking, view).then_some(HeadOfLineAction::Copy(path(0)))
}

fn moves(blocking: &HeadOfLineBlocking, view: &View<'_>) -> Option<HeadOfLineAction> {
    is_stuck(blocking, view).then_some(HeadOfLineAction::Move(path(0)))
}

fn times_sent_on(duo: &Duo, pair: usize, tsn: u32) -> usize {
    let to = duo.setup.address(Side::B, pair);
    let packets = duo.kept.iter().flatten().filter(|(_, packet)| packet.destination == to);
    packets.flat_map(|(_, packet)| sight::tsns(packet)).filter(|&sent| sent == tsn).count()
}

fn in_flight(duo: &Duo, index: usize) -> u64 {
    duo.nodes[A].association().paths()[index].in_flight.get()
}

fn opportunistic_retransmissions(duo: &Duo) -> u64 {
    duo.nodes[A].association().statistics().opportunistic_retransmissions
}

/// Returns `true` if everything has arrived before anything can arrive over the slow path.
fn arrives_over_the_fast_path(duo: &mut Duo) -> bool {
    duo.run_until(millis(399), |duo| duo.all_arrived(Side::A))
}

#[test]
fn without_a_copy_a_closed_window_waits_for_the_slow_path() {
    let (mut duo, _) = duo(1, |_, _| None);
    duo.send_all(Side::A, FULL, 12);
    assert!(!arrives_over_the_fast_path(&mut duo));
    assert_eq!(opportunistic_retransmissions(&duo), 0);
}

#[test]
fn head_of_line_copy_opens_the_peer_window_and_cuts_no_path() {
    let (mut duo, log) = duo(1, copies);
    let cwnd = duo.nodes[A].association().paths()[1].cwnd;
    duo.send_all(Side::A, FULL, 12);
    assert!(arrives_over_the_fast_path(&mut duo));
    assert_eq!(
        (opportunistic_retransmissions(&duo), times_sent_on(&duo, 0, 1_000), times_sent_on(&duo, 1, 1_000)),
        (1, 1, 1)
    );
    assert_eq!(in_flight(&duo, 1), CHUNK, "the first copy is on its way all the same");
    duo.run(Span::from_secs(1));
    assert_eq!(in_flight(&duo, 1), 0, "its duplicate was reported");
    let a = duo.nodes[A].association();
    assert!(a.paths()[1].cwnd >= cwnd);
    let heard = log.take();
    assert!(!heard.iter().any(|h| matches!(h, Heard::Cut(_) | Heard::Lost(..))), "{heard:?}");
    assert_eq!((a.statistics().timeouts, a.statistics().fast_retransmit_events), (0, 0));
}

#[test]
fn a_move_takes_the_head_of_line_off_its_path_and_cuts_its_window() {
    let (mut duo, log) = duo(1, moves);
    duo.send_all(Side::A, FULL, 12);
    assert!(arrives_over_the_fast_path(&mut duo));
    assert_eq!(
        (opportunistic_retransmissions(&duo), times_sent_on(&duo, 0, 1_000), times_sent_on(&duo, 1, 1_000)),
        (1, 1, 1)
    );
    assert_eq!(in_flight(&duo, 1), 0);
    let heard = log.take();
    let cut_or_lost = heard.iter().filter(|h| matches!(h, Heard::Cut(_) | Heard::Lost(..)));
    assert_eq!(cut_or_lost.collect::<Vec<_>>(), [&Heard::Lost(1, FIRST), &Heard::Cut(1)]);
    // No chunk is in flight on the path, so T3 is not running.
    duo.run(Span::from_secs(5));
    let a = duo.nodes[A].association();
    assert_eq!((a.statistics().timeouts, a.paths()[1].error_count), (0, 0));
}

#[test]
fn moves_cut_a_window_once_however_many_of_its_chunks_they_take() {
    let (mut duo, log) = duo(3, moves);
    duo.send_all(Side::A, FULL, 12);
    assert!(arrives_over_the_fast_path(&mut duo));
    let heard = log.take();
    let moved = heard.iter().filter(|h| matches!(h, Heard::Lost(1, _))).count();
    let cut = heard.iter().filter(|h| matches!(h, Heard::Cut(1))).count();
    assert_eq!((moved, cut), (3, 1), "{heard:?}");
}

#[test]
fn chunks_left_by_a_move_keep_their_timeout() {
    let once = AtomicBool::new(false);
    let (mut duo, _) =
        duo(2, move |blocking, view| moves(blocking, view).filter(|_| !once.swap(true, Ordering::Relaxed)));
    duo.send_all(Side::A, FULL, 8);
    duo.run(millis(200));
    assert_eq!((opportunistic_retransmissions(&duo), in_flight(&duo, 1)), (1, CHUNK));
    // No later arrival is acknowledged.
    duo.network.set_filter(|packet| sight::sack(packet).is_none());
    let timeouts = |duo: &Duo| duo.nodes[A].association().statistics().timeouts;
    assert!(duo.run_until(Span::from_secs(10), |duo| timeouts(duo) > 0));
}

#[test]
fn slow_path_time_out_ends_its_copy_but_not_the_opportunistic_one() {
    let armed = Arc::new(AtomicBool::new(false));
    let is_armed = armed.clone();
    let late = move |blocking: &HeadOfLineBlocking, view: &View<'_>| {
        copies(blocking, view).filter(|_| is_armed.load(Ordering::Relaxed))
    };
    let scheme = scheme(1, late);
    let alarm = scheme.alarm.clone();
    let (mut duo, log) = steered(scheme);
    duo.cut(1, true);
    let rto = duo.nodes[A].association().paths()[1].rto;
    let expiry = duo.now + rto;
    duo.send_all(Side::A, FULL, 12);
    duo.run(expiry.since(duo.now + millis(20)));
    armed.store(true, Ordering::Relaxed);
    alarm.set(duo.now + millis(1), LossTasks::default());
    duo.refresh_deadlines(Side::A);
    duo.run(millis(10));
    assert_eq!(
        (opportunistic_retransmissions(&duo), in_flight(&duo, 0), in_flight(&duo, 1)),
        (1, CHUNK, CHUNK)
    );
    duo.run(millis(11));
    assert_eq!(duo.nodes[A].association().statistics().timeouts, 1);
    assert_eq!((in_flight(&duo, 0), in_flight(&duo, 1)), (CHUNK, 0));
    duo.run(millis(200));
    assert!(duo.all_arrived(Side::A));
    assert!(!log.take().iter().any(|h| matches!(h, Heard::Lost(..))), "a copy was still in flight");
}

#[test]
fn the_head_of_line_moves_once_in_a_send_opportunity() {
    let armed = Arc::new(AtomicBool::new(false));
    let is_armed = armed.clone();
    // The policy requests the other path in each case.
    let to_and_fro = move |_: &HeadOfLineBlocking, view: &View<'_>| {
        let head = view.association.head_of_line.filter(|_| is_armed.load(Ordering::Relaxed))?;
        Some(HeadOfLineAction::Move(path(usize::from(!head.in_flight_on.contains(path(1))))))
    };
    let scheme = scheme(1, to_and_fro);
    let alarm = scheme.alarm.clone();
    let (mut duo, _) = steered(scheme);
    duo.send_all(Side::A, FULL, 12);
    duo.run(millis(200));
    armed.store(true, Ordering::Relaxed);
    // A deadline opens exactly one send opportunity.
    alarm.set(duo.now + millis(1), LossTasks::default());
    duo.refresh_deadlines(Side::A);
    duo.run(millis(2));
    let a = duo.nodes[A].association().statistics();
    assert_eq!(
        (a.opportunistic_retransmissions, times_sent_on(&duo, 0, 1_000), times_sent_on(&duo, 1, 1_000)),
        (1, 1, 1)
    );
    assert!(a.overruled_picks > 0);
    assert!(duo.run_until(Span::from_secs(30), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn a_copy_on_a_path_that_carries_the_chunk_already_is_overruled() {
    let there_already = |blocking: &HeadOfLineBlocking, view: &View<'_>| {
        is_stuck(blocking, view).then_some(HeadOfLineAction::Copy(path(1)))
    };
    let (mut duo, _) = duo(1, there_already);
    duo.send_all(Side::A, FULL, 12);
    assert!(!arrives_over_the_fast_path(&mut duo));
    assert_eq!(opportunistic_retransmissions(&duo), 0);
    assert!(duo.nodes[A].association().statistics().overruled_picks > 0);
    assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn a_copy_on_a_path_without_room_or_that_does_not_exist_is_overruled() {
    // At first the chunks just sent fill path 0's window, and the peer's window is open.
    let at_once = |_: &HeadOfLineBlocking, view: &View<'_>| {
        let head = view.association.head_of_line?;
        let full = view.path(path(0)).in_flight >= view.path(path(0)).cwnd;
        (head.in_flight_on.contains(path(1)) && full).then_some(HeadOfLineAction::Copy(path(0)))
    };
    let nowhere = |blocking: &HeadOfLineBlocking, view: &View<'_>| {
        is_stuck(blocking, view).then_some(HeadOfLineAction::Move(path(7)))
    };
    let (mut full, _) = duo(1, at_once);
    let (mut missing, _) = duo(1, nowhere);
    for duo in [&mut full, &mut missing] {
        duo.send_all(Side::A, FULL, 12);
        assert!(!arrives_over_the_fast_path(duo));
        assert_eq!(opportunistic_retransmissions(duo), 0);
        assert!(duo.nodes[A].association().statistics().overruled_picks > 0);
        assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
    }
}

#[test]
fn new_data_that_closes_the_window_is_followed_by_the_question_at_once() {
    // Three chunks fill the slow path, two more on the fast one the peer's window; the fast path has room for a third.
    let (mut duo, _) = duo(3, copies);
    duo.send_all(Side::A, FULL, 8);
    assert_eq!(duo.nodes[A].association().statistics().opportunistic_retransmissions, 1, "no SACK has come");
}
