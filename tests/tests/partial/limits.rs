//! Limits of retransmissions and of lifetimes.

use anabranch_core::time::Span;
use anabranch_core::{AbandonCause, Reliability};
use anabranch_tests::network::Side;
use anabranch_tests::sight;

use crate::partial::rig::{
    A, B, FIRST_TSN, abandoned, come_to_rest, connected, forwards, lifetime, lose, retransmissions, send,
    setup, statistics,
};

#[test]
fn message_is_abandoned_after_its_retransmission_limit() {
    for most in 0..3 {
        let mut duo = connected(setup(1, "sctp"));
        duo.network.set_filter(lose(vec![FIRST_TSN]));
        send(&mut duo, 1_000, retransmissions(most));
        for _ in 0..3 {
            send(&mut duo, 1_000, Reliability::Full);
        }
        come_to_rest(&mut duo, Span::from_secs(60));
        assert_eq!(statistics(&duo, A).retransmissions, u64::from(most), "{most} at most");
        assert_eq!(abandoned(&duo), [(0, AbandonCause::Retransmissions, true)]);
        assert_eq!(statistics(&duo, A).abandoned.by_retransmissions.sent, 1);
        assert_eq!(duo.flows[A].delivered_messages, 3);
        assert_eq!(forwards(&duo), [(FIRST_TSN, vec![(0, 0)])]);
    }
}

#[test]
fn lost_fragment_abandons_the_whole_message() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose(vec![FIRST_TSN + 1]));
    send(&mut duo, 4_000, retransmissions(0));
    send(&mut duo, 500, Reliability::Full);
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!(duo.flows[A].delivered_messages, 1);
    // The message has three fragments: the first has arrived, the other two are skipped.
    assert_eq!(forwards(&duo), [(FIRST_TSN + 2, vec![(0, 0)])]);
    assert_eq!(duo.nodes[B].association().held_bytes(), 0, "nothing of it is left");
}

#[test]
fn a_message_ends_with_its_lifetime_though_its_path_is_silent() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose(vec![FIRST_TSN]));
    send(&mut duo, 1_000, lifetime(120));
    send(&mut duo, 1_000, Reliability::Full);
    let begin = duo.now;
    assert!(duo.run_until(Span::from_secs(5), |duo| !abandoned(duo).is_empty()));
    assert_eq!(duo.now.since(begin), Span::from_millis(120), "long before T3");
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.flows[A].delivered_messages == 1));
    assert_eq!(duo.now.since(begin), Span::from_millis(145), "what waited behind it is delivered at once");
    come_to_rest(&mut duo, Span::from_secs(5));
    assert_eq!(statistics(&duo, A).abandoned.by_lifetime.sent, 1);
    assert_eq!(statistics(&duo, A).timeouts, 0);
}

#[test]
fn queued_message_beyond_its_lifetime_is_not_sent() {
    let mut duo = connected(setup(1, "sctp"));
    for _ in 0..100 {
        send(&mut duo, 1_000, lifetime(60));
    }
    send(&mut duo, 1_000, Reliability::Full);
    come_to_rest(&mut duo, Span::from_secs(60));
    let counted = statistics(&duo, A);
    let unsent = counted.abandoned.by_lifetime.unsent;
    assert!(unsent > 50, "{counted:?}");
    assert_eq!(counted.chunks_sent + unsent, 101, "each was sent or abandoned before");
    assert_eq!(duo.flows[A].delivered_messages, counted.chunks_sent);
}

#[test]
fn rest_of_an_abandoned_message_is_not_sent_nor_merged_with_the_next() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, 100_000, lifetime(80));
    send(&mut duo, 1_000, Reliability::Full);
    send(&mut duo, 100_000, Reliability::Full);
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!(abandoned(&duo), [(0, AbandonCause::Lifetime, true)]);
    assert_eq!(duo.flows[A].delivered_messages, 2);
    let counted = statistics(&duo, A);
    assert!((1..60).contains(&(counted.chunks_sent - 70)), "some of its 69 chunks have left: {counted:?}");
    assert!(counted.abandoned.bytes > 40_000, "{counted:?}");
}

#[test]
fn a_message_without_any_lifetime_leaves_no_trace_on_the_wire() {
    let mut duo = connected(setup(1, "sctp"));
    send(&mut duo, 1_000, lifetime(0));
    duo.run(Span::from_secs(1));
    assert_eq!(abandoned(&duo), [(0, AbandonCause::Lifetime, false)]);
    assert_eq!(statistics(&duo, A).chunks_sent, 0);
}

#[test]
fn received_message_is_not_abandoned_by_its_lifetime() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose(vec![FIRST_TSN]));
    send(&mut duo, 1_000, Reliability::Full);
    send(&mut duo, 1_000, lifetime(500));
    duo.run(Span::from_millis(600));
    duo.network.clear_filter();
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!(abandoned(&duo), [], "a gap block has covered it");
    assert_eq!(duo.flows[A].delivered_messages, 2);
}

#[test]
fn further_copies_of_a_chunk_are_no_retransmissions() {
    let mut duo = connected(setup(2, "cmt+redundant"));
    // Both copies of the first chunk are lost, and one retransmission is allowed.
    let mut copies = 0;
    duo.network.set_filter(move |packet| {
        let named = sight::tsns(packet).contains(&FIRST_TSN);
        copies += u32::from(named);
        !named || copies > 2
    });
    send(&mut duo, 1_000, retransmissions(1));
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!(abandoned(&duo), []);
    assert!(duo.all_arrived(Side::A));
    assert!(statistics(&duo, A).retransmissions >= 2, "a copy, and a retransmission");
}

#[test]
fn shutdown_waits_for_the_ack_of_forward_tsn() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose(vec![FIRST_TSN]));
    send(&mut duo, 1_000, lifetime(100));
    duo.shutdown(Side::A);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.is_over(Side::A) && duo.is_over(Side::B)));
    assert_eq!(duo.nodes[A].ended, Some(anabranch_core::AssociationEvent::Closed));
    assert_eq!(forwards(&duo).len(), 1);
}
