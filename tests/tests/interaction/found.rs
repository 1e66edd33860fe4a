//! Minimised cases that once failed and that no short test describes.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::network::Side;

use crate::interaction::case::{Case, Ending, SideCase};
use crate::interaction::op::Op;
use crate::interaction::run;

/// Single-path SCTP that acknowledges every packet at once and reacts to the first missing report.
const PLAIN: &str = "sctp(trigger=1,sack-every=1,sack-delay=0)";

fn side(scheme: &str, profile: &'static str, recv_buffer: u64) -> SideCase {
    SideCase {
        scheme: scheme.to_owned(),
        profile,
        recv_buffer,
        send_buffer: None,
        tsns_to_wrap: None,
        silence_ms: None,
        streams: 4,
    }
}

fn case(pairs: usize, delay_ms: u64, seed: u64, sides: [SideCase; 2], ops: Vec<Op>) -> Case {
    Case {
        pairs,
        ipv6: 0,
        sides,
        mtu: 1500,
        first_ssn: 0,
        delay_ms,
        seed,
        collide: false,
        lazy: false,
        ops,
        ending: Ending::One(Side::A),
        guarded: None,
    }
}

fn advance(ms: u32) -> Op {
    Op::Advance { ms }
}

fn send(side: Side, size: usize, count: usize) -> Op {
    Op::Send { side, stream: 0, size, count, unordered: false, reliability: Reliability::Full }
}

fn cut(pair: usize, cut: bool) -> Op {
    Op::Cut { pair, cut }
}

fn delay(pair: usize, delay_ms: u32) -> Op {
    Op::Impair { pair, delay_ms, loss: 0, duplicate: 0, reorder: 0, corrupt: 0 }
}

#[test]
fn a_late_copy_of_a_cookie_opens_no_second_association() {
    let ops = vec![
        Op::Impair { pair: 0, delay_ms: 66, loss: 0, duplicate: 0, reorder: 49, corrupt: 0 },
        advance(169),
        cut(5, true),
        cut(2, true),
        advance(103),
        Op::AddPath { side: Side::A, local: 0, remote: 0 },
        Op::Abort { side: Side::B },
    ];
    let sides = [side(PLAIN, "rfc9260", 65_536), side(PLAIN, "rfc9260", 65_536)];
    run::run(&case(2, 103, 516_714_594, sides, ops));
}

#[test]
fn a_shutdown_during_the_handshake_waits_for_what_was_sent() {
    let sides = [side(PLAIN, "rfc9260", 11_648), side(PLAIN, "rfc9260", 2_000)];
    let ops = vec![advance(0), send(Side::A, 667, 3), advance(234), Op::Shutdown { side: Side::A }];
    run::run(&Case { mtu: 9000, ..case(1, 78, 0, sides, ops) });
}

#[test]
fn a_path_in_the_place_of_the_removed_first_one_is_no_second_primary() {
    let sides = [side(PLAIN, "rfc9260", 65_536), side(PLAIN, "rfc9260", 65_536)];
    let ops = vec![advance(0), Op::RemovePath { side: Side::A, path: 0 }];
    run::run(&case(3, 0, 0, sides, ops));
}

#[test]
fn two_paths_to_one_address_coexist() {
    let sides = [side(PLAIN, "rfc9260", 65_536), side(PLAIN, "rfc9260", 65_536)];
    let ops = vec![
        advance(0),
        Op::AddPath { side: Side::A, local: 1, remote: 2 },
        Op::AddPath { side: Side::B, local: 3, remote: 1 },
        advance(0),
    ];
    run::run(&case(3, 0, 0, sides, ops));
}

#[test]
fn late_packet_keeps_a_graceful_end() {
    let a = side("naive-cmt(rtx=rtx-asap,sfr=false,dac=false,sack-every=1,sack-delay=0)", "rfc9260", 65_536);
    let ops = vec![
        advance(75),
        send(Side::A, 349, 7),
        Op::AddPath { side: Side::B, local: 1, remote: 2 },
        cut(6, true),
        cut(0, true),
        advance(956),
        Op::AddPath { side: Side::B, local: 2, remote: 5 },
        advance(62_046),
        send(Side::A, 1085, 8),
        advance(89_203),
        advance(1_261),
        delay(5, 182),
        advance(23),
        advance(1_702),
        advance(540),
    ];
    let b = side("sctp(trigger=1,sack-delay=0)", "rfc9260", 65_536);
    let found = case(2, 15, 4_385_120_049_190_196_484, [a, b], ops);
    run::run(&Case { ending: Ending::One(Side::B), ..found });
}

#[test]
fn data_reneged_on_a_removed_path_is_lost() {
    // SACKs overtake each other on paths of different delay, which ns-2 treats as reneging.
    let a = side("naive-cmt(rtx=rtx-same,trigger=1,sack-every=1,sack-delay=0)", "ns2", 65_536);
    let ops = vec![
        advance(354),
        send(Side::A, 1079, 6),
        advance(299),
        Op::Impair { pair: 0, delay_ms: 110, loss: 0, duplicate: 0, reorder: 0, corrupt: 239 },
        send(Side::B, 7260, 1),
        Op::Impair { pair: 1, delay_ms: 34, loss: 0, duplicate: 105, reorder: 0, corrupt: 0 },
        advance(137),
        Op::RemovePath { side: Side::A, path: 1 },
        advance(34),
    ];
    run::run(&case(2, 136, 1_845_050_048_445_452_393, [a, side(PLAIN, "rfc9260", 11_485)], ops));
}

#[test]
fn a_removed_path_stays_out_of_use_though_what_it_carried_arrives() {
    let a = side(PLAIN, "rfc9260", 21_256);
    let b = side("naive-cmt(trigger=2,sack-every=5)", "rfc9260", 2_000);
    let ops = vec![
        Op::Impair { pair: 0, delay_ms: 54, loss: 0, duplicate: 0, reorder: 0, corrupt: 203 },
        advance(64_803),
        send(Side::B, 19, 7),
        send(Side::B, 1, 1),
        Op::Impair { pair: 1, delay_ms: 163, loss: 0, duplicate: 28, reorder: 0, corrupt: 0 },
        send(Side::B, 1, 1),
        send(Side::B, 816, 6),
        advance(55),
        send(Side::B, 1, 1),
        advance(167),
        send(Side::B, 2170, 9),
        advance(163),
        Op::RemovePath { side: Side::B, path: 0 },
    ];
    let found = case(3, 54, 8_286_112_519_608_112_742, [a, b], ops);
    run::run(&Case { ipv6: 65, ..found });
}

#[test]
fn a_path_that_answers_again_has_no_time_out_running_for_what_it_lost() {
    let sides = [side(PLAIN, "ns2", 65_536), side(PLAIN, "ns2", 65_536)];
    let ops = vec![advance(31_838), cut(0, true), advance(62_423), send(Side::A, 1, 1)];
    run::run(&Case { mtu: 9000, ..case(2, 0, 0, sides, ops) });
}

#[test]
fn promoted_path_keeps_its_timeout() {
    let b = side(
        "cmt-pf(pf=pf1,rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)",
        "rfc9260",
        65_536,
    );
    let ops = vec![
        advance(0),
        send(Side::B, 1, 2),
        cut(0, true),
        advance(0),
        send(Side::B, 257, 3),
        Op::Impair { pair: 1, delay_ms: 118, loss: 0, duplicate: 2, reorder: 0, corrupt: 0 },
        advance(2_773),
        advance(196),
        cut(1, true),
        advance(29_167),
        send(Side::B, 83, 11),
        advance(275),
        cut(1, false),
        send(Side::B, 1055, 5),
        advance(236),
    ];
    let found = case(2, 0, 1_487_431_904_183_237_716, [side(PLAIN, "rfc9260", 65_536), b], ops);
    run::run(&Case { mtu: 576, ..found });
}

#[test]
fn a_packet_counts_though_there_is_no_room_for_its_path() {
    let a = side(
        "cmt-pf(pf=pf1,rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)",
        "rfc9260",
        2_178,
    );
    let b = side(
        "naive-cmt(rtx=rtx-ssthresh,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)",
        "rfc9260",
        2_000,
    );
    let ops = vec![
        advance(0),
        send(Side::B, 243, 3),
        delay(0, 3),
        send(Side::B, 11_617, 9),
        advance(9),
        Op::Reading { side: Side::A, by_hand: true },
        Op::RemovePath { side: Side::A, path: 2 },
        advance(7),
        Op::AddPath { side: Side::A, local: 0, remote: 1 },
    ];
    let sides = [a, SideCase { tsns_to_wrap: Some(0), ..b }];
    run::run(&case(8, 0, 14_699_204_776_456_356_191, sides, ops));
}

#[test]
fn a_message_that_nearly_fills_the_buffer_arrives_in_parts() {
    let ops = vec![advance(0), send(Side::B, 2093, 2), Op::RemovePath { side: Side::B, path: 1 }];
    let sides = [side(PLAIN, "ns2", 2_156), side(PLAIN, "ns2", 65_536)];
    let found = case(2, 0, 1_091_890_541_002_359_651, sides, ops);
    run::run(&Case { ipv6: 62, mtu: 576, ..found });
}

#[test]
fn tail_probe_waits_despite_a_zero_rtt() {
    let b = side(
        "naive-cmt(rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)+rack(ack-delay=133)+round-robin",
        "rfc9260",
        65_536,
    );
    let ops = vec![advance(0), cut(2, true), send(Side::B, 1453, 3), delay(1, 1), delay(0, 1)];
    run::run(&case(3, 0, 0, [side(PLAIN, "rfc9260", 7_605), b], ops));
}

#[test]
fn two_tails_that_are_due_at_once_are_both_probed() {
    let a = side("naive-cmt(rtx=rtx-asap,trigger=2,floor=2)+rack(reports=false,ack-delay=0)", "ns2", 65_536);
    let ops = vec![advance(0), send(Side::A, 1, 1), cut(4, true), send(Side::A, 1, 1), advance(0)];
    run::run(&case(3, 0, 0, [a, side(PLAIN, "ns2", 65_536)], ops));
}

#[test]
fn timeout_of_copies_allows_new_data() {
    let b = side("cmt-rpv1+opportunistic(when=linux,penalise=false)+sttf(replan=never)", "ns2", 65_536);
    let ops = vec![advance(0), cut(1, true), send(Side::B, 925, 6)];
    let found = case(2, 0, 0, [side(PLAIN, "rfc9260", 3_760), b], ops);
    run::run(&Case { mtu: 576, ..found });
}

#[test]
fn answered_window_probe_is_no_error_on_paths_with_a_copy() {
    let a = side(
        "naive-cmt(rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)+opportunistic(when=linux,penalise=false)",
        "rfc9260",
        65_536,
    );
    let ops = vec![Op::Reading { side: Side::B, by_hand: true }, send(Side::A, 10_681, 7), advance(2_000)];
    run::run(&case(8, 0, 0, [a, side(PLAIN, "rfc9260", 65_536)], ops));
}

#[test]
fn loss_of_a_past_outage_may_be_the_last_error() {
    let ops = vec![advance(15_954), cut(1, true), advance(2_647), cut(0, true), advance(75_145)];
    let found = case(
        2,
        86,
        8_669_500_640_469_335_582,
        [side(PLAIN, "rfc9260", 65_536), side(PLAIN, "rfc9260", 65_536)],
        ops,
    );
    run::run(&Case { ending: Ending::One(Side::B), ..found });
}

#[test]
fn ns2_profile_may_starve_chunks_bound_to_a_lossy_path() {
    // All data between the bound chunks has arrived, and a SACK of one packet cannot report that.
    let a = side("mptcp-ns2(rto-min=1,rtx=rtx-same,cuc=false,dac=false,floor=profile)", "rfc9260", 65_536);
    let b = side(
        "cmt-rpv1(rtx=rtx-lossrate-measured,cuc=true,sack-delay=249)+otias(rounding=down)",
        "ns2",
        65_536,
    );
    let ops = vec![
        advance(3),
        send(Side::B, 1, 1),
        advance(2),
        send(Side::B, 18_503, 9),
        send(Side::B, 19_714, 8),
        cut(0, true),
        advance(1_004),
    ];
    run::run(&Case { mtu: 576, ..case(2, 1, 0, [a, b], ops) });
}

#[test]
fn zero_rtt_answers_to_copies_request_no_further_copies() {
    let a = SideCase { tsns_to_wrap: Some(75), ..side("sctp", "ns2", 54_840) };
    let b = SideCase { silence_ms: Some(3_944), tsns_to_wrap: Some(179), ..side("cmt+rack", "ns2", 216_739) };
    let ops = vec![
        advance(632),
        send(Side::B, 10_195, 8),
        advance(2_379),
        cut(0, true),
        Op::Send {
            side: Side::B,
            stream: 0,
            size: 13_010,
            count: 2,
            unordered: true,
            reliability: Reliability::Full,
        },
        send(Side::B, 2_486, 6),
        Op::Heal,
        Op::Impair { pair: 0, delay_ms: 0, loss: 29, duplicate: 135, reorder: 0, corrupt: 0 },
        advance(2_639),
    ];
    let found = case(1, 144, 12_808_547_018_457_793_138, [a, b], ops);
    run::run(&Case { mtu: 576, ..found });
}

#[test]
fn endpoint_sets_no_immediate_deadline_for_an_unpaced_repair() {
    let a = SideCase { tsns_to_wrap: Some(21), ..side("capricious", "ns2", 65_536) };
    let b = side(
        "naive-cmt(rtx=rtx-same,trigger=2,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=385,floor=2)",
        "ns2",
        65_536,
    );
    let limited = Reliability::Lifetime(Span::from_millis(28));
    let ops = vec![
        advance(0),
        delay(0, 42),
        Op::Send { side: Side::A, stream: 0, size: 1_477, count: 6, unordered: false, reliability: limited },
        advance(69),
        cut(0, true),
        send(Side::A, 2_981, 7),
        advance(240),
    ];
    run::run(&Case { mtu: 9_000, ..case(1, 0, 11_797_359_853_416_026_857, [a, b], ops) });
}
