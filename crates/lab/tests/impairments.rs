//! Policer, jitter and aggregation of scenario files, with whole transfers over them.

use crate::common::run;

/// Returns a path of 10 Mbit/s and 20 ms with these further lines, for 20 s.
fn scenario(more: &str) -> String {
    format!(
        r#"
[run]
duration = "20 s"
[association]
recv_buffer = "1 MiB"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
{more}
"#
    )
}

#[test]
fn a_policer_bounds_what_arrives_and_its_drops_are_losses_of_the_path() {
    let result = run(&scenario(r#"policer = { rate = "2 Mbit/s", burst = "15 kB" }"#), "cmt", 1);
    let path = &result.paths[0];
    // 2 Mbit/s for 20 s are 5 MB.
    assert!(path.bytes <= 5_000_000 + 15_000, "{path:?}");
    assert!(path.bytes > 2_500_000, "{path:?}");
    assert!(path.drops > 100, "{path:?}");
}

#[test]
fn only_reordering_jitter_causes_spurious_retransmissions() {
    let spurious = |order: &str| {
        let jitter = format!(r#"jitter = {{ model = "uniform", most = "30 ms", order = "{order}" }}"#);
        run(&scenario(&jitter), "cmt", 1).spurious_retransmissions
    };
    assert_eq!(spurious("kept"), 0);
    assert!(spurious("free") > 20);
}

#[test]
fn aggregated_acknowledgements_arrive_in_batches() {
    // A window opens at most once in a period, so at most the receive buffer arrives in one.
    let small = |reverse: &str| {
        let text = scenario(reverse).replace("1 MiB", "64 KiB");
        run(&text, "cmt", 1).paths[0].bytes
    };
    let plain = small("");
    let batched = small(r#"reverse = { aggregation = { period = "250 ms" } }"#);
    // The round-trip time grows from at least 40 ms to at least 290 ms: 64 KiB in each are 1.8 Mbit/s.
    let most = 20.0 / 0.29 * 65_536.0 * 1.04 + 65_536.0;
    assert!((batched as f64) < most && batched > 1_000_000, "{batched} of {most}");
    assert!(plain > 3 * batched, "{plain} {batched}");
}

#[test]
fn runs_with_all_impairments_depend_on_the_seed_alone() {
    let all = scenario(
        r#"policer = { rate = "8 Mbit/s", burst = "32 KiB" }
jitter = { model = "normal", mean = "4 ms", deviation = "3 ms", order = "free" }
[path.reverse]
jitter = "2 ms"
aggregation = { period = "5 ms", packets = 8 }"#,
    );
    let first = run(&all, "cmt", 1);
    assert_eq!(first, run(&all, "cmt", 1));
    assert!(first.digest.is_some());
    assert_ne!(first.digest, run(&all, "cmt", 2).digest);
}

/// Two slow paths of 220 ms. The rate of the faster one rises and falls every few seconds; its queue then holds half a second.
const FALLING_RATE: &str = r#"
[run]
duration = "60 s"
[association]
recv_buffer = "4 MB"
[[link]]
name = "fast"
rate = "3602 kbit/s"
delay = "111371 us"
queue = "61 packets"
loss = [{ model = "bernoulli", rate = 0.005719, where = "after-queue" }]
event = [
    { at = "6085605 us", direction = "forward", rate = "1235597 bit/s" },
    { at = "14559630 us", direction = "forward", rate = "3963258 bit/s" },
    { at = "26787366 us", direction = "forward", rate = "2095154 bit/s" },
    { at = "33052919 us", direction = "forward", rate = "5289104 bit/s" },
    { at = "43480609 us", direction = "forward", rate = "1366076 bit/s" },
]
[[link]]
name = "slow"
rate = "720 kbit/s"
delay = "105070 us"
queue = "30 packets"
loss = [{ model = "bernoulli", rate = 0.002834, where = "before-queue" }]
[[path]]
name = "path-1"
via = ["fast"]
[[path]]
name = "path-2"
via = ["slow"]
"#;

#[test]
fn a_queue_that_a_fallen_rate_has_made_long_is_not_kept_full_by_copies() {
    let again: u64 = (1..=3).map(|seed| run(FALLING_RATE, "braid", seed).retransmissions).sum();
    // A tenth of some 45,000 chunks. It would be 9,180 if losses without an RTT sample counted as noise.
    assert!(again < 4_500, "{again}");
}
