//! Characteristic behaviour of components, each in a network that shows it.

use crate::common::run;
use anabranch_lab::run::RunResult;

/// Returns a path of 10 Mbit/s and 40 ms with a queue of 120 ms.
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

/// Returns the mean delay of the queue, in addition to the 20 ms of the path.
fn queueing_ms(result: &RunResult) -> f64 {
    result.paths[0].delay_ms.expect("it is measured") - 20.0
}

/// Returns the share of a flow in the sum with a CUBIC flow, over a link of 10 Mbit/s with a queue of 100 ms.
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
    // A packet takes 1.2 ms. With a delta of one half, Copa aims at a queue of two.
    assert!(queueing_ms(&copa) < 6.0 && queueing_ms(&cubic) > 30.0, "{} ms", queueing_ms(&copa));
    assert!(copa.goodput_kbps > 0.97 * cubic.goodput_kbps, "{} kbit/s", copa.goodput_kbps);
}

#[test]
fn copa_beside_cubic_holds_its_share_only_in_competitive_mode() {
    let (competing, yielding) =
        (share_beside_cubic("sctp+copa"), share_beside_cubic("sctp+copa(competitive=false)"));
    assert!((0.35..0.65).contains(&competing) && yielding < 0.2, "{competing} and {yielding}");
}

fn packets(result: &RunResult) -> Vec<u64> {
    result.paths.iter().map(|path| path.data_packets).collect()
}

#[test]
fn min_rtt_var_prefers_a_steady_path_to_one_that_is_faster_at_times() {
    let text = r#"
[run]
duration = "10 s"
[[path]]
rate = "10 Mbit/s"
delay = "30 ms"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
jitter = "18 ms"
[[flow]]
kind = "messages"
size = "4000 B"
interval = "20 ms"
"#;
    let (plain, steady) = (packets(&run(text, "cmt+min-rtt", 1)), packets(&run(text, "cmt+min-rtt-var", 1)));
    assert!(plain[1] > 10 * plain[0], "{plain:?}");
    assert!(steady[0] > 10 * steady[1], "{steady:?}");
}

#[test]
fn acpf_leaves_a_cheap_path_whose_queue_grows_and_follows_its_costs() {
    let text = r#"
[run]
duration = "30 s"
warmup = "12 s"
delays = true
[association]
recv_buffer = "1 MiB"
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
queue = "200 packets"
[[path.event]]
at = "10 s"
rate = "3 Mbit/s"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
[[flow]]
kind = "messages"
size = "60 kB"
interval = "100 ms"
"#;
    let result = |scheme| run(text, scheme, 1);
    let adaptive = result("cmt+acpf(costs=1:2)");
    let (stubborn, reversed) = (result("cmt+acpf(costs=1:2,queue=10000)"), result("cmt+acpf(costs=2:1)"));
    assert!(queueing_ms(&adaptive) < queueing_ms(&stubborn), "{} ms", queueing_ms(&adaptive));
    assert!(packets(&adaptive)[0] < packets(&stubborn)[0] && packets(&reversed)[0] < packets(&adaptive)[0]);
}

/// Returns a fast and a slow path with one receive buffer.
fn unequal(recv_buffer: &str, queue: &str, flow: &str) -> String {
    format!(
        r#"
[run]
duration = "30 s"
[association]
recv_buffer = "{recv_buffer}"
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "{queue}"
[[path]]
rate = "4 Mbit/s"
delay = "80 ms"
queue = "{queue}"
{flow}
"#
    )
}

#[test]
fn stms_fills_less_of_the_receive_buffer_and_so_carries_more() {
    let result = |scheme| run(&unequal("128 KiB", "50 packets", ""), scheme, 1);
    let (stms, plain) = (result("cmt+stms"), result("cmt+min-rtt"));
    assert!(stms.goodput_kbps > 1.05 * plain.goodput_kbps, "{} kbit/s", stms.goodput_kbps);
    assert!(stms.rwnd_blocked_s < plain.rwnd_blocked_s, "{} s", stms.rwnd_blocked_s);
}

#[test]
fn dems_leaves_the_end_of_a_file_to_the_paths_that_are_done_at_once() {
    let file = "[[flow]]\nkind = \"file\"\nsize = \"150 kB\"";
    let time = |scheme| {
        run(&unequal("1 MiB", "200 packets", file), scheme, 1).flows[0].transfer_s.expect("it arrives")
    };
    let (dems, plain) = (time("cmt+dems"), time("cmt+min-rtt"));
    assert!(dems < plain, "{dems} s and {plain} s");
}

#[test]
fn xlink_spares_the_end_of_a_file_a_time_out() {
    let text = r#"
[run]
duration = "30 s"
[association]
recv_buffer = "1 MiB"
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
loss = 0.02
[[path]]
rate = "4 Mbit/s"
delay = "40 ms"
loss = 0.02
[[flow]]
kind = "file"
size = "100 kB"
"#;
    let time = |scheme| -> f64 {
        let times = (1..=10).map(|seed| run(text, scheme, seed).flows[0].transfer_s.expect("it arrives"));
        times.sum()
    };
    let (xlink, plain) = (time("cmt+min-rtt+xlink"), time("cmt+min-rtt"));
    assert!(xlink < 0.9 * plain, "{xlink} s and {plain} s");
}

#[test]
fn xlink_copies_little_for_a_receiver_that_has_time() {
    let copies = |scheme| run(&unequal("4 MiB", "200 packets", ""), scheme, 1).retransmissions;
    let (gated, always) =
        (copies("cmt+min-rtt+xlink(urgent=0,relaxed=0)"), copies("cmt+min-rtt+xlink(urgent=60000)"));
    assert!(20 * gated < always, "{gated} and {always}");
}
