//! Rules under which no receive window limits outstanding data.

use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::sight;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

const BUFFER: u64 = 5_000;

fn duo(shared: bool) -> Duo {
    let setup = Setup::new(2, "cmt", "rfc9260").with(|config| {
        config.initial_tsn = Some(1_000);
        config.recv_buffer_bytes = BUFFER;
        config.profile.shared_receive_window = shared;
    });
    let mut duo = Duo::connected(setup);
    duo.reading[B] = Reading::ByHand;
    duo
}

#[test]
fn without_a_shared_window_no_sender_waits_for_a_reader() {
    let mut duo = duo(false);
    duo.send_all(Side::A, 1_000, 200);
    duo.run(Span::from_secs(3));
    let (a, b) = (duo.nodes[A].association(), duo.nodes[B].association());
    assert_eq!((a.buffered_bytes(), b.held_bytes()), (0, 200_000));
    let statistics = a.statistics();
    assert_eq!((statistics.blocked_by_peer_window_ns, statistics.window_probes), (0, 0));
    assert_eq!((b.statistics().chunks_dropped, statistics.retransmissions), (0, 0));
    assert_eq!(a.association_facts().peer_window.get(), BUFFER, "it always advertises its whole buffer");
    duo.read(Side::B, usize::MAX);
    assert!(duo.all_arrived(Side::A));
}

#[test]
fn without_a_shared_window_a_hole_blocks_no_sender() {
    let mut duo = duo(false);
    duo.reading[B] = Reading::WhenTold;
    duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_000));
    duo.send_all(Side::A, 1_000, 200);
    duo.run(Span::from_secs(5));
    let a = duo.nodes[A].association();
    assert_eq!((a.queued_bytes(), a.association_facts().cumulative_tsn), (0, (1 << 32) + 999));
    assert_eq!(duo.nodes[B].association().held_bytes(), 199_000);
    duo.network.clear_filter();
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn shared_window_waits_for_the_reader() {
    let mut duo = duo(true);
    duo.send_all(Side::A, 1_000, 200);
    duo.run(Span::from_secs(3));
    assert!(duo.nodes[B].association().held_bytes() <= BUFFER);
    assert!(duo.nodes[A].association().statistics().blocked_by_peer_window_ns > 0);
}
