//! Handovers of simulated paths: outages, and addresses that change.

use std::collections::BTreeSet;
use std::fs;

use anabranch_lab::run::{Job, RunResult};
use tempfile::TempDir;

use crate::common::{job, run};

/// Two paths; the second one has a handover from 5 to 5.3 s.
const TWO_PATHS: &str = r#"
[run]
duration = "12 s"
[association]
recv_buffer = "1 MiB"
[[path]]
name = "stays"
rate = "8 Mbit/s"
delay = "20 ms"
[[path]]
name = "moves"
rate = "8 Mbit/s"
delay = "30 ms"
handover = { at = "5 s", outage = "300 ms" }
"#;

const ONE_PATH: &str = r#"
[run]
duration = "12 s"
[[path]]
rate = "8 Mbit/s"
delay = "20 ms"
handover = { at = "5 s", outage = "300 ms" }
"#;

/// Handover of both scenarios.
const ONCE: &str = "{ at = \"5 s\", outage = \"300 ms\" }";

/// Returns the result, and the Mbit of DATA that arrives on each path in each tenth of a second.
fn traced(text: &str, scheme: &str, paths: [&str; 2]) -> (RunResult, [Vec<f64>; 2]) {
    let folder = TempDir::new().expect("a folder");
    let job = Job { trace: Some(folder.path().to_owned()), ..job(text, scheme, 1) };
    let result = job.run().expect("a run");
    let table = fs::read_to_string(folder.path().join(job.label()).join("packets.csv")).expect("a table");
    let mut megabits = [vec![0.0; 121], vec![0.0; 121]];
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [time, _, _, path, event, _, bytes] = fields[..] else { panic!("{line}") };
        let path = paths.iter().position(|name| *name == path).expect("a known path");
        if event == "received" {
            let tenth = time.parse::<f64>().expect("seconds") * 10.0;
            megabits[path][tenth as usize] += bytes.parse::<f64>().expect("bytes") * 8e-6;
        }
    }
    (result, megabits)
}

/// Returns the mean rate in Mbit/s between two tenths of a second.
fn rate(megabits: &[f64], from: usize, to: usize) -> f64 {
    megabits[from..to].iter().sum::<f64>() * 10.0 / (to - from) as f64
}

fn moved_by(text: &str, mover: &str) -> String {
    text.replace("\"300 ms\"", &format!("\"300 ms\", moves = \"{mover}\""))
}

#[test]
fn data_continues_on_the_other_path_and_returns_on_the_new_address() {
    for scheme in ["cmt", "cmt-pf", "braid"] {
        for mover in ["left", "right", "none"] {
            let (result, [stays, moves]) = traced(&moved_by(TWO_PATHS, mover), scheme, ["stays", "moves"]);
            assert_eq!(result.failure, None, "{scheme} {mover}");
            assert!(rate(&moves, 30, 50) > 6.0, "{scheme} {mover}: {moves:?}");
            assert_eq!(rate(&moves, 51, 53), 0.0, "{scheme} {mover}: {moves:?}");
            assert!(rate(&stays, 51, 53) > 4.0, "{scheme} {mover}: {stays:?}");
            assert!(rate(&moves, 80, 120) > 6.0, "{scheme} {mover}: {moves:?}");
        }
    }
}

#[test]
fn association_with_one_path_survives_a_change_of_its_address() {
    for scheme in ["sctp", "braid"] {
        for mover in ["left", "right"] {
            let (result, [path, _]) = traced(&moved_by(ONE_PATH, mover), scheme, ["path-1", ""]);
            assert_eq!(result.failure, None, "{scheme} {mover}");
            assert!(rate(&path, 90, 120) > 6.0, "{scheme} {mover}: {path:?}");
        }
    }
}

#[test]
fn protected_association_survives_a_change_of_its_address() {
    let text = TWO_PATHS.replace("[association]\n", "[association]\nprotection = \"dtls\"\n");
    let result = run(&text, "braid", 1);
    assert_eq!(result.failure, None);
    // Less than 11 Mbit/s would arrive without the path after 5 s.
    assert!(result.goodput_kbps > 12_500.0, "{}", result.goodput_kbps);
}

#[test]
fn more_handovers_than_addresses_leave_the_path_usable() {
    let many = "{ at = \"1 s\", every = \"500 ms\", outage = \"10 ms\" }";
    let text = TWO_PATHS.replace(ONCE, many).replace("\"12 s\"", "\"60 s\"");
    let result = run(&text, "braid", 1);
    assert_eq!(result.failure, None);
    // Each new address starts with the initial window.
    assert!(result.shares()[1] > 0.1, "{:?}", result.shares());
}

#[test]
fn random_handovers_depend_on_the_seed_only() {
    let text = TWO_PATHS.replace(ONCE, "{ at = \"2 s\", every = \"2 s\", random = true }");
    let digest = |seed| run(&text, "cmt", seed).digest;
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// Two paths with a round trip of 50 ms; the first one is cut after 5 s.
const CUT: &str = r#"
[run]
duration = "8 s"
profile = "net"
[association]
recv_buffer = "4 MiB"
encapsulation = "udp"
[[path]]
name = "cut"
rate = "20 Mbit/s"
delay = "25 ms"
queue = "170 packets"
[[path.event]]
at = "5 s"
up = false
[[path]]
name = "stays"
rate = "20 Mbit/s"
delay = "25 ms"
queue = "170 packets"
"#;

/// Returns the longest time in seconds, from this time on, in which the receiver can deliver nothing in order.
fn longest_wait_for_order(text: &str, scheme: &str, from_s: f64) -> f64 {
    let folder = TempDir::new().expect("a folder");
    let job = Job { trace: Some(folder.path().to_owned()), ..job(text, scheme, 1) };
    job.run().expect("a run");
    let table = fs::read_to_string(folder.path().join(job.label()).join("packets.csv")).expect("a table");
    let (mut out_of_order, mut next, mut last, mut longest) = (BTreeSet::new(), None, from_s, 0.0_f64);
    for line in table.lines().filter(|line| line.contains(",forward,") && line.contains(",received,")) {
        let fields: Vec<&str> = line.split(',').collect();
        let (Ok(time), Ok(tsn)) = (fields[0].parse::<f64>(), fields[5].parse::<u32>()) else { continue };
        let expected = next.get_or_insert(tsn);
        out_of_order.insert(tsn);
        let before = *expected;
        while out_of_order.remove(expected) {
            *expected = expected.wrapping_add(1);
        }
        if *expected != before && time > from_s {
            longest = longest.max(time - last);
            last = time;
        }
    }
    // The run ends after 8 s.
    longest.max(8.0 - last)
}

#[test]
fn cut_path_delays_ordered_data_by_less_than_300_ms_in_profile_net() {
    let longest = longest_wait_for_order(CUT, "braid", 5.0);
    assert!((0.1..0.3).contains(&longest), "{longest} s");
}
