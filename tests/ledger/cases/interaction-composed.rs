//! Cases of the random interaction test as it was stored when it began to compose schemes and components, made small by
//! proptest. The ledger puts this file in the place of `tests/tests/interaction/found.rs` of commits of that time.

use anabranch_tests::network::Side;

use crate::case::{Case, Ending, SideCase};
use crate::op::Op;
use crate::run;

/// What a shrunk case has for a scheme that does not matter.
const PLAIN: &str = "sctp(rtx=alternate-on-timeout,trigger=1,sack-every=1,sack-delay=0,floor=profile)";

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

fn case(pairs: usize, mtu: usize, sides: [SideCase; 2], ops: Vec<Op>) -> Case {
    Case {
        pairs,
        ipv6: 0,
        sides,
        mtu,
        first_ssn: 0,
        delay_ms: 0,
        seed: 0,
        collide: false,
        lazy: false,
        ops,
        ending: Ending::One(Side::A),
    }
}

fn send(side: Side, size: usize, count: usize) -> Op {
    Op::Send { side, stream: 0, size, count, unordered: false }
}

fn delay(pair: usize, delay_ms: u32) -> Op {
    Op::Impair { pair, delay_ms, loss: 0, duplicate: 0, reorder: 0, corrupt: 0 }
}

/// Seed 81a56cfa.
#[test]
fn a_tail_probe_lets_time_pass_where_a_round_trip_takes_none() {
    let b = "naive-cmt(rtx=rtx-same,trigger=1,sfr=false,cuc=false,dac=false,sack-every=1,sack-delay=0,floor=profile)\
             +rack(divisor=2,reports=true,tail-probe=true,ack-delay=133)+round-robin()";
    let ops = vec![
        Op::Advance { ms: 0 },
        Op::Cut { pair: 2, cut: true },
        send(Side::B, 1453, 3),
        delay(1, 1),
        delay(0, 1),
    ];
    run::run(&case(3, 1500, [side(PLAIN, "rfc9260", 7_605), side(b, "rfc9260", 65_536)], ops));
}

/// Seed b2490d92.
#[test]
fn two_tails_that_are_due_at_once_are_both_probed() {
    let a = "naive-cmt(rtx=rtx-asap,trigger=2,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=1,floor=2)\
             +rack(divisor=1,reports=false,tail-probe=true,ack-delay=0)";
    let ops = vec![
        Op::Advance { ms: 0 },
        send(Side::A, 1, 1),
        Op::Cut { pair: 4, cut: true },
        send(Side::A, 1, 1),
        Op::Advance { ms: 0 },
    ];
    run::run(&case(3, 1500, [side(a, "ns2", 65_536), side(PLAIN, "ns2", 65_536)], ops));
}

/// Seed f51bee0d.
#[test]
fn a_time_out_of_copies_lets_new_data_go() {
    let b = "cmt-rpv1()+opportunistic(when=linux,penalise=false)+sttf(rtt=smoothed,replan=never)";
    let ops = vec![Op::Advance { ms: 0 }, Op::Cut { pair: 1, cut: true }, send(Side::B, 925, 6)];
    run::run(&case(2, 576, [side(PLAIN, "rfc9260", 3_760), side(b, "ns2", 65_536)], ops));
}
