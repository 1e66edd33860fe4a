//! Acknowledgements of data that the receiver cannot renege on.

use anabranch_core::time::Span;
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::{GapBlock, PacketWriter, SackRepr, Tsn};

use crate::rig::craft;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

const FIRST: u64 = (1 << 32) + 1_000;

const BOTH: [&str; 2] = ["cmt+nr-sack"; 2];

/// Returns a pair with one path and a scheme for each side.
fn duo(schemes: [&str; 2], profile: &str) -> Duo {
    duo_with(schemes, profile, |setup| setup)
}

fn duo_with([a, b]: [&str; 2], profile: &str, change: impl FnOnce(Setup) -> Setup) -> Duo {
    let side_b = Setup::new(1, b, profile).sides[B].clone();
    let setup = Setup::new(1, a, profile)
        .with_side(Side::B, |config| *config = side_b)
        .with(|config| config.initial_tsn = Some(1_000));
    let mut duo = Duo::new(change(setup));
    duo.kept = Some(Vec::new());
    duo.connect();
    duo.run(Span::from_secs(1));
    duo
}

/// Returns the types of a packet's chunks.
fn kinds(packet: &Packet) -> Vec<u8> {
    craft::kinds(&packet.bytes)
}

/// Returns the numbers of SACKs (type 3) and NR-SACKs (type 16) that B sent.
fn acknowledgements(duo: &Duo) -> [usize; 2] {
    let sent: Vec<u8> = duo
        .kept
        .iter()
        .flatten()
        .filter(|(_, packet)| packet.from == Side::B)
        .flat_map(|(_, p)| kinds(p))
        .collect();
    [3, 16].map(|kind| sent.iter().filter(|&&other| other == kind).count())
}

/// Returns a pair after ten messages of 1,000 B, of which the first never arrives.
fn with_a_hole(schemes: [&str; 2], profile: &str) -> Duo {
    let mut duo = duo(schemes, profile);
    duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_000));
    duo.send_all(Side::A, 1_000, 10);
    duo.run(Span::from_millis(900));
    assert_eq!(duo.nodes[A].association().association_facts().cumulative_tsn, FIRST - 1);
    duo
}

#[test]
fn peers_that_both_announce_it_acknowledge_with_nr_sacks_alone() {
    let mut duo = duo(BOTH, "rfc9260");
    duo.send_all(Side::A, 1_000, 20);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    duo.run(Span::from_secs(1));
    let [sacks, nr_sacks] = acknowledgements(&duo);
    assert_eq!(sacks, 0);
    assert!(nr_sacks >= 10);
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 0);
}

#[test]
fn a_peer_that_does_not_announce_it_gets_and_sends_sacks() {
    for schemes in [["cmt+nr-sack", "cmt"], ["cmt", "cmt+nr-sack"]] {
        let mut duo = duo(schemes, "rfc9260");
        duo.send_all(Side::A, 1_000, 20);
        assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
        duo.run(Span::from_secs(1));
        let [sacks, nr_sacks] = acknowledgements(&duo);
        assert!(sacks >= 10 && nr_sacks == 0, "{schemes:?}: {sacks}, {nr_sacks}");
    }
}

#[test]
fn nr_acked_data_behind_a_hole_leaves_the_send_buffer() {
    for (schemes, left) in [(BOTH, 1_000), (["cmt", "cmt"], 10_000)] {
        let duo = with_a_hole(schemes, "rfc9260");
        assert_eq!(duo.nodes[A].association().buffered_bytes(), left, "{schemes:?}");
    }
}

#[test]
fn send_buffer_space_is_reported_before_the_hole_is_filled() {
    for (schemes, told) in [(BOTH, true), (["cmt", "cmt"], false)] {
        let limited = |setup: Setup| setup.with_side(Side::A, |a| a.send_buffer_bytes = Some(5_000));
        let mut duo = duo_with(schemes, "rfc9260", limited);
        duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_000));
        let taken = (0..10).filter(|_| duo.send(Side::A, 1_000, 0, false) == Some(Ok(()))).count();
        assert_eq!((taken, duo.refused[A]), (5, true));
        duo.run(Span::from_millis(900));
        assert_eq!(!duo.refused[A], told, "{schemes:?}");
    }
}

/// Returns an acknowledgement from B, of either type, of only the data before the gap.
fn of_nothing(duo: &Duo, non_renegable: bool) -> Packet {
    let kept = duo.kept.iter().flatten().rfind(|(_, packet)| packet.from == Side::B);
    let (_, genuine) = kept.expect("B has sent something");
    let tag = u32::from_be_bytes(genuine.bytes[4..8].try_into().expect("four bytes"));
    let repr = SackRepr { cum_tsn: Tsn::new(999), a_rwnd: 60_000, flags: 0 };
    let no_blocks: [GapBlock; 0] = [];
    let write = |packet: &mut PacketWriter<'_>| {
        if non_renegable {
            packet.nr_sack(&repr, no_blocks, no_blocks, [])
        } else {
            packet.sack(&repr, no_blocks, [])
        }
    };
    let mut bytes = craft::packet(tag, write);
    bytes[..4].copy_from_slice(&genuine.bytes[..4]);
    craft::fix_checksum(&mut bytes);
    Packet { bytes, ..genuine.clone() }
}

#[test]
fn released_data_is_never_reneged() {
    for profile in ["rfc9260", "ns2"] {
        for (schemes, reneged) in [(BOTH, 0), (["cmt", "cmt"], 9)] {
            let mut duo = with_a_hole(schemes, profile);
            // From here on nothing from B arrives, except one SACK that reneges on everything.
            duo.network.set_filter(|packet| packet.from == Side::A && sight::tsns(packet).is_empty());
            let packet = of_nothing(&duo, schemes == BOTH);
            let now = duo.now;
            duo.nodes[A].handle(now, &packet);
            duo.settle();
            duo.run(Span::from_secs(20));
            assert_eq!(duo.nodes[A].association().statistics().reneged, reneged, "{schemes:?}, {profile}");
            duo.network.clear_filter();
            assert!(duo.run_until(Span::from_secs(120), |duo| duo.all_arrived(Side::A)));
        }
    }
}

/// Returns the renegable and non-renegable blocks of the latest NR-SACK.
fn latest_blocks(duo: &Duo) -> [Vec<(u16, u16)>; 2] {
    let latest = duo.kept.iter().flatten().rev().find_map(|(_, packet)| sight::nr_blocks(packet));
    latest.expect("there was one")
}

#[test]
fn receiver_that_keeps_all_reports_every_block_as_nr() {
    let duo = with_a_hole(BOTH, "rfc9260");
    assert_eq!(latest_blocks(&duo), [vec![], vec![(2, 10)]]);
}

#[test]
fn a_receiver_that_keeps_what_it_delivered_splits_its_blocks() {
    let schemes = ["cmt+nr-sack(keeps=delivered)"; 2];
    let mut duo = duo(schemes, "rfc9260");
    duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_000));
    // TSN 1000 is lost, so 1001 on its stream waits; 1002 and 1003 on another are delivered, and so is 1005, unordered.
    for (stream, unordered) in [(0, false), (0, false), (1, false), (1, false), (0, false), (0, true)] {
        duo.send(Side::A, 1_400, stream, unordered).expect("it is up").expect("it takes it");
    }
    duo.run(Span::from_millis(500));
    // An acknowledgement is sent before the application has read the data, so one more reports the last message.
    duo.send_all(Side::A, 1_400, 1);
    duo.run(Span::from_millis(350));
    assert_eq!(latest_blocks(&duo), [vec![(2, 2), (5, 5), (7, 7)], vec![(3, 4), (6, 6)]]);
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 4 * 1_400);
    duo.network.clear_filter();
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn receiver_reports_unread_data_in_renegable_blocks() {
    let mut duo = duo(["cmt+nr-sack(keeps=delivered)"; 2], "rfc9260");
    duo.reading[B] = Reading::ByHand;
    duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_000));
    for stream in [0, 1, 1] {
        duo.send(Side::A, 1_400, stream, false).expect("it is up").expect("it takes it");
    }
    duo.run(Span::from_millis(900));
    assert_eq!(latest_blocks(&duo), [vec![(2, 3)], vec![]]);
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 3 * 1_400);
}

/// Returns the bytes of the INIT and the INIT-ACK that do not depend on the cookie.
fn openings(scheme: &str) -> (Vec<u8>, Vec<u8>) {
    let duo = duo([scheme; 2], "rfc9260");
    let first = |kind| {
        let found = duo.kept.iter().flatten().find(|(_, packet)| kinds(packet) == [kind]);
        found.expect("it was sent").1.bytes.clone()
    };
    (first(1), first(2))
}

#[test]
fn other_schemes_announce_no_nr_sack() {
    let (init, _) = openings("sctp");
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let components = COMPONENTS.iter().map(|component| component.example(PRESETS));
    for scheme in presets.chain(components).filter(|scheme| !scheme.contains("nr-sack")) {
        assert_eq!(openings(&scheme).0, init, "{scheme}");
    }
    let (announcing, answer) = openings("cmt+nr-sack");
    assert_ne!(announcing, init);
    // Supported Extensions (0x8008) name chunk type 16 (RFC 5061 section 4.2.7).
    let names =
        |bytes: &[u8]| bytes.windows(2).position(|pair| pair == [0x80, 0x08]).map(|at| bytes[at..].to_vec());
    for bytes in [announcing, answer] {
        let parameter = names(&bytes).expect("extensions are announced");
        let length = usize::from(parameter[3]);
        assert!(parameter[4..length].contains(&16), "{parameter:?}");
    }
    assert!(names(&init).is_none_or(|parameter| !parameter[4..usize::from(parameter[3])].contains(&16)));
}
