//! `anabranch compare`, whose tests take as long as the runs on sockets.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::support::{anabranch, command, signal};

const SHORT: [&str; 8] =
    ["compare", "scenarios/two-path.toml", "--schemes", "cmt", "--seeds", "1", "--set", "run.duration='3 s'"];

fn compare(more: &[&str]) -> crate::support::Ended {
    anabranch(&[&SHORT[..], more].concat())
}

#[test]
fn both_runs_use_both_paths_and_share_a_table() {
    let ended = compare(&[]).with_status(0);
    let rows = ended.rows();
    assert_eq!(rows.len(), 1, "{}", ended.out);
    assert_eq!(rows[0][..3], ["cmt", "flow-1", "1"]);
    for goodput in &rows[0][3..5] {
        assert!(goodput.parse::<f64>().expect("kbit/s") > 500.0, "{}", ended.out);
    }
    for text in ["path-1", "path-2", "association.encapsulation = \"udp\"", "association.send_buffer = "] {
        assert!(ended.out.contains(text), "no {text} in {}", ended.out);
    }
}

#[test]
fn json_has_both_runs_with_equal_fields_and_checks_whole_transfers() {
    let file = ["--set", "flow.flow-1.kind=file", "--set", "flow.flow-1.size='200 kB'"];
    let ended = compare(&[&["--json", "--set", "run.stop=transfer"], &file[..]].concat()).with_status(0);
    let lines = ended.json_lines();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!((&line["scheme"], &line["seed"]), (&"cmt".into(), &1.into()));
    for side in ["simulated", "sockets"] {
        let run = &line[side];
        assert!(run["goodput_kbps"].as_f64().expect("a figure") > 0.0, "{run}");
        assert!(run["flows"][0]["transfer_s"].as_f64().expect("it was finished") < 3.0, "{run}");
        assert!(run["paths"][1]["packets"]["offered"].as_u64().expect("a number") > 0, "{run}");
        assert!(run["paths"][0]["srtt_ms"].as_f64().expect("it was measured") > 90.0, "{run}");
    }
    let ratio = line["sockets"]["goodput_kbps"].as_f64().expect("a figure")
        / line["simulated"]["goodput_kbps"].as_f64().expect("a figure");
    assert!((line["ratio"].as_f64().expect("a ratio") - ratio).abs() < 1e-9);
}

#[test]
fn key_without_effect_in_relays_is_refused_before_any_run() {
    let shared = anabranch(&["compare", "scenarios/shared-bottleneck.toml"]).with_status(2);
    assert!(shared.err.starts_with("scenarios/shared-bottleneck.toml: `path.left.via`"), "{}", shared.err);
    let fast = compare(&["--set", "path.path-1.rate='10 Gbit/s'"]).with_status(2);
    assert!(fast.err.contains("`path.path-1.rate`: the paths have more than 500 Mbit/s"), "{}", fast.err);
    let scheme = compare(&["--schemes", "cmtt"]).with_status(2);
    assert!(scheme.err.contains("--schemes"), "{}", scheme.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_current_run_and_keeps_finished_ones() {
    let arguments = [&SHORT[..4], &["--seeds", "100", "--set", "run.duration='1 s'", "--json"]].concat();
    let mut child = command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    lines.read_line(&mut text).expect("a line");
    signal(child.id(), "INT");
    lines.read_to_string(&mut text).expect("text");
    let mut err = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{err}");
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
    assert!(err.contains("press Ctrl-C again") && err.contains(" of 100 pairs of runs"), "{err}");
}
