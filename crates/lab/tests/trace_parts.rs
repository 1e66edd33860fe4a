//! A part of a trace equals that part of the whole trace.

use std::fs;
use std::path::Path;

use anabranch_core::time::Span;
use anabranch_lab::explain::explain;
use anabranch_lab::run::{Job, RunResult, TracePart, TraceTable};
use tempfile::TempDir;

use crate::common::job;

const SCENARIO: &str = r#"
[run]
duration = "20 s"
profile = "ns2"
[association]
recv_buffer = "64 KiB"
[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
queue = "50 packets"
loss = 0.02
[[path.background]]
kind = "cbr"
rate = "1 Mbit/s"
packet = "500 B"
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
queue = "20 packets"
loss = 0.05
[[flow]]
"#;

const FILES: [(&str, TraceTable); 4] = [
    ("flow-1-paths.csv", TraceTable::Paths),
    ("flow-1-decisions.csv", TraceTable::Decisions),
    ("packets.csv", TraceTable::Packets),
    ("queues.csv", TraceTable::Queues),
];

fn traced(scheme: &str, part: TracePart) -> (TempDir, Job, RunResult) {
    let folder = TempDir::new().expect("a folder");
    let trace = Some(folder.path().to_owned());
    let job = Job { trace, part, digest: false, ..job(SCENARIO, scheme, 3) };
    let result = job.run().expect("the scenario can be run");
    (folder, job, result)
}

fn text(folder: &Path, job: &Job, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(job.label()).join(file)).ok()
}

#[test]
fn tables_are_the_same_without_the_others() {
    use TraceTable::{Decisions, Packets, Paths, Queues};
    for scheme in ["cmt", "db-cmt", "cmt-qa"] {
        let (whole, job, result) = traced(scheme, TracePart::default());
        for tables in
            [vec![Paths], vec![Packets], vec![Paths, Packets], vec![Decisions], vec![Queues], vec![]]
        {
            let part = TracePart { tables: Some(tables.clone()), until: None };
            let (folder, _, same) = traced(scheme, part);
            assert_eq!(serde_json::to_value(&same).ok(), serde_json::to_value(&result).ok());
            for (file, table) in FILES {
                let expected = text(whole.path(), &job, file).filter(|_| tables.contains(&table));
                assert!(text(folder.path(), &job, file) == expected, "{scheme}, {tables:?}: {file}");
            }
        }
    }
}

#[test]
fn a_run_that_is_ended_early_begins_as_the_whole_does() {
    let (whole, job, _) = traced("cmt", TracePart::default());
    for tables in [None, Some(vec![TraceTable::Paths, TraceTable::Packets])] {
        let until = Some(Span::from_millis(7_505));
        let (folder, _, result) = traced("cmt", TracePart { tables: tables.clone(), until });
        assert!((result.duration_s - 7.505).abs() < 1e-9);
        for (file, table) in FILES {
            if tables.as_ref().is_some_and(|tables| !tables.contains(&table)) {
                continue;
            }
            let (all, begun) = (text(whole.path(), &job, file), text(folder.path(), &job, file));
            let (all, begun) = (all.expect("the whole has it"), begun.expect("the part has it"));
            // Queues are sampled each 10 ms, and once more at the end.
            let begun =
                if file == "queues.csv" { begun.split("\n7.505").next().unwrap_or(&begun) } else { &begun };
            assert!(begun.len() * 4 > all.len() && all.starts_with(begun), "{file}");
        }
    }
}

#[test]
fn byte_order_marks_change_no_explanation() {
    let (folder, job, _) = traced("cmt", TracePart::default());
    let run = folder.path().join(job.label());
    let plain = explain(&run).expect("an explanation");
    assert!(plain.goodput_kbps.is_some());
    for entry in fs::read_dir(&run).expect("a folder") {
        let file = entry.expect("an entry").path();
        // The result contains the lengths of the tables, so an editor that changes a table makes it appear damaged.
        if file.extension().is_some_and(|ending| ending != "csv") {
            let text = fs::read_to_string(&file).expect("text");
            fs::write(&file, format!("\u{feff}{text}")).expect("written");
        }
    }
    assert_eq!(explain(&run).expect("an explanation"), plain);
}
