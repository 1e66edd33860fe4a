//! I-DATA and I-FORWARD-TSN (RFC 8260) between two endpoints, and from peers that violate it.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Reliability, StreamChanges, StreamScheduler};
use anabranch_schemes::registry::PRESETS;
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::{Link, Packet, Side};
use anabranch_wire::{
    Chunk, ChunkType, DataFlags, DataRepr, IDataRepr, Mid, PacketView, SkippedMid, Ssn, StreamId, Tsn,
};
use proptest::prelude::*;

use crate::streams::rig::{A, B, FIRST, Tags, arrive, connected, inject, reset, send, setup};

/// Returns a setup in which the named sides offer I-DATA.
fn offering(mut setup: Setup, sides: &[Side], scheduler: StreamScheduler) -> Setup {
    for side in sides {
        setup.sides[side.index()].interleaving = true;
    }
    setup.with(|config| config.stream_scheduler = scheduler)
}

fn interleaving(pairs: usize, scheme: &str) -> Setup {
    offering(setup(pairs, scheme), &Side::BOTH, StreamScheduler::RoundRobin)
}

/// Returns the places of the DATA chunks and of the I-DATA chunks that a side has sent: stream, MID or SSN, and FSN.
fn places(duo: &Duo, from: Side) -> [Vec<(u16, u32, u32)>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let kept = duo.kept.as_ref().expect("packets are kept").iter().map(|(_, packet)| packet);
    for packet in kept.filter(|packet: &&Packet| packet.from == from) {
        let view = PacketView::parse(&packet.bytes).expect("a packet");
        for chunk in view.chunks().flatten() {
            match chunk.decode() {
                Ok(Chunk::Data(data)) => {
                    found[0].push((data.stream().get(), u32::from(data.ssn().get()), 0));
                }
                Ok(Chunk::IData(data)) => {
                    let repr = data.repr();
                    found[1].push((repr.stream.get(), repr.mid.get(), repr.fsn()));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn i_data_replaces_data_only_if_both_sides_offer_it() {
    for offers in [&[][..], &[Side::A], &[Side::B], &Side::BOTH] {
        let both = offers.len() == 2;
        let mut duo = connected(offering(setup(1, "sctp"), offers, StreamScheduler::RoundRobin));
        for side in Side::BOTH {
            assert_eq!(duo.nodes[side.index()].association().interleaves_messages(), both);
            send(&mut duo, side, 1, 3);
        }
        arrive(&mut duo);
        for side in Side::BOTH {
            let [data, i_data] = places(&duo, side);
            assert_eq!((data.is_empty(), i_data.is_empty()), (both, !both), "{offers:?}");
        }
    }
}

#[test]
fn messages_on_two_streams_interleave_and_number_their_fragments() {
    let mut duo = connected(interleaving(1, "sctp"));
    for stream in [1, 2] {
        let sent = duo.send(Side::A, 2_500, stream, false);
        sent.expect("there is an association").expect("it takes the message");
    }
    duo.settle();
    arrive(&mut duo);
    let [_, chunks] = places(&duo, Side::A);
    assert_eq!(chunks, [(1, 0, 0), (2, 0, 0), (1, 0, 1), (2, 0, 1)]);
}

#[test]
fn restart_and_reset_begin_with_message_zero() {
    let mut duo = connected(interleaving(1, "sctp"));
    send(&mut duo, Side::A, 1, 2);
    arrive(&mut duo);
    reset(&mut duo, Side::A, &[1]);
    duo.run(Span::from_secs(2));
    send(&mut duo, Side::A, 1, 1);
    arrive(&mut duo);
    duo.lose_state(Side::B);
    duo.connect_side(Side::B);
    duo.run(Span::from_secs(5));
    assert!(duo.nodes[A].was_told(&AssociationEvent::Restarted));
    assert!(duo.nodes[A].association().interleaves_messages());
    send(&mut duo, Side::A, 1, 1);
    duo.run(Span::from_secs(5));
    let messages: Vec<u32> =
        places(&duo, Side::A)[1].iter().filter(|place| place.2 == 0).map(|p| p.1).collect();
    assert_eq!(messages, [0, 1, 0, 0]);
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 0);
}

/// Returns the reliability of a message, of which some are abandoned.
fn limit(number: u32) -> Reliability {
    match number % 4 {
        0 | 1 => Reliability::Full,
        2 => Reliability::MaxRetransmissions(0),
        _ => Reliability::Lifetime(Span::from_millis(u64::from(number % 7) * 40)),
    }
}

#[test]
fn every_scheme_delivers_interleaved_messages_on_a_bad_network() {
    for (scheme, preset) in PRESETS.iter().enumerate() {
        for (profile, offset) in [("rfc9260", 1), ("ns2", 3)] {
            let scheduler = StreamScheduler::ALL[(scheme + offset) % 6];
            let setup = Setup::new(2, preset.name, profile).with(|config| {
                config.stream_changes = Some(StreamChanges { max_streams: 8 });
            });
            let setup = offering(setup, &Side::BOTH, scheduler);
            let mut duo = Duo::connected(Setup { seed: scheme as u64, ..setup });
            for pair in 0..2 {
                let link = duo.link(pair);
                *link = Link { loss: 60, duplicate: 60, reorder: 200, ..*link };
            }
            for number in 0..100_u32 {
                let size = 50 + (number as usize * 1_613) % 12_000;
                let stream = (number % 4) as u16;
                let sent = duo.send_limited(Side::A, size, stream, number % 5 == 0, limit(number));
                sent.expect("there is an association").expect("the send buffer is unlimited");
                if number == 60 {
                    reset(&mut duo, Side::A, &[1, 3]);
                }
                duo.run(Span::from_millis(3));
            }
            arrive(&mut duo);
            let idle = |duo: &Duo| duo.nodes[A].association().buffered_bytes() == 0;
            assert!(duo.run_until(Span::from_secs(300), idle), "{}, {scheduler:?}", preset.name);
            assert!(duo.nodes[A].association().interleaves_messages(), "{}", preset.name);
        }
    }
}

/// Returns the header of an I-DATA chunk of A on stream 1, with a TSN counted from the first one.
fn header(tsn: u32, mid: u32, fsn: u32, ending: bool) -> IDataRepr {
    let beginning = fsn == 0;
    IDataRepr {
        flags: DataFlags { beginning, ending, ..DataFlags::default() },
        tsn: Tsn::new(FIRST.wrapping_add(tsn)),
        stream: StreamId::new(1),
        mid: Mid::new(mid),
        ppid_or_fsn: if beginning { 7 } else { fsn },
    }
}

/// Returns a pair in which the application of B reads nothing, so that it checks no message of a hostile peer.
fn unread(setup: Setup) -> Duo {
    let mut duo = connected(setup);
    duo.reading = [Reading::ByHand; 2];
    duo
}

fn is_aborted_for_violation(duo: &Duo) -> bool {
    duo.nodes[B].told.iter().any(|event| matches!(event, AssociationEvent::Aborted(AbortReason::Protocol(_))))
}

#[test]
fn chunk_of_the_form_that_was_not_negotiated_ends_the_association() {
    let data = DataRepr {
        flags: DataFlags { beginning: true, ending: true, ..DataFlags::default() },
        tsn: Tsn::new(FIRST),
        stream: StreamId::new(1),
        ssn: Ssn::new(0),
        ppid: 7,
    };
    let skipped = [SkippedMid { stream: StreamId::new(1), unordered: false, mid: Mid::new(0) }];
    for negotiated in [true, false] {
        let offers = if negotiated { &Side::BOTH[..] } else { &[Side::B] };
        for forward in [false, true] {
            let mut duo = unread(offering(setup(1, "sctp"), offers, StreamScheduler::default()));
            let bytes = Tags::of(&duo).write(Side::A, |writer| match (negotiated, forward) {
                (true, false) => writer.data(&data, b"x"),
                (true, true) => writer.forward_tsn(Tsn::new(FIRST), []),
                (false, false) => writer.i_data(&header(0, 0, 0, true), b"x"),
                (false, true) => writer.i_forward_tsn(Tsn::new(FIRST), skipped),
            });
            inject(&mut duo, bytes);
            assert!(is_aborted_for_violation(&duo), "negotiated: {negotiated}, forward: {forward}");
        }
    }
}

#[test]
fn i_data_without_an_offer_is_skipped_as_an_unknown_chunk() {
    let mut duo = unread(setup(1, "sctp"));
    let bytes = Tags::of(&duo).write(Side::A, |writer| writer.i_data(&header(0, 0, 0, true), b"x"));
    inject(&mut duo, bytes);
    assert!(!is_aborted_for_violation(&duo));
    assert_eq!(duo.nodes[B].association().held_bytes(), 0);
}

#[test]
fn contradictory_i_data_ends_the_association() {
    // Message 0 has fragments 0 and 3, with TSNs 0 and 1.
    for contradiction in [
        header(2, 0, 3, false),
        header(2, 0, 2, true),
        header(2, 1, 0, true),
        header(4, 3, 0, true),
        header(2, 1 << 31, 0, true),
        header(2, u32::MAX, 0, true),
        IDataRepr { ppid_or_fsn: 0, ..header(2, 0, 1, false) },
    ] {
        let mut duo = unread(interleaving(1, "sctp"));
        let mut hostile = |repr: &IDataRepr| {
            let bytes = Tags::of(&duo).write(Side::A, |writer| writer.i_data(repr, b"x"));
            inject(&mut duo, bytes);
            is_aborted_for_violation(&duo)
        };
        assert!(!hostile(&header(0, 0, 0, false)) && !hostile(&header(1, 0, 3, false)));
        assert!(hostile(&contradiction), "{contradiction:?}");
    }
}

#[test]
fn repeated_tsn_is_a_duplicate_in_any_message() {
    let mut duo = unread(interleaving(1, "sctp"));
    for repr in [header(0, 0, 0, false), header(0, 0, 0, false), header(0, 9, 4, true)] {
        let bytes = Tags::of(&duo).write(Side::A, |writer| writer.i_data(&repr, b"x"));
        inject(&mut duo, bytes);
    }
    let association = duo.nodes[B].association();
    assert_eq!((association.held_bytes(), association.statistics().duplicates_received), (1, 2));
}

#[test]
fn peer_that_only_begins_messages_opens_no_more_than_the_bound() {
    let mut duo = unread(interleaving(1, "sctp"));
    let mut tsn = 0;
    while !is_aborted_for_violation(&duo) {
        let flags = DataFlags { unordered: true, ..DataFlags::default() };
        let repr = IDataRepr { flags, ..header(tsn, tsn, 1, false) };
        let bytes = Tags::of(&duo).write(Side::A, |writer| writer.i_data(&repr, b"x"));
        inject(&mut duo, bytes);
        tsn += 1;
        assert!(tsn < 100, "it has opened {tsn} messages");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn random_i_data_neither_panics_nor_stalls_the_endpoint(
        chunks in prop::collection::vec((0_u32..12, 0_u32..5, 0_u32..5, any::<u8>(), 0_u8..6), 1..60),
    ) {
        let mut duo = unread(interleaving(1, "sctp"));
        for (tsn, mid, fsn, flags, action) in chunks {
            let (unordered, ending) = (flags & 4 != 0, flags & 1 != 0);
            let flags = DataFlags { unordered, ending, beginning: fsn == 0, immediate: false };
            let repr = IDataRepr { flags, ..header(tsn, mid, fsn, false) };
            let bytes = Tags::of(&duo).write(Side::A, |writer| match action {
                0 => writer.i_forward_tsn(repr.tsn, [SkippedMid {
                    stream: repr.stream, unordered: flags.unordered, mid: repr.mid,
                }]),
                1 => writer.raw_parts(ChunkType::I_DATA, 3, &[0; 16][..fsn as usize * 4]),
                _ => writer.i_data(&repr, &[0; 100]),
            });
            inject(&mut duo, bytes);
            if duo.nodes[B].ended.is_some() {
                break;
            }
        }
        duo.run(Span::from_secs(1));
    }
}
