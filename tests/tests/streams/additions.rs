//! Addition of streams.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, StreamDirection, StreamRefusal, StreamRequest, StreamsError};
use anabranch_tests::network::Side;

use crate::streams::rig::{A, B, MOST_STREAMS, arrive, association, connected, send, setup};

const OUT: StreamDirection = StreamDirection::Outgoing;
const IN: StreamDirection = StreamDirection::Incoming;

#[test]
fn added_streams_carry_messages_in_both_directions() {
    let mut duo = connected(setup(1, "sctp"));
    let now = duo.now;
    let a = association(&mut duo, Side::A);
    a.add_streams(now, OUT, 3).expect("there is room");
    a.add_streams(now, IN, 2).expect("there is room");
    duo.settle();
    duo.run(Span::from_secs(2));
    let added = |direction, streams| AssociationEvent::StreamsAdded { direction, streams };
    for (side, direction, streams) in [(A, OUT, 7), (B, IN, 7), (A, IN, 6), (B, OUT, 6)] {
        assert!(duo.nodes[side].was_told(&added(direction, streams)), "{side}: {direction:?}");
    }
    let a = duo.nodes[A].association();
    assert_eq!((a.outbound_streams(), a.inbound_streams()), (7, 6));
    send(&mut duo, Side::A, 6, 3);
    send(&mut duo, Side::B, 5, 3);
    arrive(&mut duo);
}

#[test]
fn own_limit_counts_requests_on_their_way() {
    let mut duo = connected(setup(1, "sctp"));
    let now = duo.now;
    let a = association(&mut duo, Side::A);
    let free = MOST_STREAMS - 4;
    assert_eq!(a.add_streams(now, OUT, free + 1), Err(StreamsError::TooManyStreams { limit: MOST_STREAMS }));
    a.add_streams(now, OUT, free).expect("it is within the limit");
    assert_eq!(a.add_streams(now, OUT, 1), Err(StreamsError::TooManyStreams { limit: MOST_STREAMS }));
    assert_eq!(a.add_streams(now, IN, u16::MAX), Err(StreamsError::TooManyStreams { limit: MOST_STREAMS }));
}

#[test]
fn peer_with_a_lower_limit_denies_and_the_streams_stay() {
    let lower = setup(1, "sctp").with_side(Side::B, |config| {
        config.stream_changes.as_mut().expect("it is set").max_streams = 5;
    });
    let mut duo = connected(lower);
    for direction in [OUT, IN] {
        let now = duo.now;
        association(&mut duo, Side::A).add_streams(now, direction, 2).expect("it is within our limit");
        duo.settle();
        duo.run(Span::from_secs(2));
        let request = StreamRequest::Add { direction, streams: 2 };
        let denied = AssociationEvent::StreamRequestFailed { request, refusal: StreamRefusal::Denied };
        assert!(duo.nodes[A].was_told(&denied), "{direction:?}");
    }
    let a = duo.nodes[A].association();
    assert_eq!((a.outbound_streams(), a.inbound_streams()), (4, 4));
}
