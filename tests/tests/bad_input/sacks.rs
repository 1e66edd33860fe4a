//! SACKs with wrong content.

use anabranch_core::{AbortReason, AssociationEvent, Discard};
use anabranch_wire::{ChunkType, GapBlock, SackRepr, Tsn};

use crate::bad_input::{Scene, assert_same, kinds, without};
use crate::rig::craft::{ABORT, packet};

/// Beginning of the transmission state in the debug format of an association.
const TRANSMISSION: &str = "transmission: Transmission {";

/// Returns the content of a correct SACK without blocks.
fn honest(scene: &Scene) -> SackRepr {
    let window = scene.wires.nodes[0].only().association_facts().peer_window_advertised.get();
    SackRepr { cum_tsn: Tsn::new(scene.tsns().1), a_rwnd: window as u32, flags: 0 }
}

fn blocks(list: &[(u16, u16)]) -> Vec<GapBlock> {
    list.iter().map(|&(start, end)| GapBlock { start, end }).collect()
}

/// Returns the sender's state after one SACK with these blocks and duplicates.
fn after(list: &[(u16, u16)], duplicates: &[u32]) -> (Scene, String) {
    let mut scene = Scene::new();
    let repr = honest(&scene);
    let duplicates = duplicates.iter().map(|&tsn| Tsn::new(tsn));
    let bytes = packet(scene.tags[0], |w| w.sack(&repr, blocks(list), duplicates));
    scene.inject(0, &bytes);
    let state = scene.state(0);
    (scene, state)
}

#[test]
fn gap_blocks_of_unsent_tsns_are_ignored() {
    let lies: [&[(u16, u16)]; 9] = [
        &[(0, 0)],
        &[(0, 3)],
        &[(3, 2)],
        &[(u16::MAX, 1)],
        &[(4, 4)],
        &[(2, 4)],
        &[(2, u16::MAX)],
        &[(u16::MAX, u16::MAX)],
        &[(0, u16::MAX), (9, 8), (3, 2), (5, 6), (1, u16::MAX)],
    ];
    let (scene, plain) = after(&[], &[]);
    scene.completes("no blocks");
    for list in lies {
        let (scene, state) = after(list, &[]);
        assert_same(&plain, &state, &format!("{list:?}"));
        assert!(scene.wires.nodes[0].only().is_established());
        scene.completes("lying blocks");
    }
}

#[test]
fn overlapping_or_unordered_gap_blocks_count_by_coverage() {
    let same: [&[(u16, u16)]; 6] = [
        &[(2, 2), (3, 3)],
        &[(3, 3), (2, 2)],
        &[(2, 3), (2, 3), (2, 3)],
        &[(2, 3), (3, 3)],
        &[(2, 2), (2, 3), (0, 9), (3, 3)],
        &[(2, 3), (4, 5), (60_000, 60_001)],
    ];
    let (scene, plain) = after(&[(2, 3)], &[]);
    scene.completes("one block");
    for list in same {
        let (scene, state) = after(list, &[]);
        assert_same(&plain, &state, &format!("{list:?}"));
        scene.completes("odd blocks");
    }
}

#[test]
fn as_many_blocks_as_a_chunk_can_hold_count_once() {
    let many: Vec<_> = std::iter::repeat_n((2, 3), 16_000).collect();
    let (_, plain) = after(&[(2, 3)], &[]);
    let (scene, state) = after(&many, &[]);
    assert_same(&plain, &state, "state");
    scene.completes("many blocks");
}

#[test]
fn duplicate_reports_of_unsent_tsns_are_only_counted() {
    let (_, plain) = after(&[], &[]);
    let (scene, state) = after(&[], &[0, 1, u32::MAX, 0x8000_0000]);
    assert_same(&plain, &state, "state");
    assert_eq!(scene.wires.nodes[0].only().statistics().duplicates_reported, 4);
    scene.completes("duplicates of nothing");
}

#[test]
fn counts_that_do_not_match_the_length_make_the_chunk_malformed() {
    for (gaps, duplicates, room) in [(u16::MAX, u16::MAX, 0), (u16::MAX, 0, 40), (0, u16::MAX, 40), (1, 1, 4)]
    {
        let mut scene = Scene::new();
        let repr = honest(&scene);
        let mut value = Vec::new();
        value.extend(repr.cum_tsn.get().to_be_bytes());
        value.extend(repr.a_rwnd.to_be_bytes());
        value.extend(gaps.to_be_bytes());
        value.extend(duplicates.to_be_bytes());
        value.resize(value.len() + room, 1);
        let before = scene.state(0);
        let bytes = packet(scene.tags[0], |w| w.raw_parts(ChunkType::SACK, 0, &value));
        scene.inject(0, &bytes);
        assert_eq!(scene.wires.nodes[0].endpoint.discards().of(Discard::Malformed), 1);
        assert_same(&before, &scene.state(0), "state");
        scene.completes("wrong counts");
    }
}

#[test]
fn old_sack_is_ignored() {
    for behind in [1, 2, 70_000, 0x7FFF_FF00] {
        let mut scene = Scene::new();
        let (_, cumulative) = scene.tsns();
        let repr = SackRepr { cum_tsn: Tsn::new(cumulative.wrapping_sub(behind)), a_rwnd: 7, flags: 0 };
        // The old SACK changes only the transmission state: it is an opportunity to send.
        let before = without(&scene.state(0), TRANSMISSION, '}');
        let bytes = packet(scene.tags[0], |w| w.sack(&repr, blocks(&[(1, 3)]), []));
        scene.inject(0, &bytes);
        assert_eq!(scene.wires.nodes[0].only().statistics().sacks_ignored, 1);
        assert_same(&before, &without(&scene.state(0), TRANSMISSION, '}'), "state");
        scene.completes("an old SACK");
    }
}

//= docs/rfc9260.txt#section-12.4
//= type=test
//# An SCTP implementation MUST abort the association if it receives a SACK chunk acknowledging a TSN that has not been
//# sent.
#[test]
fn sack_of_unsent_tsn_ends_the_association_without_other_effect() {
    for ahead in [1, 2, 1000, 0x7FFF_FF00] {
        let mut scene = Scene::new();
        let (highest, _) = scene.tsns();
        let buffered = scene.wires.nodes[0].only().buffered_bytes();
        let repr = SackRepr { cum_tsn: Tsn::new(highest.wrapping_add(ahead)), ..honest(&scene) };
        let bytes = packet(scene.tags[0], |w| w.sack(&repr, [], []));
        let mark = scene.wires.log.len();
        scene.inject(0, &bytes);
        assert_eq!(kinds(scene.wires.since(mark)), [ABORT]);
        let node = &scene.wires.nodes[0];
        assert_eq!(node.endpoint.discards().of(Discard::BadSack), 1);
        assert_eq!(node.only().buffered_bytes(), buffered, "nothing counts as acknowledged");
        let ended = |e: &AssociationEvent| matches!(e, AssociationEvent::Aborted(AbortReason::Protocol(_)));
        assert!(node.events.iter().any(|(_, e)| ended(e)));
    }
}

#[test]
fn window_of_any_size_never_stalls_for_good() {
    for a_rwnd in [0, 1, 1000, u32::MAX] {
        let mut scene = Scene::new();
        let repr = SackRepr { a_rwnd, ..honest(&scene) };
        let bytes = packet(scene.tags[0], |w| w.sack(&repr, [], []));
        scene.inject(0, &bytes);
        scene.completes("an odd window");
    }
}
