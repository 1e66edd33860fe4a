//! FORWARD-TSN: its content, its retransmissions, and the short effect of its loss.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::duo::Duo;
use anabranch_tests::network::Side;
use anabranch_tests::sight;

use crate::partial::rig::{
    A, B, FIRST_TSN, come_to_rest, connected, forward_tsn, forwards, lifetime, lose, rest, retransmissions,
    send, send_on, setup, statistics,
};

#[test]
fn each_stream_is_named_once_with_the_last_message_that_is_skipped() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose((FIRST_TSN..FIRST_TSN + 4).collect()));
    for stream in [2, 1, 2] {
        send_on(&mut duo, stream, 1_000, lifetime(100));
    }
    duo.send_limited(Side::A, 1_000, 3, true, lifetime(100)).expect("it is up").expect("it is taken");
    for stream in 0..4 {
        send_on(&mut duo, stream, 1_000, Reliability::Full);
    }
    come_to_rest(&mut duo, Span::from_secs(10));
    assert_eq!(
        forwards(&duo).last(),
        Some(&(FIRST_TSN + 3, vec![(1, 0), (2, 1)])),
        "none for unordered ones"
    );
    assert_eq!(duo.flows[A].delivered_messages, 4);
}

#[test]
fn lost_forward_tsn_is_repeated_once_per_rtt_with_sacks() {
    let mut duo = connected(setup(1, "sctp"));
    // All packets that name the abandoned TSN are lost for 400 ms.
    let end = duo.now + Span::from_millis(400);
    let now = std::rc::Rc::new(std::cell::Cell::new(duo.now));
    let clock = std::rc::Rc::clone(&now);
    duo.network.set_filter(move |packet| {
        let skips = forward_tsn(packet).is_some();
        clock.get() >= end || !(skips || sight::tsns(packet).contains(&FIRST_TSN))
    });
    send(&mut duo, 1_000, lifetime(30));
    for _ in 0..50 {
        send_on(&mut duo, 1, 1_000, Reliability::Full);
        let at = duo.now + Span::from_millis(10);
        duo.run_until(Span::from_millis(10), |duo| {
            now.set(duo.now);
            duo.now >= at
        });
        now.set(duo.now);
    }
    duo.network.clear_filter();
    come_to_rest(&mut duo, Span::from_secs(10));
    let sent = statistics(&duo, A).forward_tsns_sent;
    assert!((6..=9).contains(&sent), "{sent} in 370 ms with a round trip of 50 ms");
    assert_eq!(statistics(&duo, A).timeouts, 0, "{:?}", statistics(&duo, A));
}

#[test]
fn lost_forward_tsn_alone_is_repeated_by_t3() {
    let mut duo = connected(setup(1, "sctp"));
    let mut lost = 0;
    duo.network.set_filter(move |packet| {
        let skips = forward_tsn(packet).is_some();
        lost += u32::from(skips);
        !(sight::tsns(packet).contains(&FIRST_TSN) || skips && lost <= 2)
    });
    send(&mut duo, 1_000, lifetime(100));
    come_to_rest(&mut duo, Span::from_secs(10));
    let counted = statistics(&duo, A);
    assert_eq!((counted.forward_tsns_sent, counted.timeouts), (3, 2), "{counted:?}");
    assert_eq!(duo.nodes[A].association().paths()[0].error_count, 0, "the answer proves the path");
    // Later data is in its place.
    send(&mut duo, 1_000, Reliability::Full);
    come_to_rest(&mut duo, Span::from_secs(10));
    assert_eq!(duo.flows[A].delivered_messages, 1);
}

fn with_streams(streams: u16, mtu: usize) -> Duo {
    connected(setup(1, "sctp").with(|config| {
        config.streams = streams;
        config.mtu_bytes = mtu;
    }))
}

#[test]
fn more_streams_than_fit_a_packet_are_skipped_one_packet_after_the_other() {
    let mut duo = with_streams(180, 600);
    duo.send_all(Side::A, 500, 60);
    rest(&mut duo, Span::from_secs(20));
    duo.network.set_filter(|packet| sight::tsns(packet).is_empty());
    // Max.Burst limits a burst to four packets.
    for streams in [0..90, 90..180] {
        streams.for_each(|stream| send_on(&mut duo, stream, 1, lifetime(100)));
        duo.run(Span::from_millis(10));
    }
    duo.run(Span::from_millis(110));
    duo.network.clear_filter();
    for stream in 0..180 {
        send_on(&mut duo, stream, 1, Reliability::Full);
    }
    come_to_rest(&mut duo, Span::from_secs(20));
    let said = forwards(&duo);
    assert!(said.len() >= 2, "{} FORWARD-TSNs for 180 streams", said.len());
    assert!(said.iter().all(|(_, streams)| streams.len() <= 140), "a packet of 600 B has room for 140");
    assert!(said.is_sorted_by_key(|(tsn, _)| *tsn), "each goes further than the one before");
    assert_eq!(statistics(&duo, A).abandoned.by_lifetime.sent, 180);
    assert_eq!(duo.flows[A].delivered_messages, 240);
}

#[test]
fn the_order_of_streams_survives_the_wrap_of_sequence_numbers_and_tsns() {
    let setup = setup(1, "sctp").with(|config| {
        config.first_ssn = u16::MAX - 3;
        config.initial_tsn = Some(u32::MAX - 5);
    });
    let mut duo = connected(setup);
    let mut count = 0;
    duo.network.set_filter(move |packet| {
        let data = !sight::tsns(packet).is_empty();
        count += u32::from(data);
        !(data && count % 3 == 0)
    });
    for number in 0..60 {
        let reliability = if number % 2 == 0 { retransmissions(0) } else { Reliability::Full };
        send(&mut duo, 900, reliability);
    }
    come_to_rest(&mut duo, Span::from_secs(120));
    let counted = statistics(&duo, A);
    assert!(counted.abandoned.by_retransmissions.sent > 3, "{counted:?}");
    assert_eq!(duo.flows[A].delivered_messages + counted.abandoned.messages(), 60);
}

#[test]
fn sack_of_a_forward_tsn_returns_to_its_source() {
    let mut duo = connected(setup(2, "cmt"));
    // The first path becomes silent with data on it; the second carries the FORWARD-TSN and its answer.
    duo.cut(0, true);
    send(&mut duo, 1_000, lifetime(100));
    send(&mut duo, 1_000, lifetime(100));
    come_to_rest(&mut duo, Span::from_secs(30));
    assert!(statistics(&duo, B).forward_tsns_received >= 1);
}
