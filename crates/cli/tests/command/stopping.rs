//! Ctrl-C and readers that go away.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::command;

/// Starts more runs than anybody would wait for.
fn start(more: &[&str]) -> Child {
    let mut arguments = vec!["run", "scenarios/two-path.toml", "--seeds", "20000"];
    arguments.extend(more);
    let mut command = command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn interrupt(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// Waits until a folder holds so many files.
/// Captures: before any of them the command tries the folder with a file that it removes again.
fn wait_for_files(folder: &Path, count: usize) {
    let since = Instant::now();
    let captures = || {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "pcapng")).count()
    };
    while captures() < count {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing happens");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_prints_what_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    let child = start(&["--set", "run.duration='2 s'", "--threads", "1", "--pcap", pcap]);
    wait_for_files(folder.path(), 3);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{out}{err}");
    assert!(out.starts_with("interrupted: ") && out.contains(" of 60000 runs\n"), "{out}");
    assert!(out.contains("\nsctp"), "{out}");
    assert!(err.contains("press Ctrl-C again"), "{err}");
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
    for (line, seed) in text.lines().zip(1..) {
        let run: serde_json::Value = serde_json::from_str(line).expect("a whole object");
        assert_eq!(run["seed"], seed);
    }
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    let mut child = start(&["--set", "run.duration='100000 s'", "--pcap", pcap]);
    wait_for_files(folder.path(), 1);
    interrupt(&child);
    let mut notice = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut notice).expect("a line");
    assert!(notice.contains("press Ctrl-C again"), "{notice}");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn nobody_reading_any_more_is_no_error() {
    let mut child = start(&["--set", "run.duration='2 s'", "--json"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    // The reader is gone here.
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_sweep_that_is_interrupted_prints_what_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().to_str().expect("a path");
    let sweep = ["--sweep", "path.path-2.loss=0,0.1", "--schemes", "cmt"];
    let more = ["--set", "run.duration='2 s'", "--threads", "1", "--pcap", pcap];
    let child = start(&[&sweep[..], &more].concat());
    wait_for_files(&folder.path().join("path.path-2.loss=0"), 3);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{out}{err}");
    assert!(out.starts_with("interrupted: ") && out.contains(" of 40000 runs\n"), "{out}");
    let row = out.lines().find(|line| line.starts_with("cmt ")).expect("a row");
    assert!(row.contains('±') && row.ends_with('-'), "the second column and the mean are missing: {row}");
}
