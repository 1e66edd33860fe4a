//! Packets of a running transfer with changed bits, and with correct checksums so that they reach the parser.

use anabranch_core::Handled;
use anabranch_core::time::Span;
use proptest::prelude::*;

use crate::bad_input::{Scene, kinds};
use crate::rig::address;
use crate::rig::craft::{INIT, fix_checksum, with_tag};
use crate::rig::wires::Packet;

/// Number of mutations in each test.
const CASES: u32 = 300;

/// A change to a packet.
#[derive(Clone, Debug)]
enum Change {
    Flip {
        at: prop::sample::Index,
        mask: u8,
    },
    Cut {
        at: prop::sample::Index,
    },
    Append {
        bytes: Vec<u8>,
    },
    /// Writes a 16-bit number that is critical as a length, count or type.
    Number {
        at: prop::sample::Index,
        value: u16,
    },
    /// Repeats the chunks of the packet.
    Repeat,
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    let odd = prop_oneof![Just(0_u16), Just(1), Just(3), Just(4), Just(0x7FFF), Just(0xFFFF), any::<u16>()];
    prop_oneof![
        4 => (index(), 1..=u8::MAX).prop_map(|(at, mask)| Change::Flip { at, mask }),
        1 => index().prop_map(|at| Change::Cut { at }),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| Change::Append { bytes }),
        2 => (index(), odd).prop_map(|(at, value)| Change::Number { at, value }),
        1 => Just(Change::Repeat),
    ]
}

/// First byte that may change: the ports and the tag remain.
const FIRST: usize = 12;

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.len() <= FIRST + 2 {
        return;
    }
    let rest = bytes.len() - FIRST;
    match change {
        Change::Flip { at, mask } => bytes[FIRST + at.index(rest)] ^= mask,
        Change::Cut { at } => bytes.truncate(FIRST + at.index(rest)),
        Change::Append { bytes: more } => bytes.extend_from_slice(more),
        Change::Number { at, value } => {
            let at = FIRST + at.index(rest - 1);
            bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        Change::Repeat => bytes.extend_from_within(FIRST..),
    }
}

fn mutate(packet: &Packet, changes: &[Change]) -> Vec<u8> {
    let mut bytes = packet.bytes.clone();
    for change in changes {
        apply(&mut bytes, change);
    }
    fix_checksum(&mut bytes);
    bytes
}

/// Returns the node that a packet was sent to.
fn target(scene: &Scene, packet: &Packet) -> usize {
    usize::from(packet.to == scene.wires.nodes[1].addresses[0])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_without_the_tag_change_nothing(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 0..6),
        wrong in 1_u32..,
    ) {
        let mut scene = Scene::new();
        let log = scene.wires.log.clone();
        // An INIT needs no tag, and a COOKIE-ECHO contains its own proof: other tests cover both.
        let tagged: Vec<_> = log.iter().filter(|p| p.tag() != 0 && p.kind() != 10).collect();
        let packet = tagged[which.index(tagged.len())];
        let to = target(&scene, packet);
        let tag = packet.tag() ^ wrong;
        prop_assume!(!scene.tags.contains(&tag));
        let bytes = with_tag(&mutate(packet, &changes), tag);
        let (before, other) = (scene.state(to), scene.state(1 - to));
        let mark = scene.wires.log.len();
        let handled = scene.inject(to, &bytes);
        // A mutated first chunk may be an INIT under tag zero or a SHUTDOWN-ACK, but it gets at most one answer.
        prop_assert!(scene.wires.since(mark).len() <= 1);
        prop_assert!(!matches!(handled, Handled::Delivered(_) | Handled::New(_)), "{:?}", handled);
        prop_assert_eq!(scene.state(to), before);
        prop_assert_eq!(scene.state(1 - to), other);
        scene.completes("a mutation under a wrong tag");
    }

    #[test]
    fn a_mutated_init_is_answered_at_most_once_and_changes_nothing(
        changes in prop::collection::vec(change(), 1..6),
        stranger: bool,
        wrong in 1_u32..,
    ) {
        let mut scene = Scene::new();
        let init = scene.wires.sent(INIT).remove(0);
        let mut bytes = mutate(&init, &changes);
        if let Some(asked) = bytes.get_mut(16..20) {
            // The initiate tag of the packet differs from that of the association, because a refusal with the association's tag
            // would end it.
            asked.copy_from_slice(&(scene.tags[0] ^ wrong).to_be_bytes());
            fix_checksum(&mut bytes);
        }
        let before = scene.state(1);
        let mark = scene.wires.log.len();
        let from = if stranger { address(0, 99) } else { init.from };
        scene.wires.inject(1, from, init.to, &bytes);
        prop_assert!(scene.wires.since(mark).len() <= 1);
        prop_assert_eq!(scene.state(1), before);
        prop_assert_eq!(scene.wires.nodes[1].count(), 1);
        scene.completes("a mutated INIT");
    }

    #[test]
    fn any_packet_with_the_right_tag_is_handled(
        injections in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(change(), 1..6)),
            1..12,
        ),
    ) {
        let mut scene = Scene::new();
        let log = scene.wires.log.clone();
        for (which, changes) in &injections {
            let packet = &log[which.index(log.len())];
            let to = target(&scene, packet);
            scene.inject(to, &mutate(packet, changes));
            scene.wires.run(Span::from_millis(30));
        }
        scene.wires.loses = Box::new(|_| false);
        // A sender with the right tag may end the association, but neither block nor crash an endpoint.
        scene.wires.run(Span::from_secs(60));
        let mark = scene.wires.log.len();
        scene.wires.run(Span::from_secs(10));
        prop_assert!(scene.wires.since(mark).len() < 200, "{:?}", kinds(scene.wires.since(mark)));
    }
}
