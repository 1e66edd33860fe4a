//! Path MTU discovery by probes, and its reset after a path stops carrying the found size.

use anabranch_core::InterfaceMtu;
use anabranch_core::time::Span;
use anabranch_schemes::registry::PRESETS;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;

const A: usize = Side::A as usize;

/// Bytes of the IPv4 header and the SCTP common header.
const HEADERS: usize = 20 + 12;

/// Returns a pair that searches from 1,200 up to 1,500 bytes over links of these MTUs.
fn searching<const N: usize>(mtus: [usize; N]) -> Duo {
    searching_with("bonded", mtus)
}

fn searching_with<const N: usize>(scheme: &str, mtus: [usize; N]) -> Duo {
    let setup = Setup::new(N, scheme, "net").with(|config| {
        config.mtu_bytes = 1_200;
        config.mtu_search_up_to_bytes = Some(1_500);
    });
    let mut duo = Duo::new(setup);
    for (pair, mtu) in mtus.into_iter().enumerate() {
        duo.link(pair).mtu = mtu;
    }
    duo.connect();
    duo.kept = Some(Vec::new());
    duo
}

/// Returns a pair that searches from 1,200 up to 65,535 bytes. Links carry `carried` bytes, interfaces accept `mtus`, and the
/// buffers hold any packet.
fn searching_behind<const N: usize>(mtus: [usize; N], carried: usize) -> Duo {
    let setup = Setup::new(N, "bonded", "net").with(|config| {
        config.mtu_bytes = 1_200;
        config.mtu_search_up_to_bytes = Some(65_535);
        config.recv_buffer_bytes = 2 << 20;
    });
    let mut duo = Duo::new(setup);
    for pair in 0..N {
        duo.link(pair).mtu = carried;
    }
    limit(&mut duo, mtus);
    duo.connect();
    duo.kept = Some(Vec::new());
    duo
}

/// Limits the interfaces of side A to these sizes.
fn limit<const N: usize>(duo: &mut Duo, mtus: [usize; N]) {
    let local = |pair| duo.setup.address(Side::A, pair);
    let limits = mtus.into_iter().enumerate();
    let limits =
        limits.map(|(pair, mtu_bytes)| InterfaceMtu { local: local(pair).into(), mtu_bytes }).collect();
    let now = duo.now;
    duo.nodes[A].endpoint.set_interface_mtus(now, limits);
    duo.settle();
}

/// Returns the length of the longest packet that A sent, IPv4 header included.
fn longest(duo: &Duo) -> usize {
    let sent = duo.kept.iter().flatten().filter(|(_, packet)| packet.from == Side::A);
    sent.map(|(_, packet)| packet.bytes.len() + 20).max().unwrap_or(0)
}

/// Returns the maximum packet length of the path, IPv4 header included.
fn found(duo: &Duo, path: usize) -> usize {
    duo.nodes[A].association().paths()[path].largest_chunk.get() as usize + HEADERS
}

/// Returns the length of the longest packet with DATA that A sent, IPv4 header included.
fn longest_data(duo: &Duo) -> usize {
    let data = |packet: &&(_, Packet)| packet.1.from == Side::A && !sight::tsns(&packet.1).is_empty();
    duo.kept.iter().flatten().filter(data).map(|(_, packet)| packet.bytes.len() + 20).max().unwrap_or(0)
}

//= docs/rfc9260.txt#section-7.3
//= type=test
//# An endpoint SHOULD apply these techniques and SHOULD do so on a per- destination-address basis.
//= docs/rfc9260.txt#section-7.3
//= type=test
//# An endpoint MUST maintain separate PMTU estimates for each destination address of its peer.
#[test]
fn each_path_comes_to_carry_what_its_link_does() {
    for mtu in [1_200, 1_280, 1_400, 1_492, 1_500, 9_000] {
        let mut duo = searching([mtu]);
        duo.run(Span::from_secs(40));
        let most = mtu.min(1_500);
        let found = found(&duo, 0);
        assert!(found <= most && found + 12 > most, "{mtu}: {found}");
        assert_eq!(duo.nodes[A].association().statistics().timeouts, 0);
        assert_eq!(duo.nodes[A].association().paths()[0].error_count, 0, "a lost probe is no error");
    }
}

#[test]
fn a_good_path_is_at_its_full_size_within_a_round_trip() {
    let mut duo = searching([1_500]);
    duo.run(Span::from_millis(200));
    assert_eq!(found(&duo, 0), 1_500);
}

//= docs/rfc9260.txt#section-6
//= type=test
//# The size of each DATA chunk SHOULD be smaller than or equal to the Association Maximum DATA Chunk Size (AMDCS).
//= docs/rfc9260.txt#section-6.9
//= type=test
//# The sender SHOULD choose a size of DATA chunks that is smaller than or equal to the AMDCS.
//= docs/rfc9260.txt#section-7.3
//= type=test
//# 2)  The sender SHOULD track an AMDCS that will be the smallest PMDCS discovered for all of the peer's destination
//# addresses.
#[test]
fn chunks_are_cut_for_the_smallest_path_in_service() {
    let mut duo = searching([1_500, 1_300]);
    duo.run(Span::from_secs(40));
    assert!(found(&duo, 0) == 1_500 && (1_289..=1_300).contains(&found(&duo, 1)));
    duo.send_all(Side::A, 100_000, 3);
    duo.run(Span::from_secs(5));
    assert!(duo.all_arrived(Side::A));
    assert!((1_280..=1_300).contains(&longest_data(&duo)), "{}", longest_data(&duo));
    assert_eq!(duo.nodes[A].association().statistics().retransmissions, 0);
}

#[test]
fn shrinking_path_returns_to_its_base_size_within_some_time_outs() {
    for paths in [1, 2] {
        let mut duo = if paths == 1 { searching([1_500]) } else { searching([1_500, 1_500]) };
        duo.run(Span::from_secs(3));
        duo.send_all(Side::A, 60_000, 100);
        duo.run(Span::from_millis(400));
        for pair in 0..paths {
            duo.link(pair).mtu = 1_300;
        }
        let begun = duo.now;
        assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)), "{paths}");
        let took = duo.now.since(begun).as_secs_f64();
        assert!(duo.nodes[A].association().statistics().black_holes >= 1);
        assert!(took < 15.0, "{paths}: {took}");
        duo.run(Span::from_secs(40));
        assert!((1_289..=1_300).contains(&found(&duo, 0)), "{}", found(&duo, 0));
    }
}

#[test]
fn without_a_search_packets_have_the_configured_size() {
    let mut duo = Duo::connected(Setup::new(1, "cmt", "net").with(|config| config.mtu_bytes = 1_200));
    duo.run(Span::from_secs(20));
    assert_eq!(found(&duo, 0), 1_200);
}

#[test]
fn loss_of_a_tenth_does_not_lower_the_found_mtu() {
    for seed in 1..=5 {
        let mut duo = searching([1_500]);
        duo.run(Span::from_secs(1));
        duo.network.link(duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 0)).loss = 100;
        let _ = seed;
        duo.send_all(Side::A, 1_400, 400);
        assert!(duo.run_until(Span::from_secs(120), |duo| duo.all_arrived(Side::A)));
        assert_eq!((found(&duo, 0), duo.nodes[A].association().statistics().black_holes), (1_500, 0));
    }
}

#[test]
fn a_window_holds_a_packet_of_the_size_that_was_found_under_every_scheme() {
    // The test covers every preset, and a component around congestion control.
    for scheme in PRESETS.iter().map(|preset| preset.name).chain(["cmt+opportunistic"]) {
        // The first window of the path is smaller than one packet of the final size.
        let setup = Setup::new(1, scheme, "net").with(|config| {
            config.mtu_bytes = 600;
            config.mtu_search_up_to_bytes = Some(60_000);
            config.recv_buffer_bytes = 1 << 20;
        });
        let mut duo = Duo::new(setup);
        duo.link(0).mtu = 60_000;
        duo.connect();
        duo.run(Span::from_secs(3));
        assert_eq!(found(&duo, 0), 60_000, "{scheme}");
        let facts = duo.nodes[A].association().paths()[0];
        assert!(
            facts.cwnd >= facts.largest_chunk,
            "{scheme}: {:?} below {:?}",
            facts.cwnd,
            facts.largest_chunk
        );
        duo.send_all(Side::A, 100_000, 10);
        assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)), "{scheme}");
    }
}

#[test]
fn a_window_that_a_time_out_cut_to_one_packet_grows_with_the_packets() {
    let mut duo = searching([1_280]);
    duo.run(Span::from_secs(40));
    assert!((1_269..=1_280).contains(&found(&duo, 0)));
    duo.send_all(Side::A, 100_000, 3);
    duo.run(Span::from_millis(30));
    duo.cut(0, true);
    duo.run(Span::from_secs(3));
    duo.cut(0, false);
    duo.link(0).mtu = 1_500;
    // The raise timer expires after ten minutes, and nothing is sent that would let the window grow.
    duo.run(Span::from_secs(700));
    assert_eq!(found(&duo, 0), 1_500);
    let facts = duo.nodes[A].association().paths()[0];
    assert!(facts.cwnd >= facts.largest_chunk, "{:?} below {:?}", facts.cwnd, facts.largest_chunk);
}

#[test]
fn a_path_that_is_promoted_has_a_time_out_to_answer_before_it_is_probed() {
    // T3 and the wait for a probe end at once: the path becomes potentially failed when the probe counts as lost, and active
    // again when the lost data is retransmitted.
    let mut duo = searching([1_300]);
    duo.run(Span::from_millis(200));
    duo.cut(0, true);
    duo.send_all(Side::A, 1_000, 20);
    // No endpoint may request a wake-up at a time that has passed.
    duo.oversleep(Span::from_secs(5));
    duo.run(Span::from_secs(40));
    assert!(duo.nodes[A].association().statistics().promotions > 0);
}

#[test]
fn packets_become_as_large_as_the_interface_takes_and_no_probe_is_larger() {
    for mtu in [1_280, 1_500, 9_000, 65_532] {
        let mut duo = searching_behind([mtu], 65_535);
        duo.run(Span::from_secs(1));
        assert_eq!((found(&duo, 0), longest(&duo)), (mtu, mtu));
        duo.send_all(Side::A, 100_000, 20);
        assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)), "{mtu}");
        assert_eq!(longest(&duo), mtu);
        assert_eq!(duo.nodes[A].association().statistics().timeouts, 0, "{mtu}");
    }
}

#[test]
fn an_interface_of_1500_bytes_is_searched_as_without_larger_ones() {
    let hash = |most, mtus: &[usize]| {
        let setup = Setup::new(1, "bonded", "net").with(|config| {
            config.mtu_bytes = 1_200;
            config.mtu_search_up_to_bytes = Some(most);
        });
        let mut duo = Duo::new(setup);
        if let &[mtu] = mtus {
            limit(&mut duo, [mtu]);
        }
        duo.link(0).mtu = 1_400;
        duo.connect();
        duo.send_all(Side::A, 20_000, 20);
        duo.run(Span::from_secs(60));
        assert!(duo.all_arrived(Side::A));
        duo.hash
    };
    assert_eq!(hash(65_535, &[1_500]), hash(1_500, &[]));
}

#[test]
fn path_of_1500_bytes_behind_jumbo_interface_is_found_in_one_rtt() {
    let mut duo = searching_behind([9_000], 1_500);
    duo.run(Span::from_millis(200));
    assert_eq!(found(&duo, 0), 1_500);
    duo.send_all(Side::A, 20_000, 50);
    duo.run(Span::from_secs(60));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(found(&duo, 0), 1_500);
    let statistics = duo.nodes[A].association().statistics();
    assert_eq!((statistics.timeouts, statistics.retransmissions), (0, 0), "only probes were too large");
}

#[test]
fn chunks_fit_the_smallest_interface_and_packets_fill_each() {
    let mut duo = searching_behind([9_000, 1_500], 65_535);
    duo.run(Span::from_secs(1));
    assert_eq!([found(&duo, 0), found(&duo, 1)], [9_000, 1_500]);
    assert_eq!(duo.nodes[A].association().largest_unfragmented_bytes(), 1_500 - HEADERS - 16);
    duo.send_all(Side::A, 100_000, 20);
    assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)));
    assert!((8_000..=9_000).contains(&longest_data(&duo)), "{}", longest_data(&duo));
}

#[test]
fn an_interface_that_takes_less_from_now_on_shrinks_its_paths_at_once() {
    let mut duo = searching_behind([9_000], 65_535);
    duo.run(Span::from_secs(1));
    duo.send_all(Side::A, 60_000, 100);
    duo.run(Span::from_millis(100));
    duo.link(0).mtu = 1_500;
    limit(&mut duo, [1_500]);
    assert_eq!(found(&duo, 0), 1_500);
    assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)));
    assert_eq!(duo.nodes[A].association().statistics().black_holes, 0);
    duo.run(Span::from_secs(5));
    assert_eq!(found(&duo, 0), 1_500);
}

#[test]
fn an_interface_that_takes_more_from_now_on_is_searched_at_once() {
    let mut duo = searching_behind([1_500], 65_535);
    duo.run(Span::from_secs(1));
    assert_eq!(found(&duo, 0), 1_500);
    limit(&mut duo, [9_000]);
    duo.run(Span::from_millis(200));
    assert_eq!(found(&duo, 0), 9_000);
}

#[test]
fn packets_begin_no_larger_than_the_interface_takes() {
    let mut duo = searching_behind([800], 65_535);
    duo.send_all(Side::A, 20_000, 5);
    assert!(duo.run_until(Span::from_secs(20), |duo| duo.all_arrived(Side::A)));
    assert_eq!((found(&duo, 0), longest(&duo)), (800, 800));
}

#[test]
fn buffers_hold_sixteen_packets_unless_of_the_usual_size() {
    for side in Side::BOTH {
        for (buffer, most) in
            [(2_000, 1_500), (20_000, 1_500), (64 << 10, 4_096 + 20), (1 << 20, 65_535 & !3)]
        {
            let setup = Setup::new(1, "bonded", "net").with(|config| {
                config.mtu_bytes = 1_200;
                config.mtu_search_up_to_bytes = Some(65_535);
                config.recv_buffer_bytes = 2 << 20;
            });
            let mut duo = Duo::connected(setup.with_side(side, |config| config.recv_buffer_bytes = buffer));
            duo.run(Span::from_secs(1));
            assert_eq!(found(&duo, 0), most, "{buffer} at {side:?}");
            duo.send_all(Side::A, 50_000, 5);
            assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)), "{buffer}");
        }
    }
}

#[test]
fn chunks_cut_for_large_packets_arrive_over_a_small_path() {
    let mut duo = searching_behind([9_000, 1_500], 65_535);
    duo.cut(1, true);
    duo.run(Span::from_secs(20));
    assert!(duo.nodes[A].association().largest_unfragmented_bytes() > 8_000);
    duo.send_all(Side::A, 50_000, 50);
    duo.run(Span::from_millis(40));
    duo.cut(0, true);
    duo.cut(1, false);
    assert!(duo.run_until(Span::from_secs(60), |duo| duo.all_arrived(Side::A)));
    let fragmented = |(_, packet): &&(_, Packet)| {
        packet.from == Side::A && packet.may_fragment && packet.bytes.len() > 1_500
    };
    assert!(duo.kept.iter().flatten().any(|kept| fragmented(&kept)), "by IP fragmentation");
}

/// Sends 8 MB. Returns the longest time in seconds in which no message arrived, and the total time.
fn longest_pause(duo: &mut Duo) -> (f64, f64) {
    duo.send_all(Side::A, 8_000, 1_000);
    let begun = duo.now;
    let (mut latest, mut pause) = ((0, begun), 0.0_f64);
    let done = duo.run_until(Span::from_secs(120), |duo| {
        let arrived = duo.flows[Side::B.index()].delivered_messages.max(duo.flows[A].delivered_messages);
        if arrived != latest.0 {
            pause = pause.max(duo.now.since(latest.1).as_secs_f64());
            latest = (arrived, duo.now);
        }
        duo.all_arrived(Side::A)
    });
    assert!(done, "it does not end");
    (pause, duo.now.since(begun).as_secs_f64())
}

/// Sends 8 MB over two paths, of which the second carries packets of this size. Returns the longest time in seconds in which no
/// message arrived, the total time, and both endpoints.
fn beside_small(mtu: usize) -> (f64, f64, Duo) {
    let mut duo = searching([1_500, mtu]);
    duo.run(Span::from_millis(120));
    let (pause, took) = longest_pause(&mut duo);
    (pause, took, duo)
}

#[test]
fn lost_chunk_too_large_for_its_path_is_sent_again_on_another() {
    for scheme in ["bonded", "braid", "cmt"] {
        let mut duo = searching_with(scheme, [1_500, 1_000]);
        // The second path has the shorter round trip, so policies prefer it.
        (duo.link(0).delay, duo.link(1).never_fragments) = (Span::from_millis(60), true);
        let (pause, _) = longest_pause(&mut duo);
        assert!(pause < 1.5, "{scheme}: {pause} s without a message");
    }
}

#[test]
fn path_below_the_base_size_does_not_stall_the_other_one() {
    let (_, alike, _) = beside_small(1_500);
    for mtu in [1_000, 576] {
        let (pause, took, mut duo) = beside_small(mtu);
        assert!(
            pause < 1.0 && took < 1.5 * alike,
            "{mtu}: {pause} s without a message, {took} s beside {alike} s"
        );
        duo.run(Span::from_secs(60));
        assert!((mtu - 24..=mtu).contains(&found(&duo, 1)), "{}", found(&duo, 1));
    }
}
