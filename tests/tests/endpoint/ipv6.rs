//! IPv6, alone and together with IPv4.

use anabranch_core::PathState;
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;

const A: usize = Side::A as usize;

/// Returns a pair connected over pairs of addresses, IPv6 for each set bit.
fn connected(pairs: usize, ipv6: u8, scheme: &str) -> Duo {
    Duo::connected(Setup { ipv6, ..Setup::new(pairs, scheme, "net") })
}

#[test]
fn data_flows_both_ways_over_ipv6() {
    for scheme in ["sctp", "cmt", "bonded"] {
        let mut duo = connected(2, 0b11, scheme);
        for side in Side::BOTH {
            duo.send_all(side, 10_000, 50);
        }
        let both = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.all_arrived(side));
        assert!(duo.run_until(Span::from_secs(30), both), "{scheme}");
    }
}

#[test]
fn a_path_of_each_family_carries_its_part() {
    for ipv6 in [0b01, 0b10] {
        let mut duo = connected(2, ipv6, "cmt");
        duo.run(Span::from_secs(2));
        duo.kept = Some(Vec::new());
        duo.send_all(Side::A, 10_000, 100);
        assert!(duo.run_until(Span::from_secs(30), |duo| duo.all_arrived(Side::A)));
        let to = |v6: bool| {
            let sent = duo.kept.iter().flatten().filter(|(_, packet)| packet.from == Side::A);
            sent.filter(|(_, packet)| packet.destination.is_ipv6() == v6)
                .map(|(_, p)| p.bytes.len())
                .sum::<usize>()
        };
        assert!(to(false) > 200_000 && to(true) > 200_000, "{} and {}", to(false), to(true));
    }
}

#[test]
fn the_header_of_ipv6_takes_twenty_bytes_more_of_a_packet() {
    let duo = connected(2, 0b10, "cmt");
    let largest = |path: usize| duo.nodes[A].association().paths()[path].largest_chunk.get();
    assert_eq!(largest(0) - largest(1), 20);
}

#[test]
fn failed_path_is_left_and_resumed_in_both_families() {
    for (ipv6, fails) in [(0b11, 0), (0b01, 0), (0b01, 1)] {
        let mut duo = connected(2, ipv6, "bonded");
        duo.run(Span::from_secs(1));
        duo.send_all(Side::A, 10_000, 100);
        duo.run(Span::from_millis(60));
        duo.cut(fails, true);
        assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)), "{ipv6:b}, {fails}");
        let state = |duo: &Duo| duo.nodes[A].association().paths()[fails].state;
        assert_ne!(state(&duo), PathState::Active, "{ipv6:b}, {fails}");
        duo.cut(fails, false);
        let back = |duo: &Duo| state(duo) == PathState::Active;
        assert!(duo.run_until(Span::from_secs(120), back), "{ipv6:b}, {fails}");
    }
}
