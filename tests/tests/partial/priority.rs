//! Priorities (RFC 7496 section 3.2): messages abandoned in favour of others.

use anabranch_core::time::Span;
use anabranch_core::{AbandonCause, Reliability, SendError};
use anabranch_tests::duo::Duo;
use anabranch_tests::network::Side;

use crate::partial::rig::{A, abandoned, come_to_rest, connected, send, setup, statistics};

/// Returns a pair in which A's send buffer holds ten messages of 1000 bytes.
fn duo() -> Duo {
    connected(setup(1, "sctp").with(|config| config.send_buffer_bytes = Some(10_000)))
}

fn priority(number: u32) -> Reliability {
    Reliability::Priority(number)
}

fn try_send(duo: &mut Duo, size: usize, reliability: Reliability) -> Result<(), SendError> {
    duo.send_limited(Side::A, size, 0, false, reliability).expect("there is an association")
}

#[test]
fn full_buffer_abandons_lowest_priority_first_and_newest_of_equals() {
    let mut duo = duo();
    for number in [5, 1, 9, 9, 5, 1, 1, 1, 1, 1] {
        send(&mut duo, 1_000, priority(number));
    }
    assert_eq!(abandoned(&duo), []);
    send(&mut duo, 3_000, priority(4));
    duo.settle();
    let given_up: Vec<u64> = abandoned(&duo).into_iter().map(|(context, ..)| context).collect();
    let mut sorted = given_up.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [2, 3, 4]);
    assert!(abandoned(&duo).iter().all(|&(_, cause, _)| cause == AbandonCause::Priority));
    come_to_rest(&mut duo, Span::from_secs(20));
    assert_eq!(duo.flows[A].delivered_messages, 8);
}

#[test]
fn message_of_no_higher_priority_is_refused() {
    let mut duo = duo();
    for _ in 0..5 {
        send(&mut duo, 1_000, priority(3));
        send(&mut duo, 1_000, Reliability::Full);
    }
    let full = Err(SendError::BufferFull { free_bytes: 0 });
    assert_eq!(try_send(&mut duo, 1_000, priority(3)), full, "an equal gives no way");
    assert_eq!(try_send(&mut duo, 6_000, priority(0)), full, "all that matter less have too little room");
    assert_eq!(try_send(&mut duo, 6_000, Reliability::Full), full);
    duo.settle();
    assert_eq!(abandoned(&duo), []);
    assert_eq!(try_send(&mut duo, 5_000, Reliability::Full), Ok(()));
    duo.settle();
    assert_eq!(abandoned(&duo).len(), 5);
    come_to_rest(&mut duo, Span::from_secs(20));
}

#[test]
fn sent_messages_are_abandoned_for_space_too() {
    let mut duo = duo();
    duo.cut(0, true);
    for _ in 0..10 {
        send(&mut duo, 1_000, priority(3));
    }
    duo.settle();
    send(&mut duo, 10_000, Reliability::Full);
    duo.settle();
    let counted = statistics(&duo, A).abandoned.by_priority;
    assert!(counted.sent >= 2 && counted.total() == 10, "{counted:?}");
    duo.cut(0, false);
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!(duo.flows[A].delivered_messages, 1);
}

#[test]
fn without_a_buffer_limit_no_message_is_abandoned() {
    let mut duo = connected(setup(1, "sctp"));
    for number in 0..200 {
        send(&mut duo, 1_000, priority(number));
    }
    come_to_rest(&mut duo, Span::from_secs(60));
    assert_eq!((abandoned(&duo).len(), duo.flows[A].delivered_messages), (0, 200));
}
