//! A scheme's own rules replace those of its profile.

use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;

const A: usize = Side::A as usize;

/// Returns a pair whose SACKs for the first data are lost, at its first time-out, and the duration.
fn after_a_time_out(scheme: &str, profile: &str) -> (Duo, Span) {
    let mut duo = Duo::connected(Setup::new(1, scheme, profile));
    // This exchange measures the round trip.
    duo.send_all(Side::A, 1_000, 1);
    duo.run(Span::from_secs(3));
    assert!(duo.all_arrived(Side::A));
    duo.cut(0, true);
    duo.send_all(Side::A, 1_000, 1);
    let start = duo.now;
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.nodes[A].association().statistics().timeouts == 1));
    let taken = duo.now.since(start);
    (duo, taken)
}

#[test]
fn a_floor_of_the_scheme_replaces_the_profiles() {
    for (scheme, profile, chunks) in [
        ("cmt(floor=2)", "rfc9260", 2),
        ("cmt(floor=4)", "rfc9260", 4),
        ("cmt(floor=2)", "ns2", 2),
        ("cmt(floor=4)", "ns2", 4),
    ] {
        let (duo, _) = after_a_time_out(scheme, profile);
        let path = duo.nodes[A].association().paths()[0];
        // The window was below twice the floor.
        assert_eq!(path.ssthresh, path.largest_chunk.times(chunks), "{scheme}, {profile}");
    }
}

#[test]
fn mptcp_ns2_times_out_after_a_fifth_of_a_second_and_others_after_one() {
    for (scheme, millis) in [("mptcp-lia", 1_000), ("mptcp-ns2(rto-min=1000)", 1_000), ("mptcp-ns2", 200)] {
        let (_, taken) = after_a_time_out(scheme, "rfc9260");
        assert_eq!(taken, Span::from_millis(millis), "{scheme}");
    }
}
