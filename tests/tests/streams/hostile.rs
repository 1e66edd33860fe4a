//! Requests and answers that a correct peer does not send.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, StreamDirection};
use anabranch_tests::duo::Duo;
use anabranch_tests::network::Side;
use anabranch_wire::{
    ChunkType, DataFlags, DataRepr, List, OutgoingReset, Param, ReconfigResult, Ssn, StreamId, Tsn,
};
use proptest::prelude::*;

use crate::streams::rig::{
    A, B, FIRST, MOST_STREAMS, Tags, connected, has_re_config, inject, request, reset, resets, setup,
};

/// Returns a reset of streams of A, with a number and a TSN counted from the first ones.
fn reset_of<'p>(number: u32, tsns: u32, streams: &'p [StreamId]) -> Param<'p> {
    Param::OutgoingReset(OutgoingReset {
        request: FIRST.wrapping_add(number),
        response: FIRST.wrapping_sub(1),
        last_tsn: Tsn::new(FIRST.wrapping_sub(1).wrapping_add(tsns)),
        streams: List::new(streams),
    })
}

fn performed(duo: &Duo) -> usize {
    resets(duo, Side::B, StreamDirection::Incoming).len()
}

#[test]
fn numbers_that_are_not_next_are_refused_and_change_nothing() {
    let mut duo = connected(setup(1, "sctp"));
    for number in [1, 2, 1 << 31, u32::MAX, u32::MAX - 1] {
        let answers = request(&mut duo, &[reset_of(number, 0, &[])]);
        assert_eq!(answers, [(FIRST.wrapping_add(number), ReconfigResult::BAD_SEQUENCE_NUMBER)]);
    }
    assert_eq!(performed(&duo), 0);
    assert_eq!(request(&mut duo, &[reset_of(0, 0, &[])]), [(FIRST, ReconfigResult::PERFORMED)]);
}

#[test]
fn repeated_request_is_answered_again_without_effect() {
    let mut duo = connected(setup(1, "sctp"));
    let add = |number| Param::AddOutgoingStreams { request: FIRST + number, streams: 2 };
    for _ in 0..3 {
        assert_eq!(request(&mut duo, &[add(0)]), [(FIRST, ReconfigResult::PERFORMED)]);
    }
    assert_eq!(duo.nodes[B].association().inbound_streams(), 6);
    assert_eq!(duo.nodes[B].association().statistics().stream_requests_received, 1);
}

#[test]
fn streams_out_of_range_are_refused() {
    let mut duo = connected(setup(1, "sctp"));
    for (number, stream) in [(0, 4), (1, u16::MAX)] {
        let streams = [StreamId::new(0), StreamId::new(stream)];
        let answers = request(&mut duo, &[reset_of(number, 0, &streams)]);
        assert_eq!(answers, [(FIRST + number, ReconfigResult::WRONG_SSN)]);
    }
    let streams = [StreamId::new(4)];
    let incoming = Param::IncomingReset { request: FIRST + 2, streams: List::new(&streams) };
    assert_eq!(request(&mut duo, &[incoming]), [(FIRST + 2, ReconfigResult::WRONG_SSN)]);
    assert_eq!(performed(&duo), 0);
}

#[test]
fn longest_list_with_repeated_streams_counts_each_once() {
    let mut duo = connected(setup(1, "sctp"));
    let streams: Vec<StreamId> = (0..700).map(|n| StreamId::new(n % 4)).collect();
    assert_eq!(request(&mut duo, &[reset_of(0, 0, &streams)]), [(FIRST, ReconfigResult::PERFORMED)]);
    assert_eq!(resets(&duo, Side::B, StreamDirection::Incoming), [vec![0, 1, 2, 3]]);
}

#[test]
fn streams_beyond_the_limit_are_denied_in_one_request_and_in_many() {
    let mut duo = connected(setup(1, "sctp"));
    let add = |number: u32, streams| [Param::AddOutgoingStreams { request: FIRST + number, streams }];
    assert_eq!(request(&mut duo, &add(0, u16::MAX)), [(FIRST, ReconfigResult::DENIED)]);
    assert_eq!(request(&mut duo, &add(1, 0)), [(FIRST + 1, ReconfigResult::NOTHING_TO_DO)]);
    for number in 2..40 {
        request(&mut duo, &add(number, 1));
    }
    assert_eq!(duo.nodes[B].association().inbound_streams(), MOST_STREAMS);
    for number in 40..80 {
        request(&mut duo, &[Param::AddIncomingStreams { request: FIRST + number, streams: 1 }]);
    }
    duo.run(Span::from_secs(5));
    assert!(duo.nodes[B].association().outbound_streams() <= MOST_STREAMS);
}

#[test]
fn reset_of_both_tsns_is_denied() {
    let mut duo = connected(setup(1, "sctp"));
    let answers = request(&mut duo, &[Param::SsnTsnReset { request: FIRST }]);
    assert_eq!(answers, [(FIRST, ReconfigResult::DENIED)]);
}

#[test]
fn one_packet_causes_at_most_four_answers() {
    let mut duo = connected(setup(1, "sctp"));
    let bytes = Tags::of(&duo).write(Side::A, |writer| {
        (0..30).try_for_each(|n| {
            writer.re_config([reset_of(2 * n, 0, &[]), reset_of(2 * n + 1, 0, &[]), reset_of(99, 0, &[])])
        })
    });
    assert_eq!(inject(&mut duo, bytes).len(), 4);
    assert_eq!(duo.nodes[B].endpoint.discards().of(Discard::Unexpected), 28);
}

#[test]
fn stream_is_not_reset_inside_a_message_or_before_a_missing_one() {
    let mut duo = connected(setup(1, "sctp"));
    let data = |tsn, stream, ssn, ending| DataRepr {
        flags: DataFlags { beginning: true, ending, ..DataFlags::default() },
        tsn: Tsn::new(FIRST + tsn),
        stream: StreamId::new(stream),
        ssn: Ssn::new(ssn),
        ppid: 7,
    };
    // The read behaviour of this test must not check messages that A has not sent.
    duo.reading = [anabranch_tests::duo::Reading::ByHand; 2];
    let bytes = Tags::of(&duo).write(Side::A, |writer| {
        writer.data(&data(0, 1, 5, true), b"no number 0 to 4")?;
        writer.data(&data(1, 2, 0, false), b"no end")
    });
    inject(&mut duo, bytes);
    for (number, stream) in [(0, 1), (1, 2)] {
        let streams = [StreamId::new(stream)];
        let answers = request(&mut duo, &[reset_of(number, 2, &streams)]);
        assert_eq!(answers, [(FIRST + number, ReconfigResult::WRONG_SSN)]);
    }
    assert_eq!(request(&mut duo, &[reset_of(2, 2, &[])]), [(FIRST + 2, ReconfigResult::WRONG_SSN)]);
    let free = [StreamId::new(3)];
    assert_eq!(request(&mut duo, &[reset_of(3, 2, &free)]), [(FIRST + 3, ReconfigResult::PERFORMED)]);
    assert_eq!(performed(&duo), 1);
}

#[test]
fn reset_behind_data_that_never_comes_is_replaced_by_the_next() {
    let mut duo = connected(setup(1, "sctp"));
    for number in 0..100 {
        let answers = request(&mut duo, &[reset_of(number, 1_000_000, &[])]);
        assert_eq!(answers, [(FIRST + number, ReconfigResult::IN_PROGRESS)]);
    }
    assert_eq!(performed(&duo), 0);
    assert_eq!(request(&mut duo, &[reset_of(100, 0, &[])]), [(FIRST + 100, ReconfigResult::PERFORMED)]);
}

#[test]
fn answers_without_a_request_have_no_effect() {
    let mut duo = connected(setup(1, "sctp"));
    let events = duo.nodes[B].told.len();
    for response in [0, FIRST - 1, FIRST, FIRST + 1, u32::MAX] {
        for result in 0..9 {
            let result = ReconfigResult(result);
            let answer = Param::ReconfigResponse { response, result, next_tsns: None };
            assert_eq!(request(&mut duo, &[answer]), []);
        }
    }
    assert_eq!(duo.nodes[B].told.len(), events);
}

#[test]
fn peer_that_is_always_in_progress_gets_one_request_per_time_out() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_tampering(crate::streams::rig::never_finish);
    reset(&mut duo, Side::A, &[1]);
    duo.run(Span::from_secs(100));
    let sent = duo.nodes[A].association().statistics().re_configs_sent;
    assert!((50..=101).contains(&sent), "{sent} requests in 100 s with an RTO of 1 s");
    assert!(duo.nodes[A].ended.is_none());
}

#[test]
fn requests_of_the_peer_do_not_fill_the_queue_without_bound() {
    let mut duo = connected(setup(1, "sctp"));
    // The requests of B stay unanswered.
    duo.network.set_filter(|packet| !has_re_config(packet));
    let mut refused = 0;
    for number in 0..200 {
        let streams = [StreamId::new((number % 4) as u16)];
        let incoming = Param::IncomingReset { request: FIRST + number, streams: List::new(&streams) };
        let answers = request(&mut duo, &[incoming]);
        refused += usize::from(answers == [(FIRST + number, ReconfigResult::ALREADY_IN_PROGRESS)]);
    }
    assert_eq!(refused, 196, "each stream is under reset once");
}

#[test]
fn unsupported_re_config_is_skipped_without_a_report() {
    let without = setup(1, "sctp").with(|config| config.stream_changes = None);
    let mut duo = connected(without);
    let before = duo.kept.as_ref().map_or(0, Vec::len);
    assert_eq!(request(&mut duo, &[reset_of(0, 0, &[])]), []);
    assert_eq!(duo.kept.as_ref().map_or(0, Vec::len), before, "no ERROR either");
    assert!(!duo.nodes[B].told.iter().any(|event| matches!(event, AssociationEvent::StreamsReset { .. })));
}

proptest! {
    #[test]
    fn random_re_configs_neither_panic_nor_end_the_association(
        chunks in prop::collection::vec(
            prop::collection::vec((13_u16..19, 0_u32..6, prop::collection::vec(any::<u8>(), 0..20)), 0..4),
            1..30,
        )
    ) {
        let mut duo = connected(setup(1, "sctp"));
        for params in &chunks {
            let mut value = Vec::new();
            for (kind, number, rest) in params {
                let length = 8 + rest.len();
                value.extend(kind.to_be_bytes());
                value.extend((length as u16).to_be_bytes());
                value.extend((FIRST + number).to_be_bytes());
                value.extend(rest);
                value.resize(value.len().next_multiple_of(4), 0);
            }
            let bytes =
                Tags::of(&duo).write(Side::A, |writer| writer.raw_parts(ChunkType::RE_CONFIG, 0, &value));
            inject(&mut duo, bytes);
        }
        duo.run(Span::from_secs(1));
        prop_assert!(duo.nodes.iter().all(|node| node.ended.is_none()));
    }
}
