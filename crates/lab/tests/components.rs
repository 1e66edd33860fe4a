//! What each of the newer components is known for, in a network made to show it.

mod common;

use common::run;

/// One path of 10 Mbit/s and 40 ms with a queue of 120 ms.
fn one_path(loss: f64) -> String {
    format!(
        r#"
[run]
duration = "30 s"
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

#[test]
fn bbr_overflows_no_queue_that_cubic_overflows_and_uses_the_link() {
    let text = one_path(0.0);
    let (bbr, cubic) = (run(&text, "sctp+bbr", 1), run(&text, "sctp+cubic", 1));
    assert_eq!(bbr.retransmissions, 0);
    assert!(cubic.retransmissions > 0);
    assert!(bbr.goodput_kbps > 0.95 * cubic.goodput_kbps, "{} kbit/s", bbr.goodput_kbps);
}

#[test]
fn bbr_keeps_most_of_a_link_that_loses_one_packet_in_a_hundred() {
    let text = one_path(0.01);
    let goodput = |scheme| run(&text, scheme, 1).goodput_kbps;
    let (bbr, cubic) = (goodput("sctp+bbr"), goodput("sctp+cubic"));
    assert!(bbr > 7_000.0 && bbr > 1.5 * cubic, "{bbr} against {cubic} kbit/s");
}
