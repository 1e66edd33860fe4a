//! Closure, opening and probes of the receive window.

use anabranch_core::AssociationEvent;
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// Returns a pair in which A has sent more than fits into B's buffer of 10,000 B, and B reads nothing.
fn blocked() -> Duo {
    let setup =
        Setup::new(1, "sctp", "rfc9260").with_side(Side::B, |config| config.recv_buffer_bytes = 10_000);
    let mut duo = Duo::connected(setup);
    duo.reading[B] = Reading::ByHand;
    duo.send_all(Side::A, 1_000, 30);
    duo.run(Span::from_secs(3));
    let b = duo.nodes[B].association();
    assert!((9_000..=10_000).contains(&b.held_bytes()), "B holds {} B", b.held_bytes());
    duo
}

fn opens_window(packet: &Packet) -> bool {
    packet.from == Side::B && sight::sack(packet).is_some_and(|sack| sack.window >= 2_000)
}

//= docs/rfc9260.txt#section-6.2
//= type=test
//# The receiver MUST also have an algorithm for advertising its receive window to avoid receiver silly window syndrome
//# (SWS), as described in [RFC1122].
//= docs/rfc9260.txt#section-6.2
//= type=test
//# When the window opens up, an SCTP receiver SHOULD send additional SACK chunks to update the window even if no new data
//# is received.
#[test]
fn a_reader_that_comes_back_opens_the_window_at_once() {
    let mut duo = blocked();
    duo.reading[B] = Reading::WhenTold;
    duo.read(Side::B, usize::MAX);
    let start = duo.now;
    assert!(duo.run_until(Span::from_secs(2), |duo| duo.all_arrived(Side::A)));
    assert!(duo.now.since(start) < Span::from_secs(1), "no time-out was needed: {:?}", duo.now.since(start));
}

//= docs/rfc9260.txt#section-6.1
//= type=test
//# Senders MUST support zero window probing.
#[test]
fn a_probe_finds_a_window_whose_opening_was_lost() {
    let mut duo = blocked();
    duo.network.set_filter(|packet| !opens_window(packet));
    duo.read(Side::B, usize::MAX);
    duo.settle();
    duo.network.clear_filter();
    duo.reading[B] = Reading::WhenTold;
    let probes = duo.nodes[A].association().statistics().window_probes;
    assert!(duo.run_until(Span::from_secs(70), |duo| duo.all_arrived(Side::A)));
    assert!(probes > 0);
}

//= docs/rfc9260.txt#section-6.1
//= type=test
//# If the sender continues to receive SACK chunks from the peer while doing zero window probing, the unacknowledged
//# window probes SHOULD NOT increment the error counter for the association or any destination transport address.
#[test]
fn probes_that_are_answered_never_count_as_errors() {
    let mut duo = blocked();
    duo.run(Span::from_secs(3600));
    let a = duo.nodes[A].association();
    // The probes are up to a minute apart, and many more than Association.Max.Retrans.
    assert!(a.statistics().timeouts > 50, "{:?}", a.statistics());
    assert_eq!(a.paths()[0].error_count, 0);
    assert_eq!(duo.nodes[A].told, [AssociationEvent::Connected, state_of_path_0()]);
    duo.reading[B] = Reading::WhenTold;
    duo.read(Side::B, usize::MAX);
    assert!(duo.run_until(Span::from_secs(70), |duo| duo.all_arrived(Side::A)));
}

fn state_of_path_0() -> AssociationEvent {
    AssociationEvent::PathState {
        path: anabranch_core::PathId::new(0),
        state: anabranch_core::PathState::Active,
    }
}

#[test]
fn a_probe_that_is_not_answered_counts_as_an_error() {
    let mut duo = blocked();
    duo.cut(0, true);
    assert!(duo.run_until(Span::from_secs(1200), |duo| duo.is_over(Side::A)));
}

#[test]
fn a_probe_counts_as_an_error_again_once_the_window_has_opened() {
    let mut duo = blocked();
    // The window is announced open, and from here on nothing from A arrives.
    duo.network.set_filter(|packet| sight::tsns(packet).is_empty());
    duo.reading[B] = Reading::WhenTold;
    duo.read(Side::B, usize::MAX);
    let before = duo.nodes[A].association().statistics().timeouts;
    assert!(
        duo.run_until(Span::from_secs(70), |duo| duo.nodes[A].association().statistics().timeouts > before)
    );
    assert_eq!(duo.nodes[A].association().paths()[0].error_count, 1);
}

#[test]
fn a_full_buffer_takes_the_next_tsn_in_order() {
    let setup =
        Setup::new(1, "sctp", "rfc9260").with_side(Side::B, |config| config.recv_buffer_bytes = 4_000);
    let mut duo = Duo::connected(setup);
    let mut first = None;
    duo.network.set_filter(move |packet| {
        // The first chunk is lost once, and the later ones fill the buffer and wait for it.
        let Some(&tsn) = sight::tsns(packet).first() else { return true };
        first.replace(tsn).is_some()
    });
    // All are parts of one message, so nothing can be read before the first one arrives.
    duo.send_all(Side::A, 4_400, 1);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    assert!(duo.nodes[B].association().statistics().peak_held_bytes > 4_000 - 1_452);
}

#[test]
fn parts_become_readable_when_a_chunk_larger_than_ours_finds_no_room() {
    // A's own chunks are small, so 632 B of free buffer would not count as used up for A. B's next chunk still does not fit.
    let setup = Setup::new(1, "sctp", "ns2").with_side(Side::A, |config| {
        config.mtu_bytes = 576;
        config.recv_buffer_bytes = 2_100;
    });
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::B, 10_000, 2);
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::B)));
}

#[test]
fn a_probe_that_a_shutdown_acknowledges_is_settled() {
    // Every chunk is larger than B's whole window and is sent as a probe. B, which shuts down, answers DATA with another SHUTDOWN
    // before the SACK, so the SHUTDOWN acknowledges the probe.
    let setup = Setup::new(1, "sctp", "rfc9260")
        .with(|config| config.mtu_bytes = 9_000)
        .with_side(Side::B, |config| config.recv_buffer_bytes = 2_000);
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::A, 8_000, 3);
    duo.shutdown(Side::B);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.is_over(Side::A) && duo.is_over(Side::B)));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(duo.nodes[A].association().statistics().window_probes, 3);
}
