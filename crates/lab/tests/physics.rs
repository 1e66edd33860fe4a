//! Theoretical results about transfers.

use crate::common::run;

#[test]
fn two_loss_free_paths_reach_97_per_cent_of_the_sum_of_their_rates() {
    // Queues of 1.5 BDP and more, a receive buffer of 4 times the sum of BDPs: 10 Mbit/s x 90 ms is 75 packets of 1500 B, 4 Mbit/s
    // x 40 ms is 14.
    let scenario = |seconds: u32| {
        format!(
            r#"
[run]
duration = "{seconds} s"
[association]
recv_buffer = "600 KiB"
[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
queue = "120 packets"
[[path]]
rate = "4 Mbit/s"
delay = "20 ms"
queue = "40 packets"
"#
        )
    };
    for scheme in ["cmt", "cmt-pf"] {
        // The difference of a long run and a shorter one excludes the start-up.
        let wire = |seconds| run(&scenario(seconds), scheme, 1).paths.iter().map(|p| p.bytes).sum::<u64>();
        let rate = (wire(90) - wire(30)) as f64 * 8.0 / 60.0;
        assert!(rate >= 0.97 * 14e6, "{scheme}: {:.2} Mbit/s of 14", rate / 1e6);
        assert!(rate <= 14e6 * 1.0001, "{scheme}: more than the links carry");
    }
}

#[test]
fn throughput_under_random_loss_follows_the_square_root_formula() {
    // With additive increase by one chunk per window and halving per loss, the window is sqrt(3 / 2p) chunks on average (Mathis et
    // al. 1997, with every window's worth of acknowledgements counted). This is valid while losses are so rare that time-outs are
    // rare too, and while the link is never full.
    for (p, tolerance) in [(0.001_f64, 0.15), (0.003, 0.15)] {
        let text = format!(
            r#"
[run]
duration = "400 s"
warmup = "20 s"
[association]
recv_buffer = "4 MiB"
[[path]]
rate = "1 Gbit/s"
delay = "25 ms"
queue = "10000 packets"
loss = {p}
"#
        );
        let mean = (1..=4).map(|seed| run(&text, "sctp", seed).goodput_kbps).sum::<f64>() / 4.0;
        let formula = (1.5 / p).sqrt() * 1452.0 * 8.0 / 1000.0 / 0.050;
        let off = mean / formula - 1.0;
        assert!(
            off.abs() <= tolerance,
            "p = {p}: {mean:.0} kbit/s, formula {formula:.0}, off by {:.1} %",
            100.0 * off
        );
    }
}

#[test]
fn goodput_never_exceeds_what_the_receive_buffer_allows_per_round_trip() {
    let text = r#"
[run]
duration = "60 s"
warmup = "5 s"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "100 Mbit/s"
delay = "50 ms"
queue = "1000 packets"
[[path]]
rate = "100 Mbit/s"
delay = "50 ms"
queue = "1000 packets"
"#;
    let limit = 65_536.0 * 8.0 / 0.100 / 1000.0;
    let reached = run(text, "cmt", 1).goodput_kbps;
    assert!(reached <= limit && reached > 0.85 * limit, "{reached} kbit/s of {limit}");
}

#[test]
fn a_file_arrives_as_it_was_sent_and_no_faster_than_the_links_allow() {
    let text = r#"
[run]
stop = "transfer"
duration = "120 s"
[association]
recv_buffer = "256 KiB"
[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01
[[path]]
rate = "2 Mbit/s"
delay = "90 ms"
loss = 0.01
[[flow]]
kind = "file"
size = "2 MB"
"#;
    for scheme in ["sctp", "cmt", "cmt-pf"] {
        let result = run(text, scheme, 1);
        assert_eq!(result.flows[0].intact, Some(true), "{scheme}");
        let seconds = result.flows[0].transfer_s.expect("it arrived");
        assert!(seconds > 2e6 * 8.0 / 12e6, "{scheme}: {seconds} s");
    }
}

#[test]
fn a_transfer_both_ways_is_checked_both_ways() {
    let text = r#"
[run]
stop = "transfer"
duration = "120 s"
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
loss = { model = "bernoulli", rate = 0.01, direction = "both" }
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
[[flow]]
kind = "file"
size = "500 kB"
direction = "both"
"#;
    let result = run(text, "cmt", 1);
    assert_eq!(result.flows[0].delivered_bytes, 1_000_000);
    assert_eq!(result.flows[0].intact, Some(true));
}

#[test]
fn unordered_file_on_several_streams_is_checked_as_a_set_of_messages() {
    let text = r#"
[run]
stop = "transfer"
duration = "120 s"
[association]
streams = 4
ordered = false
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
loss = 0.02
[[path]]
rate = "2 Mbit/s"
delay = "60 ms"
loss = 0.02
[[flow]]
kind = "file"
size = "500 kB"
"#;
    assert_eq!(run(text, "cmt", 1).flows[0].intact, Some(true));
}
