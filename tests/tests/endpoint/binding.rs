//! Chunks that a scheduler binds to a path before the path's window has room for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anabranch_core::policy::{Pick, View};
use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, PathState};
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_tests::steered::{Heard, Log, Steered, path};
use anabranch_wire::{GapBlock, SackRepr, Tsn};

use crate::rig::craft;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// User bytes that fill a chunk of 1,468 B. Three such chunks fill a path's first window of 4,404 B.
const FULL: usize = 1_452;
const CHUNK: u64 = 1_468;
const FIRST: u64 = (1 << 32) + 1_000;

/// Returns two endpoints with two confirmed paths and first TSN 1,000. The test makes some decisions of A's scheme.
fn duo(scheme: Steered, change: impl FnOnce(Setup) -> Setup) -> Duo {
    let setup = Setup::new(2, "cmt-pf", "rfc9260").with(|config| config.initial_tsn = Some(1_000));
    let setup = change(setup.with_side(Side::A, |config| config.scheme = Arc::new(scheme)));
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(1));
    assert!(duo.nodes[A].association().paths().iter().all(|path| path.is_active()));
    duo
}

fn as_it_is(setup: Setup) -> Setup {
    setup
}

fn always_on(index: usize) -> Steered {
    Steered::new("cmt-pf").pick(move |_| Pick::Bind(path(index)))
}

/// Returns a scheme that alternates between paths 0 and 1.
fn in_turn() -> Steered {
    let count = AtomicUsize::new(0);
    Steered::new("cmt-pf").pick(move |_| Pick::Bind(path(count.fetch_add(1, Ordering::Relaxed) % 2)))
}

/// Returns the TSNs that A has sent on a path.
fn sent_on(duo: &Duo, pair: usize) -> Vec<u32> {
    let to = duo.setup.address(Side::B, pair);
    let packets = duo.kept.iter().flatten().map(|(_, packet)| packet);
    packets.filter(|packet| packet.destination == to).flat_map(sight::tsns).collect()
}

fn bound(duo: &Duo, index: usize) -> u64 {
    duo.nodes[A].association().paths()[index].bound.get()
}

fn in_flight(duo: &Duo, index: usize) -> u64 {
    duo.nodes[A].association().paths()[index].in_flight.get()
}

fn bindings(log: &Log) -> Vec<(usize, u64)> {
    let bound = |heard| if let Heard::Bound(path, tsn) = heard { Some((path, tsn - FIRST)) } else { None };
    log.take().into_iter().filter_map(bound).collect()
}

#[test]
fn a_bound_chunk_has_its_tsn_at_once_and_waits_for_its_paths_window() {
    let scheme = always_on(1);
    let log = scheme.log.clone();
    let mut duo = duo(scheme, as_it_is);
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, FULL, 10);
    assert_eq!(bindings(&log), (0..10).map(|tsn| (1, tsn)).collect::<Vec<_>>());
    assert_eq!(sent_on(&duo, 1), [1_000, 1_001, 1_002]);
    assert_eq!((in_flight(&duo, 1), bound(&duo, 1)), (3 * CHUNK, 7 * CHUNK));
    assert_eq!((in_flight(&duo, 0), duo.nodes[A].association().queued_bytes()), (0, 0));
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    assert_eq!(sent_on(&duo, 1), (1_000..1_010).collect::<Vec<_>>());
    assert_eq!(sent_on(&duo, 0), []);
}

#[test]
fn each_path_sends_its_bound_chunks_in_tsn_order_and_overtakes_the_other() {
    let mut duo = duo(in_turn(), as_it_is);
    duo.link(1).delay = Span::from_millis(300);
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, FULL, 20);
    assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
    let step = |from: u32| (from..1_020).step_by(2).collect::<Vec<_>>();
    assert_eq!([sent_on(&duo, 0), sent_on(&duo, 1)], [step(1_000), step(1_001)]);
    let all: Vec<u32> = duo.kept.iter().flatten().flat_map(|(_, packet)| sight::tsns(packet)).collect();
    assert!(!all.is_sorted(), "the fast path does not wait for the slow one: {all:?}");
}

#[test]
fn a_bound_chunk_takes_its_share_of_the_peers_window_once() {
    let mut duo = duo(always_on(1), as_it_is);
    let window = |duo: &Duo| duo.nodes[A].association().association_facts().peer_window.get();
    let before = window(&duo);
    duo.send_all(Side::A, FULL, 10);
    let after = before - 10 * FULL as u64;
    assert_eq!(window(&duo), after);
    // B reads at once, so the first SACK makes all acknowledged bytes free again: the chunks sent since then are not reported.
    duo.run_until(Span::from_secs(1), |duo| in_flight(duo, 1) != 3 * CHUNK);
    let a = duo.nodes[A].association();
    let outstanding = (in_flight(&duo, 1) + bound(&duo, 1)) / CHUNK * FULL as u64;
    assert_eq!(
        a.association_facts().peer_window.get(),
        a.association_facts().peer_window_advertised.get() - outstanding
    );
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn bound_chunks_never_promise_more_of_the_peers_window_than_there_is() {
    const BUFFER: u64 = 20_000;
    let mut duo = duo(in_turn(), |setup| setup.with_side(Side::B, |b| b.recv_buffer_bytes = BUFFER));
    duo.reading[B] = Reading::ByHand;
    duo.send_all(Side::A, FULL, 60);
    let promised = |duo: &Duo| {
        let chunks: u64 = (0..2).map(|i| in_flight(duo, i) + bound(duo, i)).sum();
        chunks / CHUNK * FULL as u64
    };
    assert_eq!(promised(&duo), BUFFER / FULL as u64 * FULL as u64);
    // Bound chunks cannot have arrived yet, so both need room.
    let overrun = |duo: &Duo| {
        let bound: u64 = (0..2).map(|i| bound(duo, i) / CHUNK * FULL as u64).sum();
        bound + duo.nodes[B].association().held_bytes() > BUFFER
    };
    let probed = |duo: &Duo| duo.nodes[A].association().statistics().window_probes > 0;
    assert!(duo.run_until(Span::from_secs(5), |duo| overrun(duo) || probed(duo)));
    assert!(!overrun(&duo), "more is promised than B can hold");
    duo.reading[B] = Reading::WhenTold;
    duo.read(Side::B, usize::MAX);
    assert!(duo.run_until(Span::from_secs(60), |duo| overrun(duo) || duo.all_arrived(Side::A)));
    assert!(!overrun(&duo), "more is promised than B can hold");
    assert!(duo.nodes[B].association().statistics().chunks_dropped <= 1, "nothing but the probe");
}

fn on_the_second_while_it_serves(view: &View<'_>) -> Pick {
    Pick::Bind(path(usize::from(view.path(path(1)).is_active())))
}

#[test]
fn failed_path_returns_bound_chunks_for_placement_in_tsn_order() {
    let scheme = Steered::new("cmt-pf").pick(on_the_second_while_it_serves);
    let log = scheme.log.clone();
    let mut duo = duo(scheme, as_it_is);
    duo.cut(1, true);
    duo.send_all(Side::A, FULL, 10);
    assert_eq!(bound(&duo, 1), 7 * CHUNK);
    log.take();
    let failed = |duo: &Duo| duo.nodes[A].association().paths()[1].state == PathState::PotentiallyFailed;
    assert!(duo.run_until(Span::from_secs(3), failed));
    assert_eq!(bound(&duo, 1), 0);
    assert!(duo.run_until(Span::from_secs(3), |duo| duo.all_arrived(Side::A)), "path 0 carries the rest");
    let heard = log.take();
    let mut unbound: Vec<u64> = heard
        .iter()
        .filter_map(|h| if let Heard::Unbound(1, tsn) = h { Some(tsn - FIRST) } else { None })
        .collect();
    unbound.sort_unstable();
    assert_eq!(unbound, (3..10).collect::<Vec<_>>());
    let again: Vec<u64> = heard
        .iter()
        .filter_map(|h| if let Heard::Bound(0, tsn) = h { Some(tsn - FIRST) } else { None })
        .collect();
    assert_eq!(again, (3..10).collect::<Vec<_>>());
}

#[test]
fn removed_path_returns_its_bound_chunks() {
    let mut duo = duo(Steered::new("cmt-pf").pick(on_the_second_while_it_serves), as_it_is);
    duo.send_all(Side::A, FULL, 10);
    let now = duo.now;
    let association = duo.nodes[A].try_association_mut().expect("there is one");
    association.remove_path(now, path(1)).expect("there is another");
    assert!(duo.run_until(Span::from_secs(1), |duo| duo.all_arrived(Side::A)), "no time-out is needed");
}

#[test]
fn scheduler_may_place_unsent_chunks_again() {
    let changes_its_mind = Arc::new(AtomicBool::new(false));
    let (once, now_first) = (changes_its_mind.clone(), changes_its_mind.clone());
    let replanned = AtomicBool::new(false);
    let scheme = Steered::new("cmt-pf")
        .pick(move |_| Pick::Bind(path(usize::from(!now_first.load(Ordering::Relaxed)))))
        .replan(move |_| once.load(Ordering::Relaxed) && !replanned.swap(true, Ordering::Relaxed));
    let log = scheme.log.clone();
    let mut duo = duo(scheme, as_it_is);
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, FULL, 10);
    changes_its_mind.store(true, Ordering::Relaxed);
    log.take();
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    // The first send opportunity since then is that of the first SACK: chunks that had left remain on their path.
    assert_eq!(bindings(&log), (3..10).map(|tsn| (0, tsn)).collect::<Vec<_>>());
    assert_eq!(sent_on(&duo, 1), [1_000, 1_001, 1_002]);
    assert_eq!(sent_on(&duo, 0), (1_003..1_010).collect::<Vec<_>>());
}

/// Returns a SACK from B with this content, as a packet on path 0.
fn forged(duo: &Duo, cumulative: u32, gaps: &[(u16, u16)]) -> Packet {
    let kept = duo.kept.iter().flatten().find(|(_, packet)| packet.from == Side::B);
    let (_, genuine) = kept.expect("B has sent something");
    let tag = u32::from_be_bytes(genuine.bytes[4..8].try_into().expect("four bytes"));
    let repr = SackRepr { cum_tsn: Tsn::new(cumulative), a_rwnd: 65_536, flags: 0 };
    let blocks = gaps.iter().map(|&(start, end)| GapBlock { start, end });
    let mut bytes = craft::packet(tag, |packet| packet.sack(&repr, blocks, []));
    bytes[..4].copy_from_slice(&genuine.bytes[..4]);
    craft::fix_checksum(&mut bytes);
    let (source, destination) = (duo.setup.address(Side::B, 0), duo.setup.address(Side::A, 0));
    Packet { from: Side::B, source, destination, bytes, may_fragment: false }
}

/// Returns a pair with three chunks in flight on path 1 and seven bound to it.
fn three_sent_seven_bound() -> Duo {
    let mut duo = duo(always_on(1), |setup| setup);
    duo.kept = Some(Vec::new());
    duo.send(Side::B, 1, 0, false).expect("it is up").expect("it takes it");
    duo.run(Span::from_secs(1));
    duo.send_all(Side::A, FULL, 10);
    assert_eq!((in_flight(&duo, 1), bound(&duo, 1)), (3 * CHUNK, 7 * CHUNK));
    duo
}

#[test]
fn cumulative_ack_of_a_bound_unsent_chunk_ends_the_association() {
    for (cumulative, believed) in [(1_002, true), (1_003, false), (1_009, false)] {
        let mut duo = three_sent_seven_bound();
        let packet = forged(&duo, cumulative, &[]);
        let now = duo.now;
        duo.nodes[A].handle(now, &packet);
        duo.settle();
        let reason = AbortReason::Protocol("SACK for a TSN that was never sent");
        let end = (!believed).then_some(AssociationEvent::Aborted(reason));
        assert_eq!(duo.nodes[A].ended, end, "{cumulative}");
    }
}

#[test]
fn gap_block_with_a_bound_unsent_chunk_is_ignored() {
    let mut duo = three_sent_seven_bound();
    // TSNs 1003 and 1004 wait.
    let packet = forged(&duo, 999, &[(4, 5)]);
    let now = duo.now;
    duo.nodes[A].handle(now, &packet);
    duo.settle();
    assert_eq!((in_flight(&duo, 1), bound(&duo, 1)), (3 * CHUNK, 7 * CHUNK));
    assert_eq!(duo.nodes[A].ended, None);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    assert_eq!(duo.nodes[A].association().statistics().retransmissions, 0);
}

#[test]
fn shutdown_waits_for_bound_chunks() {
    let mut duo = duo(always_on(1), as_it_is);
    duo.send_all(Side::A, FULL, 30);
    assert!(bound(&duo, 1) > 0);
    duo.shutdown(Side::A);
    assert!(duo.run_until(Span::from_secs(10), |duo| Side::BOTH.iter().all(|&side| duo.is_over(side))));
    for side in Side::BOTH {
        assert_eq!(duo.nodes[side.index()].ended, Some(AssociationEvent::Closed), "{side:?}");
    }
    assert!(duo.all_arrived(Side::A));
}

#[test]
fn parts_of_messages_that_are_bound_to_several_paths_arrive_as_they_were() {
    let mut duo = duo(in_turn(), as_it_is);
    duo.link(1).delay = Span::from_millis(200);
    for round in 0..10 {
        for (size, stream, unordered) in
            [(7_000, 0, false), (200, 1, false), (4_000, 2, true), (FULL, 0, false)]
        {
            duo.send(Side::A, size + round, stream, unordered).expect("it is up").expect("it takes it");
        }
    }
    // The flow checks content, completeness and order.
    assert!(duo.run_until(Span::from_secs(30), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn a_closed_window_is_probed_by_a_scheduler_that_only_binds() {
    let mut duo = duo(always_on(1), |setup| setup.with_side(Side::B, |b| b.recv_buffer_bytes = 10_000));
    duo.reading[B] = Reading::ByHand;
    duo.send_all(Side::A, FULL, 12);
    assert!(bound(&duo, 1) > 0);
    let probed = |duo: &Duo| duo.nodes[A].association().statistics().window_probes > 0;
    assert!(duo.run_until(Span::from_secs(10), probed), "the window is probed");
    // The bound chunks had their share of the window, so none remains when a probe is sent.
    assert_eq!((in_flight(&duo, 1), bound(&duo, 1)), (CHUNK, 0));
    duo.reading[B] = Reading::WhenTold;
    duo.read(Side::B, usize::MAX);
    assert!(duo.run_until(Span::from_secs(70), |duo| duo.all_arrived(Side::A)));
}
