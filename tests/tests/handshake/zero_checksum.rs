//! Zero checksums (RFC 9653): announcement, packets that need a checksum, and zero checksums that are not accepted.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, ErrorDetection, Handled};
use anabranch_tests::duo::{Duo, PORT, Setup};
use anabranch_tests::hostile::craft::{
    ABORT, COOKIE_ECHO, INIT, INIT_ACK, SHUTDOWN_COMPLETE, kinds, packet_between,
};
use anabranch_tests::network::{Link, Packet, Side};
use anabranch_wire::{
    Chunk, ChunkType, ErrorDetectionMethod, InitRepr, NoSpace, PacketView, PacketWriter, Param, RawParam, Tsn,
};

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// Type of ASCONF.
const ASCONF: u8 = ChunkType::ASCONF.0;

/// Writer of one chunk.
type WriteChunk = fn(&mut PacketWriter<'_>) -> Result<(), NoSpace>;

/// Returns a setup in which these sides have DTLS below SCTP.
fn over_dtls(scheme: &str, sides: &[Side]) -> Setup {
    sides.iter().fold(Setup::new(1, scheme, "rfc9260"), |setup, side| {
        setup.with_side(*side, |config| config.error_detection = ErrorDetection::LowerLayerDtls)
    })
}

/// Returns a connected pair that keeps all packets.
fn connected(setup: Setup) -> Duo {
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.connect();
    let up = |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(|a| a.is_established()));
    assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
    duo
}

/// Sends in both directions, and waits until all data has arrived.
fn exchange(duo: &mut Duo) {
    for side in Side::BOTH {
        duo.send_all(side, 3_000, 10);
    }
    let done = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.all_arrived(side));
    assert!(duo.run_until(Span::from_secs(300), done), "data does not arrive");
}

fn shut_down(duo: &mut Duo) {
    duo.shutdown(Side::A);
    let over = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.is_over(side));
    assert!(duo.run_until(Span::from_secs(60), over), "the shutdown takes too long");
}

fn kept(duo: &Duo, from: Side) -> impl Iterator<Item = &Packet> {
    let kept = duo.kept.as_ref().expect("packets are kept").iter().map(|(_, packet)| packet);
    kept.filter(move |packet| packet.from == from)
}

fn checksum(bytes: &[u8]) -> u32 {
    PacketView::parse(bytes).expect("a packet").checksum_field()
}

fn with_checksum(mut bytes: Vec<u8>, checksum: u32) -> Vec<u8> {
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns the first tag of the packets from a side that is not zero.
fn tag(duo: &Duo, from: Side) -> u32 {
    let tags = kept(duo, from).map(|p| PacketView::parse(&p.bytes).expect("a packet").header());
    tags.map(|header| header.verification_tag).find(|tag| *tag != 0).expect("it has sent a packet")
}

/// Passes a packet of A to B.
fn inject(duo: &mut Duo, bytes: Vec<u8>) -> Handled {
    let (source, destination) = (duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 0));
    duo.deliver(&Packet { from: Side::A, source, destination, bytes, may_fragment: false })
}

fn write(tag: u32, chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
    packet_between([PORT, PORT], tag, chunks)
}

#[test]
fn zero_checksums_are_sent_only_if_both_sides_announce_dtls() {
    for sides in [&[][..], &[Side::A], &[Side::B], &Side::BOTH] {
        let both = sides.len() == 2;
        let mut duo = connected(over_dtls("cmt", sides));
        exchange(&mut duo);
        for side in Side::BOTH {
            assert_eq!(duo.nodes[side.index()].association().sends_zero_checksums(), both, "{sides:?}");
        }
        shut_down(&mut duo);
        let packets: Vec<&Packet> = Side::BOTH.into_iter().flat_map(|side| kept(&duo, side)).collect();
        for packet in packets {
            let first = kinds(&packet.bytes)[0];
            let zero = both && !matches!(first, INIT | COOKIE_ECHO);
            let view = PacketView::parse(&packet.bytes).expect("a packet");
            assert_eq!(view.checksum_field() == 0, zero, "{sides:?}, chunk {first}");
            assert!(zero || view.checksum_is_valid(), "{sides:?}, chunk {first}");
        }
    }
}

/// Returns the methods that a packet with an INIT or INIT ACK announces.
fn announced(bytes: &[u8]) -> Vec<ErrorDetectionMethod> {
    let view = PacketView::parse(bytes).expect("a packet");
    let chunk = view.chunks().next().expect("a chunk").expect("whole").decode();
    let (Ok(Chunk::Init(init)) | Ok(Chunk::InitAck(init))) = chunk else { panic!("{chunk:?}") };
    let methods = init.params().map(|param| match param.expect("readable") {
        Param::ZeroChecksumAcceptable(method) => Some(method),
        _ => None,
    });
    methods.flatten().collect()
}

#[test]
fn answer_announces_dtls_only_to_a_peer_that_announces_it() {
    for (sides, expected) in [(&[Side::B][..], [0, 0]), (&[Side::A], [1, 0]), (&Side::BOTH, [1, 1])] {
        let duo = connected(over_dtls("sctp", sides));
        for (side, count) in Side::BOTH.into_iter().zip(expected) {
            let setup = kept(&duo, side).find(|p| matches!(kinds(&p.bytes)[0], INIT | INIT_ACK));
            let methods = announced(&setup.expect("each side sends one").bytes);
            assert_eq!(methods, vec![ErrorDetectionMethod::LOWER_LAYER_DTLS; count], "{sides:?}");
        }
    }
}

#[test]
fn receiver_that_announced_nothing_drops_zero_checksums() {
    for sides in [&[][..], &[Side::A]] {
        let mut duo = connected(over_dtls("sctp", sides));
        let heartbeat = write(tag(&duo, Side::A), |w| w.heartbeat(b"are you there"));
        let answered = inject(&mut duo, with_checksum(heartbeat, 0));
        assert_eq!(answered, Handled::Discarded(Discard::Checksum), "{sides:?}");
        exchange(&mut duo);
    }
}

#[test]
fn receiver_that_announced_dtls_accepts_zero_and_correct_checksums_only() {
    let mut duo = connected(over_dtls("sctp", &Side::BOTH));
    let heartbeat = write(tag(&duo, Side::A), |w| w.heartbeat(b"are you there"));
    let correct = checksum(&heartbeat);
    for (sum, accepted) in
        [(correct, true), (0, true), (correct ^ 1, false), (1, false), (u32::MAX, false), (!correct, false)]
    {
        let handled = inject(&mut duo, with_checksum(heartbeat.clone(), sum));
        assert_eq!(matches!(handled, Handled::Delivered(_)), accepted, "{sum:08x}: {handled:?}");
    }
}

#[test]
fn zero_checksum_out_of_the_blue_is_dropped_and_answers_have_none() {
    let mut duo = connected(over_dtls("sctp", &Side::BOTH));
    let stranger = tag(&duo, Side::A) ^ 1;
    let chunks: [WriteChunk; 3] =
        [|w| w.shutdown_ack(), |w| w.heartbeat(b"are you there"), |w| w.cookie_echo(&[7; 60])];
    // Another port: the packets belong to no association.
    for chunk in chunks {
        let bytes = with_checksum(packet_between([PORT + 1, PORT], stranger, chunk), 0);
        assert_eq!(inject(&mut duo, bytes), Handled::Discarded(Discard::Checksum));
    }
    let init = InitRepr {
        initiate_tag: 9,
        a_rwnd: 10_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn::new(1),
    };
    let params = [Param::ZeroChecksumAcceptable(ErrorDetectionMethod::LOWER_LAYER_DTLS)];
    let bytes = packet_between([PORT + 1, PORT], 0, |w| w.init(&init, params));
    assert_eq!(inject(&mut duo, with_checksum(bytes, 0)), Handled::Discarded(Discard::Checksum));
    for chunk in chunks.into_iter().take(2) {
        let before = kept(&duo, Side::B).count();
        let bytes = packet_between([PORT + 1, PORT], stranger, chunk);
        assert_eq!(inject(&mut duo, bytes), Handled::Replied);
        duo.settle_side(Side::B);
        let answer = kept(&duo, Side::B).nth(before).expect("an answer");
        assert!(matches!(kinds(&answer.bytes)[0], ABORT | SHUTDOWN_COMPLETE));
        assert_ne!(checksum(&answer.bytes), 0);
        assert!(PacketView::parse(&answer.bytes).expect("a packet").checksum_is_valid());
    }
}

#[test]
fn malformed_and_unknown_methods_announce_nothing() {
    let [dtls, unknown] = [1, 2].map(|method| Param::ZeroChecksumAcceptable(ErrorDetectionMethod(method)));
    let reserved = Param::ZeroChecksumAcceptable(ErrorDetectionMethod(0));
    let raw: [&[u8]; 3] =
        [&[0x80, 1, 0, 4], &[0x80, 1, 0, 7, 0, 0, 1, 0], &[0x80, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]];
    let malformed = raw.map(|bytes| Param::Unknown(RawParam::parse(bytes).expect("a parameter")));
    let repr = InitRepr {
        initiate_tag: 9,
        a_rwnd: 10_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn::new(1),
    };
    let mut cases = vec![(vec![dtls], true), (vec![dtls, unknown], true), (vec![unknown, dtls], false)];
    cases.extend([(vec![unknown], false), (vec![reserved], false)]);
    cases.extend(malformed.map(|param| (vec![param], false)));
    for (params, counts) in cases {
        let mut duo = Duo::new(over_dtls("sctp", &Side::BOTH));
        duo.kept = Some(Vec::new());
        let handled = inject(&mut duo, write(0, |w| w.init(&repr, params.iter().copied())));
        assert_eq!(handled, Handled::Replied, "{params:?}");
        duo.settle_side(Side::B);
        let answer = kept(&duo, Side::B).next().expect("an answer").bytes.clone();
        assert_eq!(announced(&answer).len(), usize::from(counts), "{params:?}");
        assert_eq!(checksum(&answer) == 0, counts, "{params:?}");
    }
}

#[test]
fn asconf_has_a_checksum_and_its_answer_has_none() {
    let setup = over_dtls("cmt", &Side::BOTH).with(|config| config.address_changes.asconf = true);
    let mut duo = connected(setup);
    duo.run(Span::from_secs(1));
    let now = duo.now;
    let association = duo.nodes[A].try_association_mut().expect("it is up");
    association.add_local_address(now, IpAddr::from([10, 9, 9, 1])).expect("there is room");
    duo.run(Span::from_secs(5));
    let asconf = kept(&duo, Side::A).find(|p| kinds(&p.bytes).contains(&ASCONF)).expect("an ASCONF");
    assert_ne!(checksum(&asconf.bytes), 0);
    let acknowledges = |p: &&Packet| kinds(&p.bytes).contains(&ChunkType::ASCONF_ACK.0);
    let answer = kept(&duo, Side::B).find(acknowledges).expect("an ASCONF-ACK");
    assert_eq!(checksum(&answer.bytes), 0);
}

#[test]
fn restart_and_collision_negotiate_zero_checksums_again() {
    let mut duo = connected(over_dtls("sctp", &Side::BOTH));
    duo.lose_state(Side::B);
    duo.setup.sides[B].error_detection = ErrorDetection::Crc32c;
    duo.connect_side(Side::B);
    duo.run(Span::from_secs(5));
    assert!(duo.nodes[A].was_told(&AssociationEvent::Restarted));
    assert!(!duo.nodes[A].association().sends_zero_checksums());
    let heartbeat = write(tag_after_restart(&duo), |w| w.heartbeat(b"are you there"));
    let (source, destination) = (duo.setup.address(Side::B, 0), duo.setup.address(Side::A, 0));
    let bytes = with_checksum(heartbeat, 0);
    let packet = Packet { from: Side::B, source, destination, bytes, may_fragment: false };
    assert_eq!(duo.deliver(&packet), Handled::Discarded(Discard::Checksum));

    let collide = |sides: &[Side]| Setup { collide: true, ..over_dtls("sctp", sides) };
    for (sides, both) in [(&Side::BOTH[..], true), (&[Side::A], false)] {
        let mut duo = connected(collide(sides));
        exchange(&mut duo);
        for node in &duo.nodes {
            assert_eq!(node.association().sends_zero_checksums(), both, "{sides:?}");
        }
    }
}

/// Returns the tag of the latest packet of B.
fn tag_after_restart(duo: &Duo) -> u32 {
    let last = kept(duo, Side::B).last().expect("it has sent packets");
    PacketView::parse(&last.bytes).expect("a packet").header().verification_tag
}

#[test]
fn handshake_and_transfer_over_dtls_survive_losses_and_duplicates() {
    for seed in 0..20 {
        let setup = Setup { seed, ..over_dtls("cmt", &Side::BOTH) };
        let mut duo = Duo::new(setup);
        let link = duo.link(0);
        *link = Link { loss: 150, duplicate: 100, reorder: 200, ..*link };
        duo.kept = Some(Vec::new());
        duo.connect();
        let up = |duo: &Duo| {
            duo.nodes.iter().all(|node| node.try_association().is_some_and(|a| a.is_established()))
        };
        assert!(duo.run_until(Span::from_secs(120), up), "seed {seed}: the handshake takes too long");
        exchange(&mut duo);
        for packet in Side::BOTH.into_iter().flat_map(|side| kept(&duo, side)) {
            let kinds = kinds(&packet.bytes);
            let needs = kinds.contains(&INIT) || kinds.contains(&COOKIE_ECHO);
            assert_eq!(checksum(&packet.bytes) == 0, !needs, "seed {seed}: {kinds:?}");
        }
    }
}
