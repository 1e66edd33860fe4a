//! Execution of a case, with the checks at its end.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AbortReason, AssociationEvent, Discard, PathId, StreamDirection};
use anabranch_keying::KeyPolicy;
use anabranch_tests::credentials::seeded_credentials;
use anabranch_tests::dice::Dice;
use anabranch_tests::duo::{Duo, Reading};
use anabranch_tests::managed::Managed;
use anabranch_tests::network::{Link, Side};
use anabranch_tests::seeded_tls;
use anabranch_tests::witness::Witness;

use crate::interaction::attack::Attacker;
use crate::interaction::case::{Case, Ending, Guarded};
use crate::interaction::lost;
use crate::interaction::op::Op;
use crate::interaction::pair::Pair;

/// Runs a case, and returns a hash of every packet.
pub(crate) fn run(case: &Case) -> u64 {
    match case.guarded {
        None => play(case).hash,
        Some(guarded) => play_guarded(case, guarded).0.duo.hash,
    }
}

/// Runs a case without protection and checks it.
pub(crate) fn play(case: &Case) -> Duo {
    let mut duo = Duo::new(case.setup());
    duo.connect();
    follow(&mut duo, case, None);
    duo
}

/// Runs a case with protection and checks it. Returns the pair and the attacker.
pub(crate) fn play_guarded(case: &Case, guarded: Guarded) -> (Managed, Attacker) {
    let setup = case.setup();
    seeded_tls::seed(case.seed);
    let number = |side: Side| if guarded.impostor == Some(side) { 9 } else { side.index() as u8 + 1 };
    let keys = [seeded_credentials(number(Side::A), &[2]), seeded_credentials(number(Side::B), &[1])];
    let policy =
        KeyPolicy { rekey_records: guarded.rekey_records, peer_burst: 1_000, ..KeyPolicy::default() };
    let mut attacker = Attacker::new(guarded.on_handshake, &setup);
    let mut pair = Managed::with(setup, keys, policy);
    pair.duo.kept = Some(Vec::new());
    pair.duo.witness = Some(Witness::default());
    attacker.seize(&mut pair.duo.network);
    pair.duo.connect();
    attacker.answer(&mut pair);
    if !guarded.early {
        let up = pair.run_until(Span::from_secs(30), Managed::is_established);
        assert!(up || case.is_capricious(), "no keys on a good network: {}", state(&pair.duo));
    }
    let refused = guarded.impostor.is_some() || (case.is_changed_offer_all_that_happens() && !case.collide);
    if refused {
        // The attack thus has an effect before the attacker disappears.
        pair.run(Span::from_secs(2));
    }
    follow(&mut pair, case, Some(&mut attacker));
    pair.duo.witness.as_ref().expect("it watches").check();
    if refused {
        check_refused(&pair);
    }
    (pair, attacker)
}

/// Checks that no user data reaches an identity that is not accepted, nor a side that received another offer than its peer sent.
fn check_refused(pair: &Managed) {
    for side in Side::BOTH {
        assert_eq!(
            pair.duo.flows[side.index()].delivered_bytes,
            0,
            "{side:?}: its messages reached somebody"
        );
    }
    assert!(!pair.is_established(), "both sides are protected: {}", state(&pair.duo));
}

/// Performs the steps, and then provides a good network until the end.
fn follow<P: Pair>(pair: &mut P, case: &Case, mut attacker: Option<&mut Attacker>) {
    let mut dice = Dice::new(case.seed);
    for op in &case.ops {
        apply(pair, case, op, attacker.as_deref_mut());
        if let Some(attacker) = &mut attacker {
            attacker.answer(pair);
        }
        if case.lazy {
            for side in Side::BOTH {
                pair.duo_mut().drain_some(side, dice.below(4) as usize);
            }
        } else {
            pair.settle();
        }
    }
    let at_the_brink = Side::BOTH.map(|side| is_at_the_brink(pair.duo(), side));
    if recover(pair, case) {
        end(pair, case, at_the_brink);
        check_ends(pair, case);
        if let Ending::Lost(side) = case.ending {
            lost::begin_anew(pair, side);
        }
    }
}

fn apply<P: Pair>(pair: &mut P, case: &Case, op: &Op, attacker: Option<&mut Attacker>) {
    match *op {
        Op::Advance { ms } => pair.run(Span::from_millis(u64::from(ms))),
        Op::Oversleep { ms } => pair.oversleep(Span::from_millis(u64::from(ms))),
        Op::Send { side, stream, size, count, unordered, reliability } => {
            // Messages of the key management use numbers of stream 0.
            let stream = if case.guarded.is_some() { 1 + stream % 3 } else { stream % 4 };
            for _ in 0..count {
                let _ = pair.duo_mut().send_limited(side, size, stream, unordered, reliability);
            }
        }
        Op::Read { side, count } => pair.read(side, count),
        Op::Reading { side, by_hand } => {
            pair.set_reading(side, if by_hand { Reading::ByHand } else { Reading::WhenTold });
        }
        Op::Reset { side, streams, incoming } => reset(pair.duo_mut(), side, streams, incoming),
        Op::Prioritise { side, stream, priority, .. } => {
            let duo = pair.duo_mut();
            if let Some(association) = duo.nodes[side.index()].try_association_mut() {
                let _ = association.set_stream_priority(stream, priority);
            }
            duo.nodes[side.index()].check();
        }
        Op::AddStreams { side, streams, incoming } => {
            let duo = pair.duo_mut();
            let now = duo.now;
            let direction = if incoming { StreamDirection::Incoming } else { StreamDirection::Outgoing };
            if let Some(association) = duo.nodes[side.index()].try_association_mut() {
                let _ = association.add_streams(now, direction, streams);
            }
            duo.nodes[side.index()].check();
        }
        Op::Cut { pair: link, cut } => pair.duo_mut().cut(link % case.pairs, cut),
        Op::Impair { pair: link, delay_ms, loss, duplicate, reorder, corrupt } => {
            let link = pair.duo_mut().link(link % case.pairs);
            let delay = Span::from_millis(u64::from(delay_ms));
            *link = Link { delay, loss, duplicate, reorder, corrupt, ..*link };
        }
        Op::Heal => {
            pair.duo_mut().network.heal();
            if let Some(attacker) = attacker {
                attacker.seize(&mut pair.duo_mut().network);
            }
        }
        Op::AddPath { side, local, remote } => {
            add_path(pair.duo_mut(), side, local % case.pairs, remote % case.pairs);
        }
        Op::RemovePath { side, path } => remove_path(pair.duo_mut(), case, side, path),
        Op::Shutdown { side } => pair.duo_mut().shutdown(side),
        Op::Abort { side } => pair.duo_mut().abort(side),
        Op::Backwards { side, ms } => {
            let duo = pair.duo_mut();
            let past = duo.now.as_nanos().saturating_sub(u64::from(ms) * 1_000_000);
            duo.nodes[side.index()].timeout(Time::from_nanos(past));
        }
        Op::Wake { side } => {
            let duo = pair.duo_mut();
            duo.nodes[side.index()].timeout(duo.now);
        }
        Op::Attack(attack) => {
            if let Some(attacker) = attacker {
                attacker.step(pair, &attack);
            }
        }
    }
}

fn reset(duo: &mut Duo, side: Side, selected: u8, incoming: bool) {
    let streams: Vec<u16> = (0..8).filter(|bit| selected >> bit & 1 == 1).collect();
    let now = duo.now;
    if let Some(association) = duo.nodes[side.index()].try_association_mut() {
        let _ = if incoming {
            association.request_incoming_reset(now, &streams)
        } else {
            association.reset_streams(now, &streams)
        };
    }
    duo.nodes[side.index()].check();
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
        // A peer that connects at the same time is identified by its address only, until it has the local tag.
        if !case.collide || association.is_established() {
            let _ = association.remove_path(now, PathId::new(path));
        }
    }
    duo.nodes[side.index()].check();
}

/// Longest time without progress on a good network: the longest time-outs until a path fails, and one more. A peer that has removed
/// a path need not receive on it.
const TIMEOUT: Span = Span::from_secs(7 * 60);

/// A peer without keys cannot report its end: its silence reveals it, at each path in turn.
const GUARDED_TIMEOUT: Span = Span::from_secs(60 * 60);

/// Returns figures that grow with progress: received and acknowledged data, and the stages of setup and shutdown.
fn progress(pair: &impl Pair) -> [u64; 6] {
    let duo = pair.duo();
    let stage = |side: Side| {
        let node = &duo.nodes[side.index()];
        let up = node.was_told(&AssociationEvent::Connected);
        u64::from(node.id.is_some())
            + u64::from(up)
            + u64::from(node.ended.is_some())
            + pair.keying_stage(side)
    };
    let acked = |side: Side| {
        duo.nodes[side.index()].try_association().map_or(0, |a| a.association_facts().cumulative_tsn)
    };
    let [a, b] = Side::BOTH;
    let delivered = |side: Side| duo.flows[side.index()].delivered_bytes;
    [stage(a), stage(b), acked(a), acked(b), delivered(a), delivered(b)]
}

/// Makes the network good and lets the applications read. Then everything arrives, or the association ends on both sides. Returns
/// `false` for the two permitted stalls.
fn recover<P: Pair>(pair: &mut P, case: &Case) -> bool {
    pair.duo_mut().network.heal();
    for side in Side::BOTH {
        pair.set_reading(side, Reading::WhenTold);
        pair.read(side, usize::MAX);
    }
    pair.settle();
    let timeout = if case.guarded.is_some() { GUARDED_TIMEOUT } else { TIMEOUT };
    while !is_done(pair) {
        let before = progress(pair);
        let better = pair.run_until(timeout, |pair| is_done(pair) || progress(pair) != before);
        let duo = pair.duo();
        if !better && Side::BOTH.into_iter().any(|side| is_overrun(duo, side) || is_full_of_losses(duo, side))
        {
            return false;
        }
        assert!(better, "nothing gets better for {timeout:?}: {}", state(duo));
    }
    let duo = pair.duo();
    if Side::BOTH.iter().all(|&side| !duo.is_over(side)) {
        for side in Side::BOTH {
            assert!(!duo.refused[side.index()], "{side:?} waits for Writable although everything has gone");
            let passed = duo.flows[side.index()].passed_without_a_word();
            assert_eq!(passed, 0, "{side:?}: skipped messages were not reported as abandoned");
        }
    }
    true
}

/// Returns `true` if a ns-2 sender, which restores a chunk's window at its time-out before its retransmission, has overrun the
/// receiver. The receiver accepts nothing beyond its buffer, not even the chunk that blocks its content.
fn is_overrun(duo: &Duo, side: Side) -> bool {
    let config = &duo.setup.sides[side.index()];
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let Some(peer) = duo.nodes[side.other().index()].try_association() else { return false };
    // Both are in the window's unit: the free bytes that the receiver reported, and the chunk that blocks all others.
    let free_bytes = peer.association_facts().peer_window_advertised.get();
    let full = peer.association_facts().head_of_line.is_some_and(|head| head.bytes.get() > free_bytes);
    !config.profile.full_buffer_takes_next && full && association.readable_bytes() == 0
}

/// Returns `true` if losses that wait for retransmission on any path occupy the whole window of a path under profile ns2, and the
/// chunk that blocks all others is bound to that path without having left.
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

fn is_done<P: Pair>(pair: &P) -> bool {
    let duo = pair.duo();
    let over = Side::BOTH.map(|side| duo.is_over(side));
    if over == [true; 2] {
        return true;
    }
    let well = |side: Side| {
        let association = duo.nodes[side.index()].try_association();
        association.is_some_and(|a| a.is_established() && a.buffered_bytes() == 0)
            && duo.all_arrived(side)
            && pair.is_ready(side)
    };
    Side::BOTH.into_iter().all(well)
}

pub(crate) fn state(duo: &Duo) -> String {
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

/// Returns `true` if outstanding data, lost before the network became good, may cause the last permitted error of a side.
fn is_at_the_brink(duo: &Duo, side: Side) -> bool {
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let errors: u32 = association.paths().iter().map(|path| path.error_count).sum();
    // Data and a HEARTBEAT may be in flight on each path.
    let to_come = 2 * association.paths().len() as u32;
    errors > 0 && errors + to_come > duo.setup.sides[side.index()].profile.association_max_retrans
}

/// Shuts down one side or both, and checks that both end gracefully.
fn end<P: Pair>(pair: &mut P, case: &Case, at_the_brink: [bool; 2]) {
    let both_over = |pair: &P| Side::BOTH.iter().all(|&side| pair.duo().is_over(side));
    if both_over(pair) {
        return;
    }
    match case.ending {
        Ending::One(side) => pair.duo_mut().shutdown(side),
        Ending::Both => Side::BOTH.iter().for_each(|&side| pair.duo_mut().shutdown(side)),
        Ending::Lost(_) => return,
    }
    let ends = pair.run_until(Span::from_secs(300), both_over);
    let duo = pair.duo();
    assert!(ends, "a shutdown does not end: {}", state(duo));
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

fn check_ends(pair: &impl Pair, case: &Case) {
    let duo = pair.duo();
    for side in Side::BOTH {
        let node = &duo.nodes[side.index()];
        if node.ended == Some(AssociationEvent::Closed) {
            assert!(
                duo.all_arrived(side),
                "{side:?} closed in good order, and its messages have not all arrived"
            );
        }
        if let Some(AssociationEvent::Aborted(reason)) = node.ended {
            check_reason(pair, case, side, reason);
        }
        assert!(!node.was_told(&AssociationEvent::Restarted), "{side:?}: nobody restarted");
        if !case.is_attacked() {
            check_discards(duo, case, side);
        }
    }
}

fn check_reason(pair: &impl Pair, case: &Case, side: Side, reason: AbortReason) {
    let duo = pair.duo();
    let aborts = case.ops.iter().any(|op| matches!(op, Op::Abort { side: by } if *by == side));
    let peer_is_over = duo.nodes[side.other().index()].ended.is_some();
    // An attacker may have forged packets before there are keys.
    let may_be_forged = case.is_attacked() && !pair.was_protected(side);
    match reason {
        AbortReason::ByApplication => assert!(aborts, "{side:?}: its application did not abort"),
        AbortReason::ByPeer => {
            assert!(peer_is_over || may_be_forged, "{side:?}: aborted by a peer that is not over");
        }
        AbortReason::NoAnswer | AbortReason::PeerUnreachable => {
            // A peer without keys cannot report its end credibly.
            let silent = case.guarded.is_some() && peer_is_over;
            let cut_off = case.is_attacked();
            assert!(
                silent || cut_off || !is_gentle(case),
                "{side:?} ended the association ({reason:?}) although the network was good"
            );
        }
        AbortReason::KeyManagement(text) => {
            let handshake_failed = case.guarded.is_some() && !pair.was_protected(side);
            let may_fail = case.is_attacked() || case.is_capricious() || !is_gentle(case) || peer_is_over;
            assert!(handshake_failed && may_fail, "{side:?}: {text}");
        }
        AbortReason::NotProtected(text) | AbortReason::Protocol(text) => {
            assert!(may_be_forged, "{side:?}: {text}");
        }
        AbortReason::Tampered(text) => assert!(case.is_attacked(), "{side:?}: {text}"),
        AbortReason::KeySpent | AbortReason::CipherFailed | AbortReason::Refused(_) => {
            panic!("{side:?}: {reason:?}")
        }
    }
}

/// Returns `true` if nothing in the case can keep the peers from hearing each other.
fn is_gentle(case: &Case) -> bool {
    let ns2 = case.sides.iter().any(|s| s.profile == "ns2");
    case.sides.iter().all(|s| s.silence_ms.is_none())
        && case.ops.iter().all(|op| match *op {
            Op::Cut { cut, .. } => !cut,
            Op::Impair { loss, corrupt, .. } => loss == 0 && corrupt == 0,
            Op::Oversleep { .. }
            | Op::RemovePath { .. }
            | Op::Shutdown { .. }
            | Op::Abort { .. }
            | Op::Attack(_) => false,
            // ns-2's receiver does not answer a probe of a closed window.
            Op::Reading { by_hand, .. } => !(by_hand && ns2),
            _ => true,
        })
}

fn check_discards(duo: &Duo, case: &Case, side: Side) {
    let node = &duo.nodes[side.index()];
    let (discards, damaged) = (node.endpoint.discards(), duo.network.damaged);
    // A side without an association accepts no zero checksum, so late packets of the peer are discarded before they are out of the
    // blue.
    let checksums =
        if case.omits_checksums() && node.ended.is_some() { 0 } else { discards.of(Discard::Checksum) };
    assert!(checksums + discards.of(Discard::Malformed) <= damaged, "{side:?}: {discards:?}");
    let mut none = vec![Discard::CookieForged, Discard::BadInit, Discard::BadSack, Discard::Full];
    none.extend([Discard::NotAuthentic, Discard::KeySpent]);
    if case.guarded.is_none() {
        none.extend([Discard::Unprotected, Discard::NoKey, Discard::Replayed]);
    }
    for reason in none {
        assert_eq!(discards.of(reason), 0, "{side:?} discarded for {reason:?}");
    }
}
