//! `anabranch explain`, whose figures have to agree with the runs' own counters.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, anabranch, short_run};

/// Scenario with both directions over two different paths, an outage and a receive buffer that is too small.
const HARD: &str = r#"
[run]
duration = "12 s"
seeds = 2
[association]
recv_buffer = "48 KiB"
[[path]]
name = "near"
rate = "4 Mbit/s"
delay = "10 ms"
queue = "20 packets"
loss = 0.01
event = [{ at = "4 s", up = false }, { at = "7 s", up = true }]
[[path]]
name = "far"
rate = "1 Mbit/s"
delay = "80 ms"
loss = 0.02
[[flow]]
name = "two-way"
kind = "bulk"
direction = "both"
[[flow]]
name = "late"
kind = "messages"
size = "1000 B"
interval = "20 ms"
start = "1 s"
"#;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Runs the hard scenario with traces and returns its results.
fn hard(folder: &Path, more: &[&str]) -> Vec<Value> {
    let file = folder.join("hard.toml");
    fs::write(&file, HARD).expect("written");
    let trace = folder.join("trace");
    let arguments = ["run", text(&file), "--trace", text(&trace), "--json", "--quiet"];
    anabranch(&[&arguments[..], more].concat()).with_status(0).json_lines()
}

fn explained(folder: &Path) -> Ended {
    anabranch(&["explain", text(&folder.join("trace")), "--json"]).with_status(0)
}

fn sum(run: &Value, figure: impl Fn(&Value) -> f64) -> f64 {
    run["flows"].as_array().expect("flows").iter().map(figure).sum()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn sums_of_explain_equal_counters_of_the_runs() {
    for profile in ["rfc9260", "ns2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let schemes = ["--schemes", "all", "--profile", profile];
        let mut counted = hard(folder.path(), &schemes);
        counted.sort_by_key(|run| (run["scheme"].to_string(), run["seed"].as_u64()));
        let mut explained = explained(folder.path()).json_lines();
        explained.sort_by_key(|run| (run["scheme"].to_string(), run["seed"].as_u64()));
        assert_eq!(counted.len(), explained.len());
        let mut all = [0.0; 4];
        for (run, explained) in counted.iter().zip(&explained) {
            assert_eq!((&run["scheme"], &run["seed"]), (&explained["scheme"], &explained["seed"]));
            assert_eq!(explained["notes"], serde_json::json!([]), "{}", run["scheme"]);
            let figures = [
                (&run["retransmissions"], sum(explained, |f| number(&f["retransmissions"]["chunks"]))),
                (
                    &run["spurious_retransmissions"],
                    sum(explained, |f| number(&f["retransmissions"]["spurious"])),
                ),
                (&run["timeouts"], sum(explained, |f| number(&f["timeouts"]))),
                (&run["rwnd_blocked_s"], sum(explained, |f| number(&f["peer_window"]["closed_s"]))),
            ];
            for ((counted, explained), all) in figures.iter().zip(&mut all) {
                let (counted, name) = (number(counted), &run["scheme"]);
                // A state that lasts longer than the run counts up to the end of the run here, and up to the latest call there.
                assert!(
                    (counted - explained).abs() < 0.2,
                    "{name}: {counted} counted, {explained} explained"
                );
                *all += counted;
            }
        }
        assert!(all.iter().all(|sum| *sum > 0.0), "the scenario does not try everything: {all:?}");
    }
}

#[test]
fn the_time_of_each_path_adds_up_and_its_packets_are_those_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let counted = hard(folder.path(), &["--schemes", "cmt", "--seeds", "3,"]);
    let explained = explained(folder.path()).json_lines();
    let flows = explained[0]["flows"].as_array().expect("flows");
    let names: Vec<_> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
    assert_eq!(names, ["two-way", "two-way-reverse", "late"]);
    for flow in flows {
        let span = number(&flow["until_s"]) - number(&flow["from_s"]);
        assert_eq!(span, if flow["name"] == "late" { 11.0 } else { 12.0 });
        for path in flow["paths"].as_array().expect("paths") {
            let time = path["time"].as_object().expect("an object");
            let all: f64 = time.iter().filter(|(key, _)| key.ends_with("_s")).map(|(_, s)| number(s)).sum();
            assert!((all - span).abs() < 1e-6, "{flow}");
        }
    }
    for path in 0..2 {
        let sent = sum(&explained[0], |flow| number(&flow["paths"][path]["sent_chunks"]));
        assert_eq!(sent, number(&counted[0]["paths"][path]["sent_packets"]), "a chunk a packet");
    }
    let down = &flows[0]["paths"][0];
    assert!(number(&down["drops"]["outage"]) > 0.0 && number(&down["timeout_wait_s"]) > 0.5, "{down}");
}

#[test]
fn traces_and_explanations_depend_on_the_run_alone() {
    let read = || {
        let folder = tempfile::tempdir().expect("a folder");
        hard(folder.path(), &["--schemes", "cmt-pf", "--seeds", "1,"]);
        let run = folder.path().join("trace/cmt-pf-seed1");
        let mut files: Vec<_> =
            fs::read_dir(&run).expect("a run").map(|f| f.expect("a file").path()).collect();
        files.sort();
        let names: Vec<_> = files.iter().map(|file| file.file_name().expect("a name").to_owned()).collect();
        let all: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("readable")).collect();
        let out = explained(folder.path()).out.replace(text(folder.path()), "");
        (names, all, out)
    };
    let (first, second) = (read(), read());
    assert!(first == second);
    assert_eq!(first.0.len(), 3 * 2 + 2 + 3);
}

#[test]
fn the_traced_scenario_runs_as_the_run_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let digest = |ended: Ended| ended.with_status(0).json_lines()[1]["digest"].clone();
    let first = short_run(&["--schemes", "cmt", "--json", "--digest", "--trace", text(&trace)]);
    let again = trace.join("cmt-seed2/scenario.toml");
    let again = anabranch(&["run", text(&again), "--json", "--digest"]).with_status(0);
    assert_eq!(again.json_lines().len(), 1);
    assert_eq!(again.json_lines()[0]["digest"], digest(first));
}

#[test]
fn runs_are_told_apart_and_set_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let ended = short_run(&["--schemes", "sctp,cmt", "--seeds", "1", "--trace", text(&trace)]).with_status(0);
    assert!(ended.out.contains("anabranch explain"), "{}", ended.out);
    let ended = anabranch(&["explain", text(&trace)]).with_status(0);
    for expected in [
        "sctp, seed 1, profile rfc9260, goodput",
        "Where the time went",
        "path-1's window was full",
        "Where the capacity went",
        "Where new data went",
        "primary path, or the path that replaces it",
        "Side by side",
    ] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    let one = anabranch(&["explain", text(&trace.join("cmt-seed1"))]).with_status(0);
    assert!(!one.out.contains("Side by side") && !one.out.contains("sctp"), "{}", one.out);
    assert_eq!(one.err, "");
}

#[test]
fn a_flow_can_be_chosen_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    hard(folder.path(), &["--schemes", "cmt", "--seeds", "1,"]);
    let run = folder.path().join("trace/cmt-seed1");
    let ended = anabranch(&["explain", text(&run), "--flow", "two-way-reverse"]).with_status(0);
    assert!(
        ended.out.contains("two-way-reverse (cmt)") && !ended.out.contains("late (cmt)"),
        "{}",
        ended.out
    );
    let ended = anabranch(&["explain", text(&run), "--flow", "tow-way"]).with_status(2);
    assert!(
        ended.err.contains("no flow `tow-way`; there are: two-way, two-way-reverse, late"),
        "{}",
        ended.err
    );
}

#[test]
fn other_file_is_refused_and_damaged_trace_names_the_line() {
    let ended = anabranch(&["explain", "scenarios"]).with_status(2);
    assert!(
        ended.err.contains("scenarios: not a run's trace") && ended.err.contains("--trace"),
        "{}",
        ended.err
    );
    assert_eq!(anabranch(&["explain"]).status, Some(2));

    let folder = tempfile::tempdir().expect("a folder");
    hard(folder.path(), &["--schemes", "cmt", "--seeds", "1,"]);
    let run = folder.path().join("trace/cmt-seed1");
    let packets = fs::read(run.join("packets.csv")).expect("packets");
    fs::write(run.join("packets.csv"), &packets[..packets.len() / 2]).expect("written");
    let ended = anabranch(&["explain", text(&run)]).with_status(0);
    assert!(ended.out.contains("cut short or changed: packets.csv"), "{}", ended.out);

    fs::write(run.join("packets.csv"), "time_s,flow\n").expect("written");
    let ended = anabranch(&["explain", text(&run)]).with_status(1);
    assert!(ended.err.contains("packets.csv: no column `direction`"), "{}", ended.err);
    assert!(ended.err.contains("trace the run again"), "{}", ended.err);
}

#[test]
fn tables_of_an_explanation_fit_80_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    hard(folder.path(), &["--schemes", "cmt,cmt-pf,braid"]);
    let text = anabranch(&["explain", text(&folder.path().join("trace"))]).with_status(0).out;
    let rows = text
        .split("Side by side")
        .nth(1)
        .expect("a comparison")
        .lines()
        .take_while(|line| !line.starts_with("closed"));
    let times = text
        .lines()
        .filter(|line| line.starts_with("path ") || line.starts_with("near") || line.starts_with("far"));
    let wide: Vec<&str> = rows.chain(times).filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}
