//! Runs a case and checks what must be so at its end.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AbortReason, AssociationEvent, Discard, PathId};
use anabranch_tests::dice::Dice;
use anabranch_tests::duo::{Duo, Reading};
use anabranch_tests::network::{Link, Side};

use crate::case::{Case, Ending};
use crate::op::Op;

/// Runs a case; what comes back is a hash of every packet.
pub(crate) fn run(case: &Case) -> u64 {
    play(case).hash
}

/// Runs a case and checks it.
pub(crate) fn play(case: &Case) -> Duo {
    let mut duo = Duo::new(case.setup());
    let mut dice = Dice::new(case.seed);
    duo.connect();
    for op in &case.ops {
        apply(&mut duo, case, op);
        if case.lazy {
            for side in Side::BOTH {
                duo.drain_some(side, dice.below(4) as usize);
            }
        } else {
            duo.settle();
        }
    }
    let at_the_brink = Side::BOTH.map(|side| is_at_the_brink(&duo, side));
    if recover(&mut duo) {
        end(&mut duo, case, at_the_brink);
        check_ends(&duo, case);
    }
    duo
}

fn apply(duo: &mut Duo, case: &Case, op: &Op) {
    match *op {
        Op::Advance { ms } => duo.run(Span::from_millis(u64::from(ms))),
        Op::Oversleep { ms } => duo.oversleep(Span::from_millis(u64::from(ms))),
        Op::Send { side, stream, size, count, unordered, reliability } => {
            for _ in 0..count {
                let _ = duo.send_limited(side, size, stream % 4, unordered, reliability);
            }
        }
        Op::Read { side, count } => {
            duo.read(side, count);
        }
        Op::Reading { side, by_hand } => {
            duo.reading[side.index()] = if by_hand { Reading::ByHand } else { Reading::WhenTold };
        }
        Op::Cut { pair, cut } => duo.cut(pair % case.pairs, cut),
        Op::Impair { pair, delay_ms, loss, duplicate, reorder, corrupt } => {
            let link = duo.link(pair % case.pairs);
            let delay = Span::from_millis(u64::from(delay_ms));
            *link = Link { delay, loss, duplicate, reorder, corrupt, cut: link.cut, mtu: link.mtu };
        }
        Op::Heal => duo.network.heal(),
        Op::AddPath { side, local, remote } => add_path(duo, side, local % case.pairs, remote % case.pairs),
        Op::RemovePath { side, path } => remove_path(duo, case, side, path),
        Op::Shutdown { side } => duo.shutdown(side),
        Op::Abort { side } => duo.abort(side),
        Op::Backwards { side, ms } => {
            let past = duo.now.as_nanos().saturating_sub(u64::from(ms) * 1_000_000);
            duo.nodes[side.index()].timeout(Time::from_nanos(past));
        }
        Op::Wake { side } => duo.nodes[side.index()].timeout(duo.now),
    }
}

fn add_path(duo: &mut Duo, side: Side, local: usize, remote: usize) {
    let (local, remote) = (duo.setup.address(side, local), duo.setup.address(side.other(), remote));
    let now = duo.now;
    if local.is_ipv4() == remote.is_ipv4()
        && let Some(association) = duo.nodes[side.index()].try_association_mut()
    {
        let _ = association.add_path(now, (local, remote));
    }
    duo.nodes[side.index()].check();
}

fn remove_path(duo: &mut Duo, case: &Case, side: Side, path: usize) {
    let now = duo.now;
    if let Some(association) = duo.nodes[side.index()].try_association_mut() {
        // A peer that connects too is known by its address only, until it has our tag.
        if !case.collide || association.is_established() {
            let _ = association.remove_path(now, PathId::new(path));
        }
    }
    duo.nodes[side.index()].check();
}

/// The longest that may pass on a good network before anything gets better: as many of the longest time-outs as it takes
/// for a path to fail, and one more. It may have to: a peer that has removed a path need not listen there.
const TIMEOUT: Span = Span::from_secs(7 * 60);

/// What can only grow while things get better: what has arrived and is known to have, and how far set-up and end are.
fn progress(duo: &Duo) -> [u64; 6] {
    let stage = |side: Side| {
        let node = &duo.nodes[side.index()];
        let up = node.was_told(&AssociationEvent::Connected);
        u64::from(node.id.is_some()) + u64::from(up) + u64::from(node.ended.is_some())
    };
    let acked = |side: Side| {
        duo.nodes[side.index()].try_association().map_or(0, |a| a.association_facts().cumulative_tsn)
    };
    let [a, b] = Side::BOTH;
    let delivered = |side: Side| duo.flows[side.index()].delivered_bytes;
    [stage(a), stage(b), acked(a), acked(b), delivered(a), delivered(b)]
}

/// The network becomes good and the readers read: then everything arrives, or the association is over on both sides. `false`
/// for the two stalls there may be.
fn recover(duo: &mut Duo) -> bool {
    duo.network.heal();
    for side in Side::BOTH {
        duo.reading[side.index()] = Reading::WhenTold;
        duo.read(side, usize::MAX);
    }
    duo.settle();
    while !is_done(duo) {
        let before = progress(duo);
        let better = duo.run_until(TIMEOUT, |duo| is_done(duo) || progress(duo) != before);
        if !better && Side::BOTH.into_iter().any(|side| is_overrun(duo, side) || is_full_of_losses(duo, side))
        {
            return false;
        }
        assert!(better, "nothing gets better for {TIMEOUT:?}: {}", state(duo));
    }
    if Side::BOTH.iter().all(|&side| !duo.is_over(side)) {
        for side in Side::BOTH {
            assert!(!duo.refused[side.index()], "{side:?} waits for Writable although everything has gone");
            let passed = duo.flows[side.index()].passed_without_a_word();
            assert_eq!(passed, 0, "{side:?}: messages were passed over that are not told to be given up");
        }
    }
    true
}

/// Under profile ns2 a sender gives the window of a chunk that timed out back before the chunk is sent again, so it may overrun
/// the receiver; and that takes nothing beyond its buffer, not even what everything in it waits for.
fn is_overrun(duo: &Duo, side: Side) -> bool {
    let config = &duo.setup.sides[side.index()];
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let Some(peer) = duo.nodes[side.other().index()].try_association() else { return false };
    // Both are in the window's unit: what is free, as the receiver said, and the chunk that everything waits for.
    let free_bytes = peer.association_facts().peer_window_advertised.get();
    let full = peer.association_facts().head_of_line.is_some_and(|head| head.bytes.get() > free_bytes);
    !config.profile.full_buffer_takes_next && full && association.readable_bytes() == 0
}

/// Under profile ns2 what a path has lost takes its window until it is sent again, on whichever path. What everything waits for may
/// be bound to such a path and never have left.
fn is_full_of_losses(duo: &Duo, side: Side) -> bool {
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let Some(head) = association.association_facts().head_of_line.filter(|head| head.transmissions == 0)
    else {
        return false;
    };
    let path = &association.paths()[head.path.index()];
    path.in_flight.is_zero()
        && path.lost_unsent >= path.cwnd
        && duo.setup.sides[side.index()].profile.lost_counts_until_resent
}

fn is_done(duo: &Duo) -> bool {
    let over = Side::BOTH.map(|side| duo.is_over(side));
    if over == [true; 2] {
        return true;
    }
    let well = |side: Side| {
        let association = duo.nodes[side.index()].try_association();
        association.is_some_and(|a| a.is_established() && a.buffered_bytes() == 0) && duo.all_arrived(side)
    };
    Side::BOTH.into_iter().all(well)
}

fn state(duo: &Duo) -> String {
    let mut text = String::new();
    for node in &duo.nodes {
        let (missing, reading) = (duo.flows[node.side.index()].missing(), duo.reading[node.side.index()]);
        text +=
            &format!("\n{:?}: {missing} messages missing, {reading:?}, ended {:?}", node.side, node.ended);
        let Some(association) = node.try_association() else { continue };
        text += &format!(", now {:?}\n  {:?}\n", duo.now, association.association_facts());
        for path in association.paths() {
            text += &format!("  {:?} {:?}\n", association.path_address(path.id), path);
        }
        let (buffered, queued) = (association.buffered_bytes(), association.queued_bytes());
        let (held, readable) = (association.held_bytes(), association.readable_bytes());
        text += &format!("  buffered {buffered} queued {queued} held {held} readable {readable}\n");
        text += &format!("  {:?}\n", association.statistics());
    }
    text
}

/// Whether what a side still waits for, lost before the network became good, may be the last error that it bears.
fn is_at_the_brink(duo: &Duo, side: Side) -> bool {
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let errors: u32 = association.paths().iter().map(|path| path.error_count).sum();
    // Data and a HEARTBEAT may be on their way on each path.
    let to_come = 2 * association.paths().len() as u32;
    errors > 0 && errors + to_come > duo.setup.sides[side.index()].profile.association_max_retrans
}

/// A side or both shut down, and that ends well on both sides.
fn end(duo: &mut Duo, case: &Case, at_the_brink: [bool; 2]) {
    if Side::BOTH.iter().all(|&side| duo.is_over(side)) {
        return;
    }
    match case.ending {
        Ending::One(side) => duo.shutdown(side),
        Ending::Both => Side::BOTH.iter().for_each(|&side| duo.shutdown(side)),
    }
    let over = |duo: &Duo| Side::BOTH.iter().all(|&side| duo.is_over(side));
    assert!(duo.run_until(Span::from_secs(300), over), "a shutdown does not end: {}", state(duo));
    let gave_up = |side: Side| {
        let reason = AssociationEvent::Aborted(AbortReason::PeerUnreachable);
        duo.nodes[side.index()].ended == Some(reason)
    };
    if Side::BOTH.into_iter().any(|side| at_the_brink[side.index()] && gave_up(side)) {
        return;
    }
    for side in Side::BOTH {
        let ended = &duo.nodes[side.index()].ended;
        assert_eq!(
            ended,
            &Some(AssociationEvent::Closed),
            "{side:?}: a shutdown on a good network ends well"
        );
    }
}

fn check_ends(duo: &Duo, case: &Case) {
    for side in Side::BOTH {
        let node = &duo.nodes[side.index()];
        if node.ended == Some(AssociationEvent::Closed) {
            assert!(
                duo.all_arrived(side),
                "{side:?} closed in good order, and its messages have not all arrived"
            );
        }
        if let Some(AssociationEvent::Aborted(reason)) = node.ended {
            check_reason(duo, case, side, reason);
        }
        assert!(!node.was_told(&AssociationEvent::Restarted), "{side:?}: nobody restarted");
        check_discards(duo, side);
    }
}

fn check_reason(duo: &Duo, case: &Case, side: Side, reason: AbortReason) {
    let aborts = case.ops.iter().any(|op| matches!(op, Op::Abort { side: by } if *by == side));
    match reason {
        AbortReason::ByApplication => assert!(aborts, "{side:?}: its application did not abort"),
        AbortReason::ByPeer => assert_ne!(
            duo.nodes[side.other().index()].ended,
            None,
            "{side:?}: aborted by a peer that is not over"
        ),
        AbortReason::NoAnswer | AbortReason::PeerUnreachable => {
            assert!(!is_gentle(case), "{side:?} gave up ({reason:?}) although the network was good");
        }
        AbortReason::NotProtected(_)
        | AbortReason::KeySpent
        | AbortReason::CipherFailed
        | AbortReason::KeyManagement(_) => {
            panic!("{side:?}: there are no keys");
        }
        AbortReason::Protocol(text) => panic!("{side:?}: {text}"),
    }
}

/// Whether nothing in the case can keep the peers from hearing each other.
fn is_gentle(case: &Case) -> bool {
    let ns2 = case.sides.iter().any(|s| s.profile == "ns2");
    case.sides.iter().all(|s| s.silence_ms.is_none())
        && case.ops.iter().all(|op| match *op {
            Op::Cut { cut, .. } => !cut,
            Op::Impair { loss, corrupt, .. } => loss == 0 && corrupt == 0,
            Op::Oversleep { .. } | Op::RemovePath { .. } | Op::Shutdown { .. } | Op::Abort { .. } => false,
            // ns-2's receiver does not answer a probe of a closed window.
            Op::Reading { by_hand, .. } => !(by_hand && ns2),
            _ => true,
        })
}

fn check_discards(duo: &Duo, side: Side) {
    let discards = duo.nodes[side.index()].endpoint.discards();
    let damaged = duo.network.damaged;
    assert!(
        discards.of(Discard::Checksum) + discards.of(Discard::Malformed) <= damaged,
        "{side:?}: {discards:?}"
    );
    for reason in [Discard::CookieForged, Discard::BadInit, Discard::BadSack, Discard::Full] {
        assert_eq!(discards.of(reason), 0, "{side:?} discarded for {reason:?}");
    }
}
