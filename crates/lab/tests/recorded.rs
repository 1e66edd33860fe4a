//! Links that follow the traces of a scenario.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::job;
use anabranch_lab::run::{Job, RunError, RunResult, ScenarioFiles};

/// Returns a job over one path with these keys, whose traces are in the folder.
fn traced(keys: &str, folder: &Path) -> Job {
    let text =
        format!("[run]\nduration = \"20 s\"\n[association]\nrecv_buffer = \"1 MiB\"\n[[path]]\n{keys}");
    Job { files: Arc::new(ScenarioFiles::new(folder)), ..job(&text, "sctp", 1) }
}

fn folder(files: &[(&str, &str)]) -> PathBuf {
    let folder = tempfile::tempdir().expect("a folder").keep();
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a trace");
    }
    folder
}

fn run(keys: &str, folder: &Path) -> RunResult {
    traced(keys, folder).run().expect("a run")
}

/// 8 Mbit/s for 10 s, then 2 Mbit/s for 10 s, in the third of four columns.
const DRIVE: &str = "time,tech,down,up\n100.0,4G,8.0,1\n105.0,5G,,1\n110.0,5G,2.0,1\n115.0,5G,2.0,2\n";

#[test]
fn link_with_constant_trace_gives_the_result_of_a_rate() {
    let folder = folder(&[("flat.csv", "0,8\n1,8\n"), ("delay.csv", "0,20\n1,20\n")]);
    let plain = run("rate = \"8 Mbit/s\"\ndelay = \"20 ms\"\n", &folder);
    assert_eq!(run("capacity = \"flat.csv\"\ndelay = \"20 ms\"\n", &folder), plain);
    assert_eq!(run("capacity = \"flat.csv\"\ndelay_trace = \"delay.csv\"\n", &folder), plain);
    let scaled = "capacity = { file = \"flat.csv\", unit = \"kbit/s\", scale = 1000 }\ndelay_trace = { file = \"delay.csv\", start = \"3 s\" }\n";
    assert_eq!(run(scaled, &folder), plain);
}

#[test]
fn goodput_follows_the_trace_from_its_start_on() {
    let folder = folder(&[("drive.csv", DRIVE)]);
    let goodput = |rest: &str| {
        let keys =
            format!("capacity = {{ file = \"drive.csv\", column = \"down\"{rest} }}\ndelay = \"5 ms\"\n");
        run(&keys, &folder).goodput_kbps
    };
    // Headers take a thirtieth.
    let near =
        |found: f64, mbps: f64| assert!((found / 1000.0 / mbps - 0.967).abs() < 0.02, "{found} for {mbps}");
    near(goodput(""), 5.0);
    near(goodput(", start = \"10 s\", repeat = false"), 1.0);
    near(goodput(", start = \"10 s\", scale = 0.5"), 2.5);
    near(goodput(", resample = \"20 s\""), 5.0);
}

#[test]
fn losses_and_outages_follow_their_traces() {
    let folder = folder(&[("loss.csv", "0,0\n10,1\n20,0\n"), ("outage.csv", "0,1\n10,0\n20,1\n")]);
    let keys = "rate = \"8 Mbit/s\"\ndelay = \"5 ms\"\n";
    let whole = run(keys, &folder).goodput_kbps;
    for trace in ["loss_trace = \"loss.csv\"\n", "outage_trace = \"outage.csv\"\n"] {
        let half = run(&format!("{keys}{trace}"), &folder).goodput_kbps;
        assert!((half / whole - 0.5).abs() < 0.02, "{trace}: {half} of {whole}");
    }
}

#[test]
fn discipline_of_a_queue_shortens_it() {
    let keys = |queue: &str| format!("rate = \"8 Mbit/s\"\ndelay = \"5 ms\"\nqueue = {queue}\n");
    let delay = |queue: &str| {
        let text = keys(queue).replace("[[path]]", "");
        let job = traced(&text, Path::new("."));
        let mut scenario = (*job.scenario).clone();
        scenario.run.delays = true;
        let result = Job { scenario: Arc::new(scenario), ..job }.run().expect("a run");
        result.paths[0].delay_ms.expect("delays are measured")
    };
    let long = delay("\"500 packets\"");
    for discipline in ["codel", "fq-codel", "pie", "red"] {
        let managed = delay(&format!("{{ limit = \"500 packets\", discipline = \"{discipline}\" }}"));
        assert!(managed < long / 2.0, "{discipline}: {managed} ms of {long} ms");
    }
}

#[test]
fn invalid_trace_is_refused_with_file_line_and_remedy() {
    let folder = folder(&[
        ("bad.csv", "0,8\n1,fast\n"),
        ("empty.csv", ""),
        ("zero.csv", "0,0\n1,0\n"),
        ("short.csv", "0,8\n1,8\n"),
    ]);
    for (trace, expected) in [
        ("\"bad.csv\"", "bad.csv: line 2: \"fast\" is no rate of at most 1 Tbit/s; give a number"),
        ("\"empty.csv\"", "empty.csv: the trace has 0 points and lasts no time; give at least two lines"),
        ("\"zero.csv\"", "zero.csv: the rate is zero throughout the trace"),
        ("\"none.csv\"", "none.csv: cannot be read: No such file"),
        (
            "{ file = \"short.csv\", start = \"2 s\", repeat = false }",
            "short.csv: the trace lasts 2 s, so `start` cannot be 2 s; give less, or set `repeat`",
        ),
    ] {
        let keys = format!("capacity = {trace}\ndelay = \"5 ms\"\n");
        let error = traced(&keys, &folder).check().expect_err(expected);
        assert!(matches!(error, RunError::TraceFile(_)));
        let text = error.to_string();
        assert!(text.starts_with(&folder.join(expected).display().to_string()), "{text}");
    }
}

#[test]
fn trace_folder_names_the_traces_absolutely_and_its_capacity_is_explained() {
    let folder = folder(&[("drive.csv", DRIVE)]);
    let keys = "capacity = { file = \"drive.csv\", column = \"3\" }\ndelay = \"5 ms\"\n";
    let out = tempfile::tempdir().expect("a folder");
    let job = Job { trace: Some(out.path().to_owned()), ..traced(keys, &folder) };
    job.run().expect("a run");
    let written = fs::read_to_string(out.path().join("sctp-seed1/scenario.toml")).expect("the scenario");
    assert!(written.contains(&format!("file = \"{}\"", folder.join("drive.csv").display())), "{written}");
    let explained = anabranch_lab::explain::explain(&out.path().join("sctp-seed1")).expect("an explanation");
    let path = &explained.flows[0].paths[0];
    assert!((path.used_share.expect("a capacity") - 0.99).abs() < 0.02, "{path:?}");
}
