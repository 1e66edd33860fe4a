//! Resets of stream sequence numbers.

use anabranch_core::time::Span;
use anabranch_core::{
    AssociationEvent, Reliability, StreamDirection, StreamRefusal, StreamRequest, StreamsError,
};
use anabranch_tests::network::Side;
use anabranch_wire::{List, OutgoingReset, Param, ReconfigResult, StreamId, Tsn};

use crate::streams::rig::{
    A, FIRST, arrive, association, connected, has_answer, has_re_config, numbers, request, reset, resets,
    send, setup,
};

const OUT: StreamDirection = StreamDirection::Outgoing;
const IN: StreamDirection = StreamDirection::Incoming;

#[test]
fn numbers_of_reset_streams_start_at_zero_and_others_continue() {
    let mut duo = connected(setup(1, "sctp"));
    for stream in [1, 2] {
        send(&mut duo, Side::A, stream, 2);
    }
    reset(&mut duo, Side::A, &[1]);
    for stream in [1, 2] {
        send(&mut duo, Side::A, stream, 1);
    }
    arrive(&mut duo);
    assert_eq!((resets(&duo, Side::A, OUT), resets(&duo, Side::B, IN)), (vec![vec![1]], vec![vec![1]]));
    let mut sent = numbers(&duo, Side::A);
    sent.dedup();
    let of = |stream| sent.iter().filter(|(of, _)| *of == stream).map(|(_, ssn)| *ssn).collect::<Vec<_>>();
    assert_eq!((of(1), of(2)), (vec![0, 1, 0], vec![0, 1, 2]));
}

#[test]
fn empty_list_resets_all_streams() {
    let mut duo = connected(setup(1, "sctp"));
    for stream in 0..4 {
        send(&mut duo, Side::A, stream, 2);
    }
    reset(&mut duo, Side::A, &[]);
    for stream in 0..4 {
        send(&mut duo, Side::A, stream, 1);
    }
    arrive(&mut duo);
    assert_eq!(resets(&duo, Side::B, IN), [Vec::<u16>::new()]);
    let last: Vec<_> = numbers(&duo, Side::A).into_iter().rev().step_by(2).take(4).collect();
    assert_eq!(last, [(3, 0), (2, 0), (1, 0), (0, 0)]);
}

#[test]
fn later_messages_wait_for_the_answer_and_other_streams_do_not() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, Side::A, 1, 1);
    arrive(&mut duo);
    duo.network.set_filter(|packet| !has_answer(packet));
    reset(&mut duo, Side::A, &[1]);
    send(&mut duo, Side::A, 1, 1);
    send(&mut duo, Side::A, 2, 1);
    duo.run(Span::from_secs(5));
    assert_eq!(duo.flows[A].missing(), 1, "the message on stream 1");
    let again = association(&mut duo, Side::A);
    assert_eq!((again.queued_bytes(), again.buffered_bytes()), (2_000, 2_000));
    let now = duo.now;
    let again = association(&mut duo, Side::A).reset_streams(now, &[0, 1]);
    assert_eq!(again, Err(StreamsError::InProgress { stream: 1 }));
    duo.network.clear_filter();
    arrive(&mut duo);
    assert_eq!(resets(&duo, Side::B, IN).len(), 1, "repeated requests have no effect");
    assert!(duo.nodes[A].association().statistics().re_configs_sent > 1);
}

#[test]
fn request_waits_until_earlier_messages_are_acknowledged() {
    let mut duo = connected(setup(1, "sctp"));
    duo.cut(0, true);
    send(&mut duo, Side::A, 1, 3);
    reset(&mut duo, Side::A, &[1]);
    duo.run(Span::from_secs(3));
    assert_eq!(duo.nodes[A].association().statistics().re_configs_sent, 0);
    duo.cut(0, false);
    arrive(&mut duo);
    duo.run(Span::from_secs(5));
    assert_eq!(resets(&duo, Side::B, IN), [vec![1]]);
}

#[test]
fn abandoned_messages_do_not_delay_a_reset() {
    let mut duo = connected(setup(1, "sctp"));
    duo.cut(0, true);
    let lifetime = Reliability::Lifetime(Span::from_millis(50));
    duo.send_limited(Side::A, 2_000, 1, false, lifetime).expect("an association").expect("it has room");
    reset(&mut duo, Side::A, &[1]);
    duo.run(Span::from_secs(1));
    duo.cut(0, false);
    duo.run(Span::from_secs(10));
    assert_eq!(resets(&duo, Side::A, OUT), [vec![1]]);
    send(&mut duo, Side::A, 1, 1);
    arrive(&mut duo);
    assert_eq!(numbers(&duo, Side::A).last(), Some(&(1, 0)));
}

#[test]
fn reset_ahead_of_its_data_is_deferred_and_answered_once_the_data_arrives() {
    let mut duo = connected(setup(1, "sctp"));
    let streams = [StreamId::new(1)];
    let ahead = Param::OutgoingReset(OutgoingReset {
        request: FIRST,
        response: FIRST - 1,
        last_tsn: Tsn::new(FIRST + 1),
        streams: List::new(&streams),
    });
    for _ in 0..2 {
        assert_eq!(request(&mut duo, &[ahead]), [(FIRST, ReconfigResult::IN_PROGRESS)]);
    }
    assert_eq!(resets(&duo, Side::B, IN), Vec::<Vec<u16>>::new());
    send(&mut duo, Side::A, 2, 1);
    arrive(&mut duo);
    assert_eq!(resets(&duo, Side::B, IN), [vec![1]]);
    let kept = duo.kept.as_ref().expect("packets are kept");
    assert!(has_answer(&kept.last().expect("a packet").1), "the answer waits for no repeated request");
    assert_eq!(request(&mut duo, &[ahead]), [(FIRST, ReconfigResult::PERFORMED)]);
    assert_eq!(resets(&duo, Side::B, IN), [vec![1]], "the repeated request has no effect");
}

#[test]
fn peer_resets_its_streams_on_request() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, Side::A, 2, 3);
    let now = duo.now;
    association(&mut duo, Side::B).request_incoming_reset(now, &[2]).expect("stream 2 exists");
    duo.settle();
    arrive(&mut duo);
    duo.run(Span::from_secs(5));
    send(&mut duo, Side::A, 2, 1);
    arrive(&mut duo);
    assert_eq!((resets(&duo, Side::A, OUT), resets(&duo, Side::B, IN)), (vec![vec![2]], vec![vec![2]]));
    assert_eq!(numbers(&duo, Side::A).last(), Some(&(2, 0)));
}

#[test]
fn both_sides_can_reset_at_once() {
    let mut duo = connected(setup(2, "cmt"));
    for side in Side::BOTH {
        send(&mut duo, side, 1, 20);
        reset(&mut duo, side, &[1]);
        reset(&mut duo, side, &[0, 3]);
        send(&mut duo, side, 1, 5);
        send(&mut duo, side, 3, 5);
    }
    arrive(&mut duo);
    duo.run(Span::from_secs(5));
    for side in Side::BOTH {
        assert_eq!(resets(&duo, side, OUT), [vec![1], vec![0, 3]]);
        assert_eq!(resets(&duo, side, IN), [vec![1], vec![0, 3]]);
    }
}

#[test]
fn side_without_support_is_not_asked() {
    for side in Side::BOTH {
        let without = setup(1, "sctp").with_side(side, |config| config.stream_changes = None);
        let mut duo = connected(without);
        let now = duo.now;
        for side in Side::BOTH {
            let association = association(&mut duo, side);
            assert!(!association.changes_streams());
            assert_eq!(association.reset_streams(now, &[1]), Err(StreamsError::Unsupported));
            assert_eq!(association.add_streams(now, IN, 1), Err(StreamsError::Unsupported));
        }
        let kept = duo.kept.as_ref().expect("packets are kept");
        assert!(!kept.iter().any(|(_, packet)| has_re_config(packet)));
    }
}

#[test]
fn streams_that_do_not_exist_and_early_calls_are_refused() {
    let mut duo = connected(setup(1, "sctp"));
    let now = duo.now;
    let a = association(&mut duo, Side::A);
    let missing = Err(StreamsError::NoSuchStream { stream: 4, streams: 4 });
    assert_eq!(a.reset_streams(now, &[1, 4]), missing);
    assert_eq!(a.request_incoming_reset(now, &[4]), missing);
    duo.shutdown(Side::A);
    assert_eq!(association(&mut duo, Side::A).reset_streams(now, &[1]), Err(StreamsError::Closing));
    let mut early = anabranch_tests::duo::Duo::new(setup(1, "sctp"));
    early.connect();
    let now = early.now;
    let refused = association(&mut early, Side::A).reset_streams(now, &[]);
    assert_eq!(refused, Err(StreamsError::NotEstablished));
}

#[test]
fn shutdown_waits_for_the_messages_behind_a_reset() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, Side::A, 1, 2);
    reset(&mut duo, Side::A, &[1]);
    send(&mut duo, Side::A, 1, 2);
    duo.shutdown(Side::A);
    let over = |duo: &anabranch_tests::duo::Duo| Side::BOTH.into_iter().all(|side| duo.is_over(side));
    assert!(duo.run_until(Span::from_secs(60), over));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(duo.nodes[A].ended, Some(AssociationEvent::Closed));
}

#[test]
fn silent_peer_ends_the_association_that_awaits_its_answer() {
    let mut duo = connected(setup(1, "sctp").with(|config| config.profile.association_max_retrans = 3));
    duo.cut(0, true);
    reset(&mut duo, Side::A, &[1]);
    let over = |duo: &anabranch_tests::duo::Duo| duo.is_over(Side::A);
    assert!(duo.run_until(Span::from_secs(120), over));
    assert_eq!(duo.nodes[A].association().statistics().re_configs_sent, 4);
}

#[test]
fn restart_of_the_peer_forgets_requests_and_their_numbers() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, Side::A, 1, 2);
    arrive(&mut duo);
    duo.network.set_filter(|packet| !has_answer(packet));
    reset(&mut duo, Side::A, &[1]);
    send(&mut duo, Side::A, 1, 1);
    duo.run(Span::from_secs(1));
    duo.lose_state(Side::B);
    duo.network.clear_filter();
    duo.connect_side(Side::B);
    duo.run(Span::from_secs(5));
    assert!(duo.nodes[A].was_told(&AssociationEvent::Restarted));
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 0, "held messages are lost like queued ones");
    reset(&mut duo, Side::A, &[1]);
    send(&mut duo, Side::A, 1, 1);
    duo.run(Span::from_secs(5));
    assert_eq!(resets(&duo, Side::A, OUT), [vec![1]]);
    assert_eq!(duo.nodes[A].association().buffered_bytes(), 0);
}

#[test]
fn denied_reset_of_the_peer_reports_the_request_and_keeps_numbers() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, Side::A, 1, 2);
    arrive(&mut duo);
    // A peer that denies everything: its answers are changed on their way.
    duo.network.set_tampering(crate::streams::rig::deny);
    reset(&mut duo, Side::A, &[1]);
    duo.run(Span::from_secs(1));
    duo.network.clear_filter();
    let request = StreamRequest::Reset { direction: OUT, streams: vec![1] };
    let failed = AssociationEvent::StreamRequestFailed { request, refusal: StreamRefusal::Denied };
    assert!(duo.nodes[A].was_told(&failed), "{:?}", duo.nodes[A].told);
    duo.nodes[A].told.clear();
    let sent = duo.send(Side::A, 100, 1, false);
    sent.expect("there is an association").expect("it takes the message");
    duo.settle();
    assert_eq!(numbers(&duo, Side::A).last(), Some(&(1, 2)));
}
