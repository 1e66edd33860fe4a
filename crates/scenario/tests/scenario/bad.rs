//! Invalid scenarios with their exact error texts.
//!
//! `bad.txt` has the cases: `%% NAME`, the file, `%% error`, the error text. Lines `# --set key=value` at the beginning of a file are
//! overrides. `UPDATE_EXPECT=1` writes the error texts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anabranch_scenario::{Override, Place, ProblemKind, Scenario, ScenarioError};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenario/bad.txt");

fn overrides(text: &str) -> Vec<Override> {
    let lines = text.lines().map_while(|line| line.strip_prefix("# --set "));
    lines.map(|line| line.parse().expect("an override")).collect()
}

#[test]
fn bad_files_are_explained() {
    let cases = fs::read_to_string(CASES).expect("the cases");
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut updated = String::new();
    for case in cases.split("%% ").skip(1).collect::<Vec<_>>().chunks_exact(2) {
        let (name, text) = case[0].split_once('\n').expect("a name");
        let expected = case[1].strip_prefix("error\n").expect("an error text");
        let error = Scenario::parse(text, name, &overrides(text)).err();
        let said = format!("{}\n", error.unwrap_or_else(|| panic!("{name} was accepted")));
        assert!(is_update || said == expected, "{name}: {said}\nexpected: {expected}");
        write!(updated, "%% {name}\n{text}%% error\n{said}").expect("a string");
    }
    assert!(is_update || updated == cases, "bad.txt has text beside its cases");
    if is_update {
        fs::write(CASES, updated).expect("the cases are written");
    }
}

#[test]
fn a_problem_has_its_parts_as_fields() {
    let text = "[run]\nduration = \"60 s\"\n[[path]]\nrate = \"1 Mbit/s\"\ndealy = \"45 ms\"\n";
    let error = Scenario::parse(text, "x.toml", &[]).expect_err("a misspelled key");
    let [missing, unknown] = error.problems() else { panic!("not two problems: {error}") };
    assert_eq!((missing.kind, missing.key.as_str()), (ProblemKind::MissingKey, "path.path-1.delay"));
    assert_eq!((unknown.kind, unknown.key.as_str()), (ProblemKind::UnknownKey, "path.path-1.dealy"));
    assert_eq!(unknown.nearest.as_deref(), Some("delay"));
    let text = "dealy = \"45 ms\"".to_owned();
    assert_eq!(unknown.place, Place::At { line: 5, column: 1, width: 5, text });
}

#[test]
fn a_missing_file_is_named() {
    let error = Scenario::load(Path::new("no/such/scenario.toml"), &[]).expect_err("no such file");
    assert!(matches!(error, ScenarioError::Unreadable { .. }));
    assert!(error.to_string().starts_with("no/such/scenario.toml: cannot be read: "), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("latin-1.toml");
    fs::write(&file, b"[run]\n# \xe9t\xe9\n").expect("a file to read");
    let error = Scenario::load(&file, &[]).expect_err("a byte that is not UTF-8");
    assert!(error.to_string().contains("latin-1.toml:2:3: this is not text in UTF-8"), "{error}");
}

#[test]
fn overrides_need_a_key_and_a_value() {
    for text in ["", "run.seeds", "=3", " = 3"] {
        let error = text.parse::<Override>().expect_err("no override");
        assert!(error.to_string().starts_with("expected KEY=VALUE such as path.path-1.loss=0.02"), "{error}");
    }
}

#[test]
fn many_problems_are_counted_instead_of_printed() {
    let mut text =
        String::from("[run]\nduration = \"1 s\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n");
    for key in 0..100 {
        text += &format!("key-{key} = 1\n");
    }
    let error = Scenario::parse(&text, "x.toml", &[]).expect_err("unknown keys");
    assert_eq!(error.problems().len(), 100);
    assert!(error.to_string().ends_with("\nand 75 more problems"));
}
