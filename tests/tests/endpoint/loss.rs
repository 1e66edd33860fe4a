//! Detection and retransmission of losses.

use anabranch_core::time::{Span, Time};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Link, Packet, Side};
use anabranch_tests::sight::{self, Sack};

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

const RTT: Span = Span::from_millis(50);

/// Loses the first transmission of these TSNs.
fn lose_once(mut lost: Vec<u32>) -> impl FnMut(&Packet) -> bool {
    move |packet| {
        let named = sight::tsns(packet).into_iter().find(|tsn| lost.contains(tsn));
        if let Some(tsn) = named {
            lost.retain(|&other| other != tsn);
        }
        named.is_none()
    }
}

fn one_path() -> Duo {
    let setup = Setup::new(1, "sctp", "rfc9260").with(|config| config.initial_tsn = Some(1_000));
    Duo::connected(setup)
}

//= docs/rfc9260.txt#section-6.7
//= type=test
//# The number of "missing" reports for each outstanding DATA chunk MUST be recorded by the data sender to make
//# retransmission decisions.
//= docs/rfc9260.txt#section-7.2.4
//= type=test
//# Whenever an endpoint receives a SACK chunk that indicates that some TSNs are missing, it SHOULD wait for two further
//# miss indications (via subsequent SACK chunks for a total of three missing reports) on the same TSNs before taking
//# action with regard to Fast Retransmit.
#[test]
fn three_reports_make_a_chunk_lost_and_two_do_not() {
    for (messages, expected) in [(3, 0), (4, 1)] {
        let mut duo = one_path();
        duo.network.set_filter(lose_once(vec![1_000]));
        duo.send_all(Side::A, 1_000, messages);
        // Each later packet is answered by a SACK that reports the first one missing.
        duo.run(Span::from_millis(500));
        let statistics = duo.nodes[A].association().statistics();
        assert_eq!(statistics.fast_retransmitted_chunks, expected, "{messages} messages");
        assert_eq!(statistics.fast_retransmit_events, expected, "{messages} messages");
        assert_eq!(duo.all_arrived(Side::A), expected == 1, "{messages} messages");
        assert!(duo.run_until(Span::from_secs(3), |duo| duo.all_arrived(Side::A)));
        let timeouts = duo.nodes[A].association().statistics().timeouts;
        assert_eq!(timeouts, 1 - expected, "{messages} messages");
    }
}

//= docs/rfc9260.txt#section-6.1
//= type=test
//# If the timer for that address is already running, the sender MUST restart the timer if the earliest (i.e., lowest TSN)
//# outstanding DATA chunk sent to that address is being retransmitted.
#[test]
fn received_sacks_are_counted_and_overtaken_ones_separately() {
    let mut duo = one_path();
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, 1_000, 10);
    assert!(duo.run_until(Span::from_secs(5), |duo| duo.all_arrived(Side::A)));
    duo.run(Span::from_secs(1));
    let sacks: Vec<Packet> = duo
        .kept
        .iter()
        .flatten()
        .map(|(_, packet)| packet.clone())
        .filter(|p| sight::sack(p).is_some())
        .collect();
    let counts = |duo: &Duo| {
        let statistics = duo.nodes[A].association().statistics();
        (statistics.sacks_received, statistics.sacks_ignored)
    };
    assert_eq!(counts(&duo), (sacks.len() as u64, 0));
    // The first SACK again, after later ones have arrived.
    let now = duo.now;
    duo.nodes[A].handle(now, &sacks[0]);
    assert_eq!(counts(&duo), (sacks.len() as u64 + 1, 1));
}

#[test]
fn only_an_ack_of_its_own_earliest_chunk_puts_a_paths_time_out_off() {
    // Both paths carry data; the first chunk on the second path is lost permanently. Acknowledgements of later chunks on either
    // path must not postpone its time-out.
    let setup =
        Setup::new(2, "cmt(rtx=rtx-same,trigger=100)", "rfc9260").with(|c| c.initial_tsn = Some(1_000));
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(1));
    let second = duo.setup.address(Side::B, 1);
    let mut lost = None;
    duo.network.set_filter(move |packet| {
        let Some(&tsn) = sight::tsns(packet).first().filter(|_| packet.destination == second) else {
            return true;
        };
        *lost.get_or_insert(tsn) != tsn
    });
    let start = duo.now;
    let mut timeout: Option<Time> = None;
    while timeout.is_none() && duo.now.since(start) < Span::from_secs(3) {
        duo.send_all(Side::A, 1_000, 2);
        duo.run(Span::from_millis(10));
        let timeouts = duo.nodes[A].association().statistics().timeouts;
        timeout = (timeouts > 0).then_some(duo.now);
    }
    let after = timeout.map(|at| at.since(start)).unwrap_or_default();
    assert!(after >= Span::from_secs(1) && after < Span::from_millis(1_100), "T3 expired after {after:?}");
    assert_eq!(duo.nodes[A].association().paths()[0].error_count, 0, "the other path's timer was put off");
}

//= docs/rfc9260.txt#section-6.2
//= type=test
//# The SCTP endpoint MUST report as many Gap Ack Blocks as can fit in a single SACK chunk such that the size of the SCTP
//# packet does not exceed the current PMTU.
//= docs/rfc9260.txt#section-6.7
//= type=test
//# When a single SACK chunk cannot cover all the Gap Ack Blocks needed to be reported due to the PMTU limitation, the
//# endpoint MUST send only one SACK chunk.
//= docs/rfc9260.txt#section-6.7
//= type=test
//# This single SACK chunk MUST report the Gap Ack Blocks from the lowest to highest TSNs, within the size limit set by
//# the PMTU, and leave the remaining highest TSN numbers unacknowledged.
#[test]
fn a_sack_too_large_for_a_packet_names_the_lowest_gaps() {
    const MTU: usize = 576;
    let setup = Setup::new(1, "sctp", "rfc9260").with(|config| {
        config.mtu_bytes = MTU;
        config.recv_buffer_bytes = 1 << 20;
    });
    let mut duo = Duo::connected(setup);
    // The window must grow until it holds more gaps than a packet can name.
    duo.send_all(Side::A, 500, 3_000);
    assert!(duo.run_until(Span::from_secs(10), |duo| duo.all_arrived(Side::A)));
    duo.network.set_filter(|packet| sight::tsns(packet).first().is_none_or(|tsn| tsn % 2 == 0));
    duo.kept = Some(Vec::new());
    duo.send_all(Side::A, 500, 600);
    duo.run(RTT + RTT);
    let sacks: Vec<Sack> = duo.kept.iter().flatten().filter_map(|(_, packet)| sight::sack(packet)).collect();
    let most = sacks.iter().map(|sack| sack.gaps.len()).max().unwrap_or_default();
    // Common header 12, SACK header 16, four bytes for each gap.
    assert_eq!(most, (MTU - 20 - 12 - 16) / 4, "gaps in the largest SACK");
    for sack in &sacks {
        assert!(
            sack.gaps.first().is_none_or(|&(start, _)| start <= 3),
            "the lowest gap comes first: {:?}",
            sack.gaps.first()
        );
    }
    duo.network.clear_filter();
    assert!(duo.run_until(Span::from_secs(300), |duo| duo.all_arrived(Side::A)));
}

#[test]
fn heavy_loss_on_every_path_is_repaired() {
    for scheme in ["sctp", "naive-cmt", "cmt(rtx=rtx-same)", "cmt(rtx=rtx-asap)", "cmt-pf(rtx=rtx-lossrate)"]
    {
        let mut setup = Setup::new(2, scheme, "rfc9260");
        setup.link = Link { loss: 80, duplicate: 20, reorder: 100, ..setup.link };
        let mut duo = Duo::connected(setup);
        duo.send_all(Side::A, 3_000, 100);
        duo.send_all(Side::B, 3_000, 100);
        assert!(
            duo.run_until(Span::from_secs(900), |duo| Side::BOTH.iter().all(|&side| duo.all_arrived(side))),
            "{scheme}: {} and {} are missing",
            duo.flows[A].missing(),
            duo.flows[B].missing()
        );
    }
}
