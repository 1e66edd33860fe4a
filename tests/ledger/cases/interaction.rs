//! Cases of the random interaction test as it was first stored, made small by proptest. The ledger puts this file in the place of
//! `tests/tests/interaction/found.rs` of commits that are older than that file's own cases.

use anabranch_tests::network::Side;

use crate::case::{Case, Ending, SideCase};
use crate::op::Op;
use crate::run;

/// What a shrunk case has for a scheme that does not matter.
const PLAIN: &str = "sctp(rtx=alternate-on-timeout,trigger=1,sack-every=1,sack-delay=0)";

fn side(scheme: &str, profile: &'static str, recv_buffer: u64) -> SideCase {
    SideCase {
        scheme: scheme.to_owned(),
        profile,
        recv_buffer,
        send_buffer: None,
        tsns_to_wrap: None,
        silence_ms: None,
    }
}

fn plain(profile: &'static str) -> SideCase {
    side(PLAIN, profile, 65_536)
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
    }
}

fn advance(ms: u32) -> Op {
    Op::Advance { ms }
}

fn send(side: Side, size: usize, count: usize) -> Op {
    Op::Send { side, stream: 0, size, count, unordered: false }
}

fn cut(pair: usize, cut: bool) -> Op {
    Op::Cut { pair, cut }
}

fn delay(pair: usize, delay_ms: u32) -> Op {
    Op::Impair { pair, delay_ms, loss: 0, duplicate: 0, reorder: 0, corrupt: 0 }
}

/// Seed 0547e9a4.
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
    run::run(&case(2, 103, 516_714_594, [plain("rfc9260"), plain("rfc9260")], ops));
}

/// Seed 17913001.
#[test]
fn a_shutdown_during_the_handshake_waits_for_what_was_sent() {
    let sides = [side(PLAIN, "rfc9260", 11_648), side(PLAIN, "rfc9260", 2_000)];
    let ops = vec![advance(0), send(Side::A, 667, 3), advance(234), Op::Shutdown { side: Side::A }];
    run::run(&Case { mtu: 9000, ..case(1, 78, 0, sides, ops) });
}

/// Seed 1b61c736.
#[test]
fn a_path_in_the_place_of_the_removed_first_one_is_no_second_primary() {
    let ops =
        vec![advance(0), Op::Read { side: Side::A, count: 1 }, Op::RemovePath { side: Side::A, path: 0 }];
    run::run(&case(3, 0, 0, [plain("rfc9260"), plain("rfc9260")], ops));
}

/// Seed 635bf0ed.
#[test]
fn a_path_that_lost_all_that_it_carried_has_no_time_out_running() {
    let ops = vec![advance(31_838), cut(0, true), advance(0), advance(62_423), send(Side::A, 1, 1)];
    run::run(&Case { mtu: 9000, ..case(2, 0, 0, [plain("ns2"), plain("ns2")], ops) });
}

/// Seed 08acf244.
#[test]
fn what_a_peer_takes_back_on_a_removed_path_is_lost_there() {
    let a = "naive-cmt(rtx=rtx-cwnd,trigger=3,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)";
    let b = "naive-cmt(rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)";
    let a = SideCase { send_buffer: Some(9_695), ..side(a, "ns2", 65_536) };
    let ops = vec![
        send(Side::A, 1, 1),
        Op::AddPath { side: Side::A, local: 5, remote: 2 },
        advance(756),
        delay(2, 0),
        send(Side::A, 1, 1),
        send(Side::A, 1, 1),
        send(Side::A, 1, 1),
        cut(1, true),
        advance(252),
        send(Side::A, 970, 7),
        advance(126),
        Op::RemovePath { side: Side::A, path: 2 },
    ];
    run::run(&case(2, 126, 940_195_896_878_314_695, [a, side(b, "rfc9260", 65_536)], ops));
}

/// Seed 674953da.
#[test]
fn two_paths_to_one_address_do_not_drive_each_other_out() {
    let ops = vec![
        advance(0),
        Op::AddPath { side: Side::A, local: 1, remote: 2 },
        Op::AddPath { side: Side::B, local: 3, remote: 1 },
        advance(0),
    ];
    run::run(&case(3, 0, 0, [plain("rfc9260"), plain("rfc9260")], ops));
}

/// Seed f19a6229.
#[test]
fn a_packet_that_is_late_does_not_make_a_good_end_a_bad_one() {
    let a = side("naive-cmt(rtx=rtx-asap,sfr=false,dac=false,sack-every=1,sack-delay=0)", "rfc9260", 65_536);
    let b = side("sctp(rtx=alternate-on-timeout,trigger=1,sack-delay=0)", "rfc9260", 65_536);
    let ops = vec![
        advance(75),
        send(Side::A, 349, 7),
        Op::AddPath { side: Side::B, local: 1, remote: 2 },
        cut(6, true),
        cut(0, true),
        advance(0),
        advance(956),
        Op::AddPath { side: Side::B, local: 2, remote: 5 },
        advance(62_046),
        send(Side::A, 1085, 8),
        advance(0),
        advance(89_203),
        advance(1_261),
        delay(5, 182),
        advance(23),
        advance(1_702),
        advance(540),
    ];
    let found = case(2, 15, 4_385_120_049_190_196_484, [a, b], ops);
    run::run(&Case { ending: Ending::One(Side::B), ..found });
}

/// Seed 871420ae.
#[test]
fn a_removed_path_stays_out_of_use_though_what_it_carried_arrives() {
    let a = SideCase { tsns_to_wrap: Some(0), ..side(PLAIN, "rfc9260", 21_256) };
    let b = side("naive-cmt(trigger=2,cuc=false,dac=false,sack-every=5)", "rfc9260", 2_000);
    let ops = vec![
        Op::Impair { pair: 0, delay_ms: 54, loss: 0, duplicate: 0, reorder: 0, corrupt: 203 },
        advance(64_803),
        send(Side::B, 19, 7),
        send(Side::B, 1, 1),
        Op::Impair { pair: 4, delay_ms: 163, loss: 0, duplicate: 28, reorder: 0, corrupt: 0 },
        send(Side::B, 1, 1),
        send(Side::B, 816, 6),
        advance(0),
        advance(55),
        send(Side::B, 1, 1),
        advance(167),
        advance(0),
        send(Side::B, 2170, 9),
        advance(163),
        Op::RemovePath { side: Side::B, path: 0 },
    ];
    let found = case(3, 54, 8_286_112_519_608_112_742, [a, b], ops);
    run::run(&Case { ipv6: 65, ..found });
}

/// Seed d9cfb58b.
#[test]
fn a_packet_counts_though_there_is_no_room_for_its_path() {
    let a = "cmt-pf(pf=pf1,rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)";
    let b = "naive-cmt(rtx=rtx-ssthresh,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)";
    let b = SideCase { tsns_to_wrap: Some(0), ..side(b, "rfc9260", 2_000) };
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
    run::run(&case(8, 0, 14_699_204_776_456_356_191, [side(a, "rfc9260", 2_178), b], ops));
}

/// Seed 310960b4, made small anew where links have become pairs.
#[test]
fn a_path_put_into_service_for_want_of_a_better_one_keeps_its_time_out() {
    let b = "cmt-pf(pf=pf1,rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0)";
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
    let found = case(2, 0, 1_487_431_904_183_237_716, [plain("rfc9260"), side(b, "rfc9260", 65_536)], ops);
    run::run(&Case { mtu: 576, ..found });
}

/// Seed 28999649.
#[test]
fn a_message_that_nearly_fills_the_buffer_arrives_in_parts() {
    let ops = vec![advance(0), send(Side::B, 2093, 2), Op::RemovePath { side: Side::B, path: 1 }];
    let found = case(2, 0, 1_091_890_541_002_359_651, [side(PLAIN, "ns2", 2_156), plain("ns2")], ops);
    run::run(&Case { ipv6: 62, mtu: 576, ..found });
}
