//! Loss of the state of one side, which then restarts at the same addresses. If it stored restart keys, the association continues, and
//! repeated earlier packets have no effect. Without these keys, the other side detects path failures and ends the old association;
//! unprotected packets do not affect it. Then both sides set up a new association.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent};
use anabranch_tests::network::{Packet, Side};

use crate::interaction::pair::Pair;
use crate::interaction::run::state;

/// Maximum time in which a side detects that its peer has disappeared.
const SILENCE: Span = Span::from_secs(60 * 60);

/// Maximum time of a handshake with keys on a good network.
const HANDSHAKE: Span = Span::from_secs(120);

/// Size of a message that fits into every send buffer.
const MESSAGE_BYTES: usize = 900;

/// Maximum number of earlier packets that the test delivers again after a restart.
const MOST_REPEATED: usize = 1_000;

/// Span longer than the delay of any packet: abandoned messages may still arrive.
const REST: Span = Span::from_secs(10);

/// Deletes a side's state, unless the association has ended already, and checks that both sides recover.
pub(crate) fn begin_anew<P: Pair>(pair: &mut P, lost: Side) {
    pair.run(REST);
    if Side::BOTH.iter().any(|&side| pair.duo().is_over(side)) {
        return;
    }
    let survivor = lost.other();
    if !knows_all_addresses(pair, survivor) {
        // The survivor would treat packets from an unknown address as those of a new peer.
        return;
    }
    if pair.restart(lost) {
        continues(pair, lost);
        return;
    }
    pair.duo_mut().lose_state(lost);
    // Informs the key management of the lost state.
    pair.settle();
    if lost == Side::A {
        pair.duo_mut().connect_side(lost);
    }
    // The packets of this side now use keys that the other side does not have.
    let _ = pair.duo_mut().send(survivor, MESSAGE_BYTES, 1, false);
    pair.settle();
    let over = pair.run_until(SILENCE, |pair| pair.duo().is_over(survivor));
    let duo = pair.duo();
    assert!(over, "the association with a peer without keys does not end: {}", state(duo));
    let ended = &duo.nodes[survivor.index()].ended;
    assert_eq!(ended, &Some(AssociationEvent::Aborted(AbortReason::PeerUnreachable)), "{survivor:?}");
    assert_eq!(duo.flows[survivor.index()].delivered_bytes, 0, "{lost:?} has no keys to decrypt the message");
    connect_again(pair, lost);
}

/// Checks that the association continues after a restart, even if earlier packets arrive again.
fn continues<P: Pair>(pair: &mut P, lost: Side) {
    let survivor = lost.other().index();
    let restarts = |pair: &P| pair.duo().nodes[survivor].try_association().map_or(0, |a| a.restarts());
    let both = |pair: &P| Side::BOTH.iter().all(|&side| pair.is_ready(side));
    let restarted = pair.run_until(HANDSHAKE, |pair| both(pair) && restarts(pair) == 1);
    assert!(restarted, "no restart: {}", state(pair.duo()));
    // Packets in flight arrive first.
    pair.run(REST);
    let sent: Vec<Packet> = pair.duo().kept.iter().flatten().map(|(_, packet)| packet.clone()).collect();
    for packet in sent.iter().rev().take(MOST_REPEATED) {
        pair.deliver(packet);
    }
    carries_messages(pair);
    assert_eq!(restarts(pair), 1, "{lost:?} has restarted once");
}

fn knows_all_addresses(pair: &impl Pair, side: Side) -> bool {
    let duo = pair.duo();
    let Some(association) = duo.nodes[side.index()].try_association() else { return false };
    let known = |remote| {
        let mut addresses = association.paths().iter().filter_map(|path| association.path_address(path.id));
        addresses.any(|address| address.remote == remote)
    };
    (0..duo.setup.pairs).all(|pair| known(duo.setup.address(side.other(), pair)))
}

/// Connects again, with the unchanged endpoint of the survivor.
fn connect_again<P: Pair>(pair: &mut P, lost: Side) {
    pair.duo_mut().lose_state(lost);
    pair.settle();
    let duo = pair.duo_mut();
    let id = duo.connect_side(Side::A);
    if lost == Side::B {
        duo.nodes[Side::A.index()].adopt(id);
    }
    let ready = |pair: &P| Side::BOTH.iter().all(|&side| pair.is_ready(side));
    assert!(pair.run_until(HANDSHAKE, ready), "no new association: {}", state(pair.duo()));
    carries_messages(pair);
}

fn carries_messages<P: Pair>(pair: &mut P) {
    for side in Side::BOTH {
        let sent = pair.duo_mut().send(side, MESSAGE_BYTES, 1, false);
        sent.expect("there is an association").expect("it takes the message");
    }
    pair.settle();
    let arrived = |pair: &P| {
        Side::BOTH.iter().all(|&side| pair.duo().flows[side.index()].delivered_bytes == MESSAGE_BYTES as u64)
    };
    assert!(pair.run_until(HANDSHAKE, arrived), "no message arrives: {}", state(pair.duo()));
}
