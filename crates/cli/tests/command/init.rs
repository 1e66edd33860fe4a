//! Built-in scenarios, completions and manual pages.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Ended, anabranch, command, workspace};

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("text")).collect();
    names.sort();
    names
}

/// Runs the program in a folder.
fn in_folder(folder: &std::path::Path, arguments: &[&str]) -> Ended {
    let output = command(arguments).current_dir(folder).output().expect("the program starts");
    Ended {
        status: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

const SHORT: [&str; 6] = ["--schemes", "cmt", "--seeds", "1", "--set", "run.duration='2 s'"];

#[test]
fn a_built_in_scenario_runs_from_any_folder_and_as_the_file_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = [&SHORT[..], &["--json", "--digest"]].concat();
    let built_in = in_folder(folder.path(), &[&["run", "two-path"], &json[..]].concat()).with_status(0);
    let file = anabranch(&[&["run", "scenarios/two-path.toml"], &json[..]].concat()).with_status(0);
    assert_eq!(built_in.out, file.out);
    let ended = in_folder(folder.path(), &["run", "two-pth"]).with_status(2);
    assert!(
        ended.err.contains("two-pth: neither a file nor a built-in scenario")
            && ended.err.contains("did you mean `two-path`?"),
        "{}",
        ended.err
    );
    // A file precedes a built-in scenario of the same name.
    fs::write(folder.path().join("two-path"), "nonsense").expect("written");
    in_folder(folder.path(), &[&["run", "two-path"], &SHORT[..]].concat()).with_status(2);
}

#[test]
fn a_scenario_comes_through_a_pipe_once_for_all_values_of_a_sweep() {
    let text = fs::read(workspace().join("scenarios/two-path.toml")).expect("a scenario");
    let run = |text: &[u8]| {
        let sweep = ["--sweep", "path.path-2.loss=0,0.1"];
        let mut child = command(&[&["run", "-"], &SHORT[..], &sweep].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(text).expect("written");
        child.wait_with_output().expect("it ends")
    };
    let ended = run(&text);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let ended = run(b"[run]\nduration = 7");
    let err = String::from_utf8(ended.stderr).expect("text");
    assert_eq!(ended.status.code(), Some(2));
    assert!(err.contains("standard input"), "{err}");
}

#[test]
fn built_in_files_are_listed_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = in_folder(folder.path(), &["init"]).with_status(0).out;
    for expected in ["two-path", "second-path", "anabranch run NAME", "fails for twenty seconds"] {
        assert!(list.contains(expected), "no `{expected}` in:\n{list}");
    }
    in_folder(folder.path(), &["init", "second-path"]).with_status(0);
    assert_eq!(names(folder.path()), ["second-path.toml", "two-path.toml"]);
    let again = in_folder(folder.path(), &["init", "two-path"]).with_status(1);
    assert!(again.err.contains("exists already") && again.err.contains("--force"), "{}", again.err);
    in_folder(folder.path(), &["init", "two-path", "--force"]).with_status(0);
    in_folder(folder.path(), &[&["run", "two-path.toml"], &SHORT[..]].concat()).with_status(0);
    let wrong = in_folder(folder.path(), &["init", "two-pat"]).with_status(2);
    assert!(wrong.err.contains("did you mean `two-path`?"), "{}", wrong.err);
    in_folder(folder.path(), &["init", "example"]).with_status(0);
    let example = names(&folder.path().join("anabranch-example"));
    assert!(example.len() > 8 && example.contains(&"README.md".to_owned()), "{example:?}");
}

#[test]
fn completions_name_schemes_and_keys_and_a_shell_can_read_them() {
    for shell in ["bash", "zsh", "fish"] {
        let script = anabranch(&["completions", shell]).with_status(0).out;
        for expected in ["cmt-pf", "association.recv_buffer=", "connect-timeout"] {
            assert!(script.contains(expected), "{shell}: no `{expected}`");
        }
    }
    let script = anabranch(&["completions", "bash"]).with_status(0).out;
    assert!(script.contains("second-path"), "names of built-in scenarios after init");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("anabranch");
    fs::write(&file, script).expect("written");
    // Result of the completion in bash.
    let asks = format!(
        "source {}; COMP_WORDS=(anabranch run --schemes cmt-p); COMP_CWORD=3; \
         _anabranch anabranch cmt-p --schemes; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let Ok(answer) = Command::new("bash").args(["-c", &asks]).output() else { return };
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "cmt-pf");
}

#[test]
fn run_completes_built_in_scenarios_in_each_shell() {
    let script = |shell| anabranch(&["completions", shell]).with_status(0).out;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("anabranch");
    fs::write(&file, script("bash")).expect("written");
    let asks = format!(
        "source {}; COMP_WORDS=(anabranch run two-pa); COMP_CWORD=2; \
         _anabranch anabranch two-pa run; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    if let Ok(answer) = Command::new("bash").args(["-c", &asks]).output() {
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "two-path");
    }
    let zsh = script("zsh");
    assert!(zsh.contains(":_anabranch_scenarios'") && zsh.contains("_anabranch_scenarios() {"), "{zsh}");
    let fish = script("fish");
    assert!(
        fish.contains("-n \"__fish_anabranch_using_subcommand run\" -a \"") && fish.contains("two-path"),
        "{fish}"
    );
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("man");
    anabranch(&["man", dir.to_str().expect("a path")]).with_status(0);
    let pages = names(&dir);
    for page in ["anabranch.1", "anabranch-run.1", "anabranch-send.1", "anabranch-init.1"] {
        assert!(pages.contains(&page.to_owned()), "{page} is missing: {pages:?}");
    }
    let send = fs::read_to_string(dir.join("anabranch-send.1")).expect("a page");
    assert!(send.contains(".TH") && send.contains("limit"), "{send}");
    let examples =
        send.split_once(".SH EXAMPLES\n.in 2n\n.nf\n").and_then(|(_, rest)| rest.split_once("\n.fi\n"));
    let help = anabranch(&["send", "--help"]).out;
    let shown = examples
        .expect("lines that are not filled")
        .0
        .replace("\\-", "-")
        .replace("\\*(Aq", "'")
        .replace("\\e", "\\");
    assert!(help.contains(&shown.replace("\\`", "`")), "the lines of the help: {shown}");
}
