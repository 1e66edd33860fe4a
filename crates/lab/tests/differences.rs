//! Schemes and parameters that have to differ do so, in scenarios made to separate them; two paths exceed one.

mod registry;
mod scenarios;

use crate::common::run;
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use rayon::prelude::*;

fn scenario(profile: &str, second: &str) -> String {
    format!(
        r#"
[run]
duration = "30 s"
profile = "{profile}"
[association]
recv_buffer = "128 KiB"
[[path]]
name = "path-1"
rate = "5 Mbit/s"
delay = "30 ms"
loss = 0.02
[[path]]
name = "path-2"
{second}
"#
    )
}

const LOSSY: &str = "rate = \"2 Mbit/s\"\ndelay = \"80 ms\"\nloss = 0.05";

#[test]
fn settings_that_must_differ_give_different_results() {
    let settings = [
        "sctp",
        "sctp(rtx=alternate)",
        "sctp(rtx=rtx-same)",
        "naive-cmt",
        "cmt",
        "cmt-pf",
        "cmt-pf(pf=pf1)",
        "cmt(sfr=false)",
        "cmt(cuc=false)",
        "cmt(dac=false)",
        "cmt(trigger=4)",
        "cmt(rtx=rtx-same)",
        "cmt(rtx=rtx-asap)",
        "cmt(rtx=rtx-ssthresh)",
        "cmt(rtx=rtx-lossrate)",
        "cmt(sack-every=1)",
        "cmt(sack-delay=50ms)",
    ];
    for profile in ["rfc9260", "ns2"] {
        let text = scenario(profile, LOSSY);
        let digests: Vec<_> = settings.iter().map(|s| run(&text, s, 1).digest).collect();
        for (i, first) in digests.iter().enumerate() {
            for (j, second) in digests.iter().enumerate().skip(i + 1) {
                assert_ne!(first, second, "{} and {} under {profile}", settings[i], settings[j]);
            }
        }
    }
}

#[test]
fn naive_cmt_is_cmt_with_its_three_repairs_off() {
    let text = scenario("ns2", LOSSY);
    let (naive, off) = (run(&text, "naive-cmt", 4), run(&text, "cmt(sfr=false,cuc=false,dac=false)", 4));
    assert_eq!(naive.digest, off.digest);
}

#[test]
fn the_two_profiles_differ() {
    let run = |profile| run(&scenario(profile, LOSSY), "cmt", 1).digest;
    assert_ne!(run("rfc9260"), run("ns2"));
}

/// Schemes that copy all data to all paths, or keep paths in reserve, and therefore are no faster than one path.
const NO_FASTER: [&str; 2] = ["redundant", "backup"];

#[test]
fn two_good_equal_paths_beat_one_for_every_scheme_that_uses_both() {
    // Resource pooling reduces the window of a path with losses by half of the sum of all windows, so it needs the minute.
    let text = r#"
[run]
duration = "60 s"
[association]
recv_buffer = "1 MiB"
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
"#;
    let one = run(text, "sctp", 1).goodput_kbps;
    let presets = PRESETS.iter().filter(|preset| preset.multipath).map(|preset| preset.name.to_owned());
    let components = COMPONENTS.iter().filter(|component| !NO_FASTER.contains(&component.name));
    let schemes: Vec<String> =
        presets.chain(components.map(|component| component.example(PRESETS))).collect();
    let slow: Vec<_> = schemes
        .into_par_iter()
        .map(|scheme| (run(text, &scheme, 1).goodput_kbps / one, scheme))
        .filter(|(times, _)| *times < 1.6)
        .collect();
    assert!(slow.is_empty(), "not 1.6 times as fast as one path: {slow:?}");
}

#[test]
fn split_fast_retransmit_spares_needless_retransmissions() {
    let text = scenario("ns2", "rate = \"5 Mbit/s\"\ndelay = \"90 ms\"\nloss = 0");
    let spurious = |scheme| run(&text, scheme, 2).spurious_retransmissions;
    assert!(spurious("naive-cmt") > 10 * spurious("cmt").max(1));
}

#[test]
fn a_path_that_dies_holds_up_potentially_failed_less_than_plain_cmt() {
    let text = r#"
[run]
duration = "60 s"
profile = "ns2"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "5 Mbit/s"
delay = "30 ms"
[[path]]
rate = "5 Mbit/s"
delay = "30 ms"
[[path.event]]
at = "10 s"
up = false
"#;
    let goodput = |scheme| run(text, scheme, 1).goodput_kbps;
    let (plain, failed) = (goodput("cmt"), goodput("cmt-pf"));
    assert!(failed > 1.3 * plain, "cmt-pf {failed} against cmt {plain} kbit/s");
}

#[test]
fn overtaken_sacks_do_not_make_the_sender_overrun_a_small_receive_buffer() {
    // SACKs from the slow path are older than those from the fast one, and advertise a window that is used up. A sender that
    // believes them sends into a full buffer. The drops there cause spurious retransmissions of neighbouring chunks, and time-outs.
    let text = r#"
[run]
duration = "30 s"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01
[[path]]
rate = "2 Mbit/s"
delay = "90 ms"
loss = 0.01
"#;
    for seed in 1..=3 {
        let result = run(text, "cmt", seed);
        assert!(result.spurious_retransmissions <= 2, "seed {seed}: {}", result.spurious_retransmissions);
    }
}
