//! Table of malformed packets and their outcomes.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Discard, Handled};
use anabranch_wire::{
    Cause, ChunkType, DataFlags, DataRepr, InitRepr, PacketView, SackRepr, Ssn, StreamId, Tsn,
};

use crate::bad_input::{Scene, assert_same, kinds};
use crate::rig::association;
use crate::rig::craft::{
    ABORT, COOKIE_ACK, COOKIE_ECHO, ERROR, HEARTBEAT_ACK, INIT, INIT_ACK, SACK, fix_checksum, packet, raw,
    with_tag,
};
use crate::rig::wires::{Packet, Wires};

/// Expected outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The whole packet is dropped for this reason, without an answer.
    Dropped(Discard),
    /// A chunk of it is dropped for this reason, without an answer.
    Counted(Discard),
    /// A chunk is dropped for this reason and answered with this one.
    CountedAndAnswered(Discard, u8),
    /// The packet is answered with a chunk of this type and changes nothing else.
    Answered(u8),
    /// The packet changes nothing, and no counter increases.
    Ignored,
}

use Fate::{Answered, Counted, CountedAndAnswered, Dropped, Ignored};

type Bad = (&'static str, fn(&Scene) -> Vec<u8>, Fate);

/// Returns the tag of the node that receives the packets.
fn tag(scene: &Scene) -> u32 {
    scene.tags[1]
}

fn shutdown_complete_of(scene: &Scene) -> Vec<u8> {
    packet(tag(scene), |w| w.shutdown_complete(false))
}

fn data(scene: &Scene, tsn: u32, stream: u16, payload: &[u8]) -> Vec<u8> {
    let (stream, ssn) = (StreamId::new(stream), Ssn::new(9));
    let repr = DataRepr { flags: DataFlags::WHOLE, tsn: Tsn::new(tsn), stream, ssn, ppid: 0 };
    packet(tag(scene), |w| w.data(&repr, payload))
}

/// Returns a packet with only this chunk, whose header can state any length.
fn chunk(scene: &Scene, kind: u8, length: u16, value: &[u8]) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    raw(tag(scene), &[&[kind, 0, high, low][..], value].concat())
}

const FRAMING: &[Bad] = &[
    ("nothing at all", |_| Vec::new(), Dropped(Discard::Malformed)),
    ("one byte", |_| vec![0x13], Dropped(Discard::Malformed)),
    ("one byte less than a header", |s| shutdown_complete_of(s)[..11].to_vec(), Dropped(Discard::Malformed)),
    ("no chunk", |s| raw(tag(s), &[]), Dropped(Discard::Malformed)),
    ("three bytes of a chunk", |s| raw(tag(s), &[4, 0, 0]), Dropped(Discard::Malformed)),
    ("a chunk of length zero", |s| chunk(s, 0, 0, &[]), Dropped(Discard::Malformed)),
    ("a chunk shorter than its header", |s| chunk(s, 4, 3, &[]), Dropped(Discard::Malformed)),
    ("a chunk longer than the packet", |s| chunk(s, 4, 9, &[0, 1, 0, 4]), Dropped(Discard::Malformed)),
    ("a chunk of the greatest length", |s| chunk(s, 0, 0xFFFF, &[0; 40]), Dropped(Discard::Malformed)),
    ("a wrong checksum", wrong_checksum, Dropped(Discard::Checksum)),
    ("no checksum", no_checksum, Dropped(Discard::Checksum)),
    ("an Adler-32 checksum", old_checksum, Dropped(Discard::Checksum)),
    ("a wrong tag", |s| with_tag(&shutdown_complete_of(s), tag(s) ^ 8), Dropped(Discard::VerificationTag)),
    ("the tag zero", |s| with_tag(&data(s, 1, 0, b"x"), 0), Dropped(Discard::VerificationTag)),
    ("the peer's own tag", |s| with_tag(&data(s, 1, 0, b"x"), s.tags[0]), Dropped(Discard::VerificationTag)),
    ("another port", another_port, Dropped(Discard::OutOfTheBlue)),
    ("a good chunk, then one of length zero", |s| trailing(s, &[7, 0, 0, 0]), BOTH),
    ("a good chunk, then one too long", |s| trailing(s, &[7, 0, 0, 9, 1, 2, 3, 4]), BOTH),
    ("a good chunk, then half a header", |s| trailing(s, &[7, 0]), BOTH),
];

const BOTH: Fate = CountedAndAnswered(Discard::Malformed, HEARTBEAT_ACK);

fn wrong_checksum(scene: &Scene) -> Vec<u8> {
    let mut bytes = shutdown_complete_of(scene);
    bytes[9] ^= 0x10;
    bytes
}

fn no_checksum(scene: &Scene) -> Vec<u8> {
    let mut bytes = shutdown_complete_of(scene);
    bytes[8..12].fill(0);
    bytes
}

/// Returns a packet with the checksum of RFC 2960 (Adler-32), which RFC 3309 replaced.
fn old_checksum(scene: &Scene) -> Vec<u8> {
    let mut bytes = no_checksum(scene);
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    bytes[8..12].copy_from_slice(&(high << 16 | low).to_be_bytes());
    bytes
}

fn another_port(scene: &Scene) -> Vec<u8> {
    let mut bytes = shutdown_complete_of(scene);
    bytes[3] ^= 1;
    fix_checksum(&mut bytes);
    bytes
}

fn trailing(scene: &Scene, rest: &[u8]) -> Vec<u8> {
    let good = packet(tag(scene), |w| w.heartbeat(b"info"));
    raw(tag(scene), &[&good[12..], rest].concat())
}

const CHUNKS: &[Bad] = &[
    ("DATA cut off in its header", |s| chunk(s, 0, 12, &[0; 8]), Counted(Discard::Malformed)),
    ("INIT-ACK cut off in its header", |s| chunk(s, 2, 12, &[0; 8]), Counted(Discard::Malformed)),
    ("SACK cut off in its header", |s| chunk(s, 3, 12, &[0; 8]), Counted(Discard::Malformed)),
    ("HEARTBEAT without information", |s| chunk(s, 4, 4, &[]), Counted(Discard::Malformed)),
    ("HEARTBEAT with something else", |s| chunk(s, 4, 8, &[0, 2, 0, 4]), Counted(Discard::Malformed)),
    ("HEARTBEAT with too long information", |s| chunk(s, 4, 8, &[0, 1, 0, 5]), Counted(Discard::Malformed)),
    ("SHUTDOWN without a TSN", |s| chunk(s, 7, 4, &[]), Counted(Discard::Malformed)),
    ("SHUTDOWN-ACK with a value", |s| chunk(s, 8, 8, &[0; 4]), Counted(Discard::Malformed)),
    ("COOKIE-ACK with a value", |s| chunk(s, 11, 8, &[0; 4]), Counted(Discard::Malformed)),
    ("FORWARD-TSN with half a stream", |s| chunk(s, 192, 10, &[0; 8]), Counted(Discard::Malformed)),
    ("INIT-ACK when up", init_ack, Counted(Discard::Unexpected)),
    ("COOKIE-ACK when up", |s| packet(tag(s), |w| w.cookie_ack()), Counted(Discard::Unexpected)),
    ("SHUTDOWN-ACK when up", |s| packet(tag(s), |w| w.shutdown_ack()), Counted(Discard::Unexpected)),
    ("SHUTDOWN-COMPLETE when up", shutdown_complete_of, Counted(Discard::Unexpected)),
    ("INIT under a tag", |s| with_tag(&init(), tag(s)), Dropped(Discard::VerificationTag)),
    ("INIT behind another chunk", |s| trailing(s, &init()[12..]), ODD_SECOND),
    ("COOKIE-ECHO behind another chunk", |s| trailing(s, &[10, 0, 0, 8, 1, 2, 3, 4]), ODD_SECOND),
    ("AUTH that nobody asked for", |s| chunk(s, 15, 12, &[0; 8]), Counted(Discard::Unexpected)),
    ("DTLS that nobody asked for", dtls, Answered(ERROR)),
    ("DTLS without a record", |s| chunk(s, 0x41, 4, &[]), Answered(ERROR)),
    ("a wrong nonce", |s| answer(s, &[9; 16]), Counted(Discard::Unexpected)),
    ("a nonce for a path that does not exist", |s| answer(s, &[0xFF; 16]), Counted(Discard::Unexpected)),
    ("an answer of another length", |s| answer(s, &[9; 15]), Counted(Discard::Unexpected)),
    ("an answer without information", |s| answer(s, &[]), Counted(Discard::Unexpected)),
    ("ERROR without a cause", |s| chunk(s, 9, 4, &[]), Ignored),
    ("ERROR with a cause cut off", |s| chunk(s, 9, 8, &[0, 3, 0, 9]), Ignored),
    ("ERROR that calls a cookie stale", stale_report, Ignored),
    ("a chunk type to be passed over", |s| chunk(s, 0x9F, 4, &[]), Ignored),
    ("a chunk type to stop at", |s| chunk(s, 0x1F, 4, &[]), Ignored),
    ("a chunk type to report", |s| chunk(s, 0xDF, 4, &[]), Answered(ERROR)),
    ("a cookie of noise", |s| packet(tag(s), |w| w.cookie_echo(&[7; 150])), Dropped(Discard::CookieForged)),
    ("an empty cookie", |s| packet(tag(s), |w| w.cookie_echo(&[])), Dropped(Discard::CookieForged)),
    ("FORWARD-TSN far ahead", |s| forward(s, 70_000), Counted(Discard::Unexpected)),
    ("FORWARD-TSN half around", |s| forward(s, 0x7FFF_FFF0), Counted(Discard::Unexpected)),
    ("FORWARD-TSN of the past", |s| forward(s, -1_i32 as u32), Answered(SACK)),
];

const ODD_SECOND: Fate = CountedAndAnswered(Discard::Unexpected, HEARTBEAT_ACK);

fn init() -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: 99,
        a_rwnd: 10_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn::new(5),
    };
    packet(0, |w| w.init(&repr, []))
}

/// Returns a record of epoch 3 with noise, long enough for a chunk and a tag.
fn dtls(scene: &Scene) -> Vec<u8> {
    let record = [&[0, 0x2B, 1, 2][..], &[7; 21]].concat();
    chunk(scene, 0x41, 29, &record)
}

fn init_ack(scene: &Scene) -> Vec<u8> {
    let old = scene.wires.sent(INIT_ACK).remove(0);
    with_tag(&old.bytes, tag(scene))
}

fn answer(scene: &Scene, info: &[u8]) -> Vec<u8> {
    packet(tag(scene), |w| w.heartbeat_ack(info))
}

fn stale_report(scene: &Scene) -> Vec<u8> {
    packet(tag(scene), |w| w.error([Cause::StaleCookie { staleness_us: 5 }]))
}

/// Returns a FORWARD-TSN relative to the TSNs that the receiver has in order, which are none.
fn forward(scene: &Scene, by: u32) -> Vec<u8> {
    let (_, cumulative) = scene.tsns();
    packet(tag(scene), |w| w.forward_tsn(Tsn::new(cumulative.wrapping_add(by)), []))
}

fn try_out(&(what, make, fate): &Bad) {
    let mut scene = Scene::new();
    let bytes = make(&scene);
    let (before, mark) = (scene.state(1), scene.wires.log.len());
    let discards = *scene.wires.nodes[1].endpoint.discards();
    let handled = scene.inject(1, &bytes);
    let counted = |reason| {
        let now = scene.wires.nodes[1].endpoint.discards();
        now.of(reason) == discards.of(reason) + 1 && now.total() == discards.total() + 1
    };
    let answers = kinds(scene.wires.since(mark));
    match fate {
        Dropped(reason) => {
            assert_eq!(handled, Handled::Discarded(reason), "{what}");
            assert!(counted(reason) && answers.is_empty(), "{what}: {answers:?}");
        }
        Counted(reason) => {
            assert!(counted(reason) && answers.is_empty(), "{what}: {answers:?}");
        }
        CountedAndAnswered(reason, kind) => {
            assert!(counted(reason) && answers == [kind], "{what}: {answers:?}");
        }
        Answered(kind) => assert_eq!(answers, [kind], "{what}"),
        Ignored => assert_eq!(answers, Vec::<u8>::new(), "{what}"),
    }
    if matches!(fate, Answered(_) | Ignored) {
        assert_eq!(scene.wires.nodes[1].endpoint.discards(), &discards, "{what}");
    }
    // An answer may change the retained memory, and a SACK the record of the last report.
    if !matches!(fate, Answered(_) | CountedAndAnswered(..)) {
        assert_same(&before, &scene.state(1), what);
    }
    scene.completes(what);
}

//= docs/rfc9260.txt#section-6.8
//= type=test
//# If it is not, the receiver MUST treat the packet as an invalid SCTP packet.
#[test]
fn invalid_packets_are_dropped_and_the_transfer_continues() {
    FRAMING.iter().for_each(try_out);
}

#[test]
fn senseless_chunks_are_dropped_and_the_transfer_continues() {
    CHUNKS.iter().for_each(try_out);
}

#[test]
fn every_packet_of_a_handshake_cut_short_anywhere_changes_nothing() {
    let handshake: Vec<Packet> = Scene::new().wires.log.into_iter().take(6).collect();
    for original in &handshake {
        let mut scene = Scene::new();
        let to = usize::from(original.to == scene.wires.nodes[1].addresses[0]);
        let before = scene.state(to);
        for length in 0..original.bytes.len() {
            // A cut within the padding is allowed.
            let mut bytes = original.bytes[..length].to_vec();
            fix_checksum(&mut bytes);
            let whole = PacketView::parse(&bytes).is_ok_and(|v| v.chunks().next().is_some_and(|c| c.is_ok()));
            if !whole {
                let handled = scene.inject(to, &bytes);
                assert!(matches!(handled, Handled::Discarded(_)), "{handled:?} at {length}");
            }
        }
        assert_same(&before, &scene.state(to), "state");
        scene.completes("packets cut short");
    }
}

//= docs/rfc9260.txt#section-6.2
//= type=test
//# If an endpoint receives a DATA chunk with no user data (i.e., the Length field is set to 16), it SHOULD send an ABORT
//# chunk with a "No User Data" error cause.
#[test]
fn empty_data_chunk_ends_the_association_with_no_user_data() {
    let mut scene = Scene::new();
    let (highest, _) = scene.tsns();
    let bytes = data(&scene, highest.wrapping_add(1), 0, b"");
    scene.inject(1, &bytes);
    let abort = scene.wires.log.last().expect("it is answered");
    assert_eq!(abort.kinds(), [ABORT]);
    assert_eq!(abort.bytes[16..24], [&[0, 9, 0, 8][..], &highest.wrapping_add(1).to_be_bytes()].concat());
    let node = &scene.wires.nodes[1];
    assert_eq!(node.endpoint.discards().of(Discard::Unexpected), 1);
    let ended = |e: &AssociationEvent| matches!(e, AssociationEvent::Aborted(AbortReason::Protocol(_)));
    assert!(node.events.iter().any(|(_, e)| ended(e)));
    // The peer can connect again at once.
    scene.wires.run(Span::from_secs(1));
    let id = scene.wires.nodes[0].endpoint.associations().next().expect("it is not forgotten");
    assert!(scene.wires.nodes[0].endpoint.forget(id));
    scene.wires.loses = Box::new(|_| false);
    scene.wires.connect(0, 1);
    scene.wires.run(Span::from_secs(1));
    assert_eq!(scene.wires.nodes[1].times_told(&AssociationEvent::Connected), 2);
}

//= docs/rfc9260.txt#section-6.5
//= type=test
//# If an endpoint receives a DATA chunk with an invalid stream identifier, it SHOULD acknowledge the reception of the
//# DATA chunk following the normal procedure, immediately send an ERROR chunk with cause set to "Invalid Stream
//# Identifier" (see Section 3.3.10), and discard the DATA chunk.
//= docs/rfc9260.txt#section-6.2
//= type=test
//# The SCTP endpoint MUST always acknowledge the reception of each valid DATA chunk when the DATA chunk received is
//# inside its receive window.
#[test]
fn data_on_a_stream_that_does_not_exist_is_acknowledged_and_reported() {
    for stream in [8, 9, u16::MAX] {
        let mut scene = Scene::new();
        // The chunk takes the place of the missing one.
        let (_, cumulative) = scene.tsns();
        let bytes = data(&scene, cumulative.wrapping_add(1), stream, b"astray");
        let mark = scene.wires.log.len();
        scene.inject(1, &bytes);
        // The chunk closes the gap, so its acknowledgement may be delayed as usual.
        scene.wires.run(Span::from_millis(200));
        let answers = kinds(scene.wires.since(mark));
        assert!(answers.contains(&ERROR) && answers.contains(&SACK), "{answers:?}");
        let [high, low] = stream.to_be_bytes();
        let error = scene.wires.since(mark).iter().find(|p| p.kind() == ERROR).expect("it is there");
        assert_eq!(error.bytes[16..24], [0, 1, 0, 8, high, low, 0, 0]);
        assert_eq!(scene.wires.nodes[1].endpoint.discards().of(Discard::Unexpected), 1);
        // The real chunk with that TSN now counts as a duplicate, and the rest of its stream waits in vain. But the association
        // lives, and other streams continue.
        scene.wires.loses = Box::new(|_| false);
        scene.wires.run(Span::from_secs(10));
        assert_eq!(scene.wires.nodes[0].only().buffered_bytes(), 0);
        assert!(scene.wires.nodes[1].only().is_established());
    }
}

#[test]
fn data_too_far_ahead_to_be_acknowledged_is_dropped() {
    for ahead in [65_536, 1 << 20, 0x7FFF_FFF0] {
        let mut scene = Scene::new();
        let (_, cumulative) = scene.tsns();
        let bytes = data(&scene, cumulative.wrapping_add(ahead), 0, b"far");
        scene.inject(1, &bytes);
        assert_eq!(scene.wires.nodes[1].only().statistics().chunks_dropped, 1);
        scene.completes("DATA far ahead");
    }
}

//= docs/rfc9260.txt#section-6.2
//= type=test
//# The duplicate TSN number(s) SHOULD be reported in the SACK chunk as duplicate.
#[test]
fn old_data_is_reported_as_duplicate_only() {
    for behind in [0, 1, 1000, 0x7FFF_FFF0] {
        let mut scene = Scene::new();
        let (_, cumulative) = scene.tsns();
        let bytes = data(&scene, cumulative.wrapping_sub(behind), 0, b"old");
        let held = scene.wires.nodes[1].only().held_bytes();
        scene.inject(1, &bytes);
        assert_eq!(scene.wires.nodes[1].only().held_bytes(), held);
        assert_eq!(scene.wires.nodes[1].only().statistics().duplicates_received, 1);
        scene.completes("DATA of the past");
    }
}

#[test]
fn a_shutdown_for_what_was_never_sent_closes_but_acknowledges_nothing() {
    // Some implementations put the wrong number there: see Association::handle_shutdown.
    for by in [1, 1000, 0x7FFF_FF00] {
        let mut scene = Scene::new();
        let (highest, _) = scene.tsns();
        let buffered = scene.wires.nodes[0].only().buffered_bytes();
        let tag = scene.tags[0];
        let bytes = packet(tag, |w| w.shutdown(Tsn::new(highest.wrapping_add(by))));
        scene.inject(0, &bytes);
        assert_eq!(scene.wires.nodes[0].only().buffered_bytes(), buffered);
        scene.wires.loses = Box::new(|_| false);
        scene.wires.run(Span::from_secs(10));
        // All data was delivered before the end.
        let association = scene.wires.nodes[1].only_mut();
        assert_eq!(association.readable_bytes(), buffered);
    }
}

#[test]
fn a_replayed_cookie_is_acknowledged_and_changes_nothing() {
    let mut scene = Scene::new();
    let before = scene.state(1);
    let echo = scene.wires.sent(COOKIE_ECHO).remove(0);
    let mark = scene.wires.log.len();
    for _ in 0..10 {
        scene.wires.replay(&echo);
    }
    assert_eq!(kinds(scene.wires.since(mark)), [COOKIE_ACK; 10]);
    assert_same(&before, &scene.state(1), "state");
    // The age of the cookie does not matter while the association exists (RFC 9260 section 5.2.4).
    scene.wires.run(Span::from_secs(100));
    scene.wires.replay(&echo);
    assert_eq!(scene.wires.nodes[1].count(), 1);
    scene.completes("replayed cookies");
}

//= docs/rfc9260.txt#section-4
//= type=test
//# Or, if the received State Cookie is expired (see Section 5.1.5), the receiver MUST send back an ERROR chunk.
//= docs/rfc9260.txt#section-5.1.5
//= type=test
//# If the elapsed time is longer than the lifespan carried in the State Cookie, then the packet, including the COOKIE
//# ECHO chunk and any attached DATA chunks, SHOULD be discarded, and the endpoint MUST transmit an ERROR chunk with a
//# "Stale Cookie" error cause to the peer endpoint.
#[test]
fn a_stale_cookie_of_a_stranger_is_reported_and_opens_nothing() {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == COOKIE_ECHO || p.kind() == INIT);
    let stranger = wires.add(3, 1, association("sctp"));
    let (from, to) = (wires.nodes[stranger].addresses[0], wires.nodes[1].addresses[0]);
    wires.inject(1, from, to, &init());
    let ack = wires.sent(INIT_ACK).remove(0);
    let cookie = cookie_of(&ack);
    let tag = u32::from_be_bytes(ack.bytes[16..20].try_into().expect("four bytes"));
    wires.run(Span::from_secs(61));
    let mark = wires.log.len();
    let handled = wires.inject(1, from, to, &packet(tag, |w| w.cookie_echo(&cookie)));
    assert_eq!(handled, Handled::Discarded(Discard::CookieStale));
    assert_eq!((kinds(wires.since(mark)), wires.nodes[1].count()), (vec![ERROR], 0));
    assert_eq!(wires.log.last().map(Packet::tag), Some(99), "under the tag of the INIT");
}

/// Returns the cookie in an INIT-ACK.
fn cookie_of(ack: &Packet) -> Vec<u8> {
    let view = PacketView::parse(&ack.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(anabranch_wire::Chunk::InitAck(init)) = chunk.decode() else { panic!("no INIT-ACK") };
    let cookie = init.params().find_map(|param| match param {
        Ok(anabranch_wire::Param::StateCookie(cookie)) => Some(cookie.to_vec()),
        _ => None,
    });
    cookie.expect("it has one")
}

#[test]
fn short_chunk_of_any_type_is_handled() {
    for kind in 0..=u8::MAX {
        for length in [0, 1, 3, 4, 8, 12, 16, 20, 24] {
            let mut scene = Scene::new();
            let value = vec![0xA5; length];
            let bytes = packet(tag(&scene), |w| w.raw_parts(ChunkType(kind), 0xFF, &value));
            scene.inject(1, &bytes);
            let association = scene.wires.nodes[1].only();
            let ended = association.is_closed();
            let may_end = kind == ABORT || kind == SACK || kind == 0;
            assert!(!ended || may_end, "chunk {kind} of {length} bytes");
        }
    }
}

//= docs/rfc9260.txt#section-6
//= type=test
//# A SACK chunk in the CLOSED state is out of the blue and SHOULD be processed according to the rules in Section 8.4.
#[test]
fn sack_with_an_unknown_tag_is_answered_once_only() {
    let mut scene = Scene::new();
    let stranger = crate::rig::address(0, 77);
    let local = scene.wires.nodes[1].addresses[0];
    let bytes = packet(12345, |w| w.sack(&SackRepr::default(), [], []));
    let before = scene.state(1);
    assert_eq!(scene.wires.inject(1, stranger, local, &bytes), Handled::Replied);
    assert_same(&before, &scene.state(1), "state");
    scene.completes("a stranger's SACK");
}
