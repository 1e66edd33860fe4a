//! The case of `repair-that-nothing-holds-wakes-at-once`.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_tests::network::Side;

use crate::case::{Case, Ending, SideCase};
use crate::op::Op;
use crate::run;

fn side(scheme: &str, profile: &'static str) -> SideCase {
    SideCase {
        scheme: scheme.to_owned(),
        profile,
        recv_buffer: 65_536,
        send_buffer: None,
        tsns_to_wrap: None,
        silence_ms: None,
        streams: 4,
    }
}

fn send(size: usize, count: usize, reliability: Reliability) -> Op {
    Op::Send { side: Side::A, stream: 0, size, count, unordered: false, reliability }
}

#[test]
fn an_endpoint_does_not_ask_to_be_woken_at_once_for_a_repair_that_pacing_no_longer_holds() {
    let a = SideCase { tsns_to_wrap: Some(21), ..side("capricious", "ns2") };
    let b = side(
        "naive-cmt(rtx=rtx-same,trigger=2,sfr=true,cuc=true,dac=true,sack-every=2,sack-delay=385,floor=2)",
        "ns2",
    );
    let ops = vec![
        Op::Advance { ms: 0 },
        Op::Impair { pair: 0, delay_ms: 42, loss: 0, duplicate: 0, reorder: 0, corrupt: 0 },
        send(1_477, 6, Reliability::Lifetime(Span::from_millis(28))),
        Op::Advance { ms: 69 },
        Op::Cut { pair: 0, cut: true },
        send(2_981, 7, Reliability::Full),
        Op::Advance { ms: 240 },
    ];
    run::run(&Case {
        pairs: 1,
        ipv6: 0,
        sides: [a, b],
        mtu: 9_000,
        first_ssn: 0,
        delay_ms: 0,
        seed: 11_797_359_853_416_026_857,
        collide: false,
        lazy: false,
        ops,
        ending: Ending::One(Side::A),
    });
}
