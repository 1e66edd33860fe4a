//! Ctrl-C, and readers that close their pipe.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{anabranch, command, signal};

/// Starts more runs than can end during the test.
fn start(more: &[&str]) -> Child {
    let mut arguments = vec!["run", "scenarios/two-path.toml", "--seeds", "20000"];
    arguments.extend(more);
    let mut command = command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn interrupt(child: &Child) {
    signal(child.id(), "INT");
}

/// Returns the numbers of captures in a folder: the complete ones, and those whose runs have begun.
fn captures(folder: &Path) -> [usize; 2] {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<PathBuf> = files.map(|file| file.path()).collect();
    ["pcapng", "part"].map(|kind| {
        names.iter().filter(|name| name.extension().is_some_and(|extension| extension == kind)).count()
    })
}

/// Waits until this number of runs have written their captures.
fn wait_for_runs(folder: &Path, count: usize) {
    wait_until(|| captures(folder)[0] >= count);
}

fn wait_until(mut happened: impl FnMut() -> bool) {
    let since = Instant::now();
    while !happened() {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing happens");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_prints_finished_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    let child = start(&["--set", "run.duration='2 s'", "--threads", "1", "--pcap", pcap]);
    wait_for_runs(folder.path(), 3);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{out}{err}");
    assert!(out.starts_with("interrupted: ") && out.contains(" of 60000 runs\n"), "{out}");
    for scheme in ["sctp", "cmt", "cmt-pf"] {
        assert!(out.contains(&format!("\n{scheme} ")), "{scheme} has no row:\n{out}");
    }
    assert!(err.contains("press Ctrl-C again"), "{err}");
}

#[test]
fn aborted_run_leaves_no_output_that_looks_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pcap, trace] = ["pcap", "trace"].map(|name| folder.path().join(name));
    let [pcap, trace] = [pcap.to_str().expect("a path"), trace.to_str().expect("a path")];
    let child =
        start(&["--set", "run.duration='100000 s'", "--threads", "1", "--pcap", pcap, "--trace", trace]);
    wait_until(|| captures(Path::new(pcap))[1] > 0);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{out}{err}");
    assert!(err.contains("aborting the current runs"), "{err}");
    assert!(out.starts_with("interrupted: 0 of 60000 runs\n"), "{out}");
    assert_eq!(captures(Path::new(pcap)), [0, 1]);
    assert!(!Path::new(trace).join("sctp-seed1/result.json").exists());
    let explained = anabranch(&["explain", trace]).with_status(0);
    assert!(explained.out.contains("did not end"), "{}", explained.out);
}

#[test]
fn json_that_is_interrupted_ends_with_a_whole_line() {
    let mut child = start(&["--set", "run.duration='2 s'", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    lines.read_line(&mut text).expect("a line");
    interrupt(&child);
    lines.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let whole = |line| serde_json::from_str::<serde_json::Value>(line).expect("a whole object");
    let seeds: Vec<u64> = text.lines().map(|line| whole(line)["seed"].as_u64().expect("a seed")).collect();
    // A seed before the last ones may be missing: its run was aborted while others were completed.
    assert!(seeds[0] == 1 && seeds.is_sorted(), "{seeds:?}");
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_reader_that_does_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    // The pipe for the program's output is full.
    let (reader, mut full) = UnixStream::pair().expect("a pair of sockets");
    full.set_nonblocking(true).expect("a socket");
    while full.write(&[0]).is_ok() {}
    full.set_nonblocking(false).expect("a socket");
    let mut command =
        command(&["run", "scenarios/two-path.toml", "--seeds", "20000", "--json", "--pcap", pcap]);
    command.stdout(OwnedFd::from(full)).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    wait_for_runs(folder.path(), 1);
    interrupt(&child);
    wait_until(|| {
        interrupt(&child);
        thread::sleep(Duration::from_millis(50));
        child.try_wait().expect("a child").is_some()
    });
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    drop(reader);
}

#[test]
fn dropped_reader_is_no_error() {
    let mut child = start(&["--set", "run.duration='2 s'", "--json"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    // The reader is closed here.
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn interrupted_sweep_prints_finished_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    let sweep = ["--sweep", "path.path-2.loss=0,0.1", "--schemes", "cmt"];
    let more = ["--set", "run.duration='2 s'", "--threads", "1", "--pcap", pcap];
    let child = start(&[&sweep[..], &more].concat());
    wait_for_runs(&folder.path().join("path.path-2.loss=0.1"), 2);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{out}{err}");
    assert!(out.starts_with("interrupted: ") && out.contains(" of 40000 runs\n"), "{out}");
    let row = out.lines().find(|line| line.starts_with("cmt ")).expect("a row");
    assert_eq!(row.matches('±').count(), 3, "both columns and their mean: {row}");
}
