//! Effect of abandonment on windows.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::duo::Duo;
use anabranch_tests::network::Side;

use crate::partial::rig::{
    A, FIRST_TSN, come_to_rest, connected, lifetime, lose, rest, retransmissions, send, setup, statistics,
};

fn cwnd(duo: &Duo) -> u64 {
    duo.nodes[A].association().paths()[0].cwnd.get()
}

/// Returns a pair with a grown window of its one path.
fn grown() -> Duo {
    let mut duo = connected(setup(1, "sctp"));
    duo.send_all(Side::A, 1_400, 60);
    rest(&mut duo, Span::from_secs(20));
    duo
}

fn next_tsn() -> u32 {
    FIRST_TSN + 60
}

#[test]
fn loss_that_abandons_a_message_cuts_the_window() {
    for reliability in [Reliability::Full, retransmissions(0)] {
        let mut duo = grown();
        let before = cwnd(&duo);
        duo.network.set_filter(lose(vec![next_tsn()]));
        send(&mut duo, 1_400, reliability);
        for _ in 0..5 {
            send(&mut duo, 1_400, Reliability::Full);
        }
        duo.run(Span::from_millis(150));
        assert_eq!(cwnd(&duo), before / 2, "{reliability:?}");
    }
}

#[test]
fn lost_chunk_abandoned_in_flight_cuts_the_window_once() {
    let mut duo = grown();
    let before = cwnd(&duo);
    // The first of ten is lost, and its lifetime ends before three reports. The chunk that holds back the ack point is lost too, so
    // that no FORWARD-TSN covers it.
    duo.network.set_filter(lose(vec![next_tsn(), next_tsn() + 1]));
    send(&mut duo, 1_400, Reliability::Full);
    send(&mut duo, 1_400, lifetime(20));
    for _ in 0..8 {
        send(&mut duo, 1_400, Reliability::Full);
    }
    duo.run(Span::from_millis(150));
    assert_eq!(statistics(&duo, A).abandoned.by_lifetime.sent, 1);
    assert_eq!(cwnd(&duo), before / 2, "both losses are of one window");

    let mut duo = grown();
    // Alone it reduces the window as well: SACKs sent before the arrival of the FORWARD-TSN report it missing.
    duo.network.set_filter(lose(vec![next_tsn()]));
    send(&mut duo, 1_400, lifetime(45));
    for _ in 0..8 {
        send(&mut duo, 1_400, Reliability::Full);
    }
    duo.run(Span::from_millis(150));
    assert_eq!(statistics(&duo, A).abandoned.by_lifetime.sent, 1);
    assert_eq!(statistics(&duo, A).retransmissions, 0);
    assert_eq!(cwnd(&duo), before / 2);
}

#[test]
fn abandoned_data_does_not_grow_the_window() {
    let mut duo = connected(setup(1, "sctp"));
    let before = cwnd(&duo);
    duo.network.set_filter(lose((FIRST_TSN..FIRST_TSN + 3).collect()));
    for _ in 0..3 {
        send(&mut duo, 1_400, lifetime(40));
    }
    come_to_rest(&mut duo, Span::from_secs(10));
    assert_eq!(statistics(&duo, A).abandoned.by_lifetime.sent, 3);
    assert_eq!(cwnd(&duo), before, "the FORWARD-TSN was acknowledged, no data was");
    assert_eq!(duo.nodes[A].association().paths()[0].delivered.get(), 0);
}

#[test]
fn abandoned_data_in_flight_frees_the_window() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network
        .set_filter(|packet| anabranch_tests::sight::tsns(packet).iter().all(|&tsn| tsn >= FIRST_TSN + 3));
    for _ in 0..3 {
        send(&mut duo, 1_400, lifetime(40));
    }
    send(&mut duo, 1_400, Reliability::Full);
    send(&mut duo, 1_400, Reliability::Full);
    duo.run(Span::from_millis(39));
    let sent_before = statistics(&duo, A).chunks_sent;
    assert!(sent_before < 5, "the window holds some back");
    duo.run(Span::from_millis(2));
    assert_eq!(statistics(&duo, A).chunks_sent, 5, "they leave once the others have left the flight");
    come_to_rest(&mut duo, Span::from_secs(10));
}

#[test]
fn rtt_is_measured_again_after_an_abandoned_chunk() {
    let mut duo = connected(setup(1, "sctp"));
    duo.network.set_filter(lose(vec![FIRST_TSN]));
    send(&mut duo, 1_000, lifetime(30));
    come_to_rest(&mut duo, Span::from_secs(10));
    duo.link(0).delay = Span::from_millis(200);
    let before = duo.nodes[A].association().paths()[0].rtt.smoothed;
    for _ in 0..5 {
        send(&mut duo, 1_000, Reliability::Full);
        come_to_rest(&mut duo, Span::from_secs(10));
    }
    let after = duo.nodes[A].association().paths()[0].rtt.smoothed;
    assert!(after > before, "{before:?} {after:?}");
}
