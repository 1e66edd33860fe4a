//! What each of the newer components is known for, in a network made to show it.

mod common;

use anabranch_lab::run::RunResult;
use common::run;

/// One path of 10 Mbit/s and 40 ms with a queue of 120 ms.
fn one_path(loss: f64) -> String {
    format!(
        r#"
[run]
duration = "30 s"
delays = true
[association]
recv_buffer = "4 MiB"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "100 packets"
loss = {loss}
"#
    )
}

/// What the queue adds to the 20 ms of the one path, on average.
fn queueing_ms(result: &RunResult) -> f64 {
    result.paths[0].delay_ms.expect("it is measured") - 20.0
}

/// A flow beside one with CUBIC at a link of 10 Mbit/s with a queue of 100 ms. Its part of what both carry.
fn share_beside_cubic(scheme: &str) -> f64 {
    let text = format!(
        r#"
[run]
duration = "40 s"
warmup = "10 s"
[association]
recv_buffer = "2 MiB"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "20 ms"
queue = "84 packets"
[[link.background]]
kind = "poisson"
rate = "500 kbit/s"
packet = "500 B"
[[path]]
name = "one"
via = ["bottleneck"]
rate = "100 Mbit/s"
delay = "5 ms"
[[path]]
name = "other"
via = ["bottleneck"]
rate = "100 Mbit/s"
delay = "5 ms"
[[flow]]
name = "tried"
paths = ["one"]
scheme = "{scheme}"
[[flow]]
name = "ordinary"
paths = ["other"]
scheme = "sctp+cubic"
"#
    );
    let flows = run(&text, "sctp", 1).flows;
    flows[0].goodput_kbps / (flows[0].goodput_kbps + flows[1].goodput_kbps)
}

#[test]
fn bbr_overflows_no_queue_that_cubic_overflows_and_uses_the_link() {
    let text = one_path(0.0);
    let (bbr, cubic) = (run(&text, "sctp+bbr", 1), run(&text, "sctp+cubic", 1));
    assert_eq!(bbr.retransmissions, 0);
    assert!(cubic.retransmissions > 0);
    assert!(queueing_ms(&bbr) < 0.3 * queueing_ms(&cubic), "{} ms", queueing_ms(&bbr));
    assert!(bbr.goodput_kbps > 0.95 * cubic.goodput_kbps, "{} kbit/s", bbr.goodput_kbps);
}

#[test]
fn bbr_keeps_most_of_a_link_that_loses_one_packet_in_a_hundred() {
    let text = one_path(0.01);
    let goodput = |scheme| run(&text, scheme, 1).goodput_kbps;
    let (bbr, cubic) = (goodput("sctp+bbr"), goodput("sctp+cubic"));
    assert!(bbr > 7_000.0 && bbr > 1.5 * cubic, "{bbr} against {cubic} kbit/s");
}

#[test]
fn bbr_beside_cubic_takes_no_more_than_three_parts_of_four() {
    let share = share_beside_cubic("sctp+bbr");
    assert!((0.25..0.75).contains(&share), "{share}");
}

#[test]
fn copa_keeps_a_queue_of_a_few_packets_and_uses_the_link() {
    let text = one_path(0.0);
    let (copa, cubic) = (run(&text, "sctp+copa", 1), run(&text, "sctp+cubic", 1));
    // A packet takes 1.2 ms; delta of one half asks for two of them.
    assert!(queueing_ms(&copa) < 6.0 && queueing_ms(&cubic) > 30.0, "{} ms", queueing_ms(&copa));
    assert!(copa.goodput_kbps > 0.97 * cubic.goodput_kbps, "{} kbit/s", copa.goodput_kbps);
}

#[test]
fn copa_beside_cubic_holds_its_share_only_in_competitive_mode() {
    let (competing, yielding) =
        (share_beside_cubic("sctp+copa"), share_beside_cubic("sctp+copa(competitive=false)"));
    assert!((0.35..0.65).contains(&competing) && yielding < 0.2, "{competing} and {yielding}");
}
