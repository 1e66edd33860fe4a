//! Messages about mistakes, and their exit statuses.

use std::fs;

use crate::support::{anabranch, short_run};

/// Returns a scenario file with this text.
fn scenario(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    fs::write(&file, text).expect("written");
    let name = file.to_str().expect("a path").to_owned();
    (folder, name)
}

const PATH: &str = "[[path]]\nrate = \"10 Mbit/s\"\ndelay = \"45 ms\"\n";

#[test]
fn unknown_key_is_shown_with_place_and_nearest_key() {
    let (_folder, file) = scenario(&format!("[run]\nduratoin = \"2 s\"\n{PATH}"));
    let ended = anabranch(&["run", &file]).with_status(2);
    assert!(ended.err.contains(&format!("{file}:2:1: unknown key")), "{}", ended.err);
    assert!(ended.err.contains("did you mean `duration`?"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

#[test]
fn mistakes_on_the_command_line_name_their_option() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--set", "path.path-1.los=0.1"],
            &["--set path.path-1.los=0.1: unknown key", "did you mean `loss`?"],
        ),
        (&["--set", "path.path1.loss=0.1"], &["--set path.path1.loss=0.1", "did you mean `path-1`?"]),
        (&["--set", "loss"], &["--set", "expected KEY=VALUE"]),
        (&["--schemes", "cmtt"], &["--schemes: unknown scheme `cmtt`", "did you mean `cmt`?"]),
        (&["--schemes", "cmt(trigger=0)"], &["--schemes: ", "a number from 1 to 100"]),
        (&["--schemes", ""], &["--schemes: ", "it is empty"]),
        (&["--set", "run.schemes=[\"cmtt\"]"], &["--set run.schemes=[\"cmtt\"]: unknown scheme"]),
        (&["--profile", "ns3"], &["--profile: unknown profile `ns3`", "did you mean `ns2`?"]),
        (&["--seeds", "1,1"], &["--seeds", "seed 1 is in the list twice"]),
        (&["--threads", "0"], &["--threads"]),
        (&["--no-such-option"], &["--no-such-option"]),
    ];
    for (arguments, expected) in cases {
        let ended = short_run(arguments).with_status(2);
        for text in *expected {
            assert!(ended.err.contains(text), "no `{text}` in:\n{}", ended.err);
        }
        assert_eq!(ended.out, "");
    }
}

#[test]
fn commands_of_the_python_package_name_its_installation() {
    for arguments in [
        &["sweep", "plan.toml"][..],
        &["report"],
        &["plot", "--help"],
        &["help", "sweep"],
        &["trace", "plot"],
        &["help", "trace", "import"],
    ] {
        let ended = anabranch(arguments).with_status(2);
        assert!(ended.err.contains("comes with the Python package"), "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains("pip install ."), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
    let ended = anabranch(&["swept"]).with_status(2);
    assert!(ended.err.contains("unrecognized subcommand 'swept'"), "{}", ended.err);
    assert!(anabranch(&["trace", "plat"]).with_status(2).err.contains("unrecognized subcommand 'plat'"));
    assert!(!anabranch(&["--help"]).with_status(0).out.contains("sweep  "));
}

#[test]
fn invalid_scheme_or_profile_in_a_file_names_the_file() {
    let cases = [
        ("schemes = [\"cmt\", \"scpt\"]", "", "`run.schemes`: unknown scheme `scpt`, did you mean `sctp`?"),
        ("profile = \"rfc926\"", "", "`run.profile`: unknown profile `rfc926`, did you mean `rfc9260`?"),
        ("", "[[flow]]\nscheme = \"cm\"\n", "flow `flow-1`: unknown scheme `cm`"),
    ];
    for (line, flow, expected) in cases {
        let (_folder, file) = scenario(&format!("[run]\nduration = \"2 s\"\n{line}\n{PATH}{flow}"));
        let ended = anabranch(&["run", &file]).with_status(2);
        assert!(ended.err.starts_with(&format!("{file}: {expected}")), "{}", ended.err);
    }
}

#[test]
fn files_that_cannot_be_read_or_written_are_named_before_the_first_run() {
    let ended = anabranch(&["run", "scenarios/no-such.toml"]).with_status(2);
    assert!(ended.err.contains("scenarios/no-such.toml: cannot be read"), "{}", ended.err);
    let (folder, file) = scenario(&format!(
        "[run]\nstop = \"transfer\"\n{PATH}[[flow]]\nkind = \"file\"\npath = \"missing.bin\"\n"
    ));
    let ended = anabranch(&["run", &file]).with_status(1);
    let missing = folder.path().join("missing.bin");
    assert!(ended.err.starts_with(&format!("{}: ", missing.display())), "{}", ended.err);
    // No user can create a folder inside a file, not even root.
    let inside = format!("{file}/traces");
    for option in ["--trace", "--pcap"] {
        let ended = short_run(&[option, &inside]).with_status(1);
        assert!(ended.err.starts_with(&format!("{inside}: cannot be written to: ")), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn a_transfer_that_does_not_finish_fails_the_command() {
    let arguments = ["run", "scenarios/file.toml", "--seeds", "1", "--set", "run.duration='1 s'"];
    let ended = anabranch(&arguments).with_status(1);
    assert!(ended.err.contains("cmt, seed 1: flow `flow-1`: not finished"), "{}", ended.err);
    assert!(ended.out.contains("0 of 1") && ended.out.contains("in 0 of 3 runs"), "{}", ended.out);
}
