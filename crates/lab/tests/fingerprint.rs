//! The engine's fingerprint changes with all sources that determine the result of a run, and with no others.

#[path = "../build/fingerprint.rs"]
mod digest;
#[path = "../build/lock.rs"]
mod lock;
#[path = "../build/sources.rs"]
mod sources;

use std::fs;
use std::path::Path;

use anabranch_lab::engine::{FINGERPRINT, VERSION};
use tempfile::TempDir;

/// Lock file with two packages of the same name, one of which the engine uses, and a package that only the command uses.
const LOCK: &str = r#"
[[package]]
name = "anabranch-cli"
version = "0.1.0"
dependencies = [
 "anabranch-lab",
 "clap",
]

[[package]]
name = "anabranch-lab"
version = "0.1.0"
dependencies = [
 "rand 0.10.1",
 "toml",
]

[[package]]
name = "clap"
version = "4.6.0"
checksum = "c1a9"

[[package]]
name = "rand"
version = "0.9.3"
checksum = "0903"

[[package]]
name = "rand"
version = "0.10.1"
checksum = "0a01"

[[package]]
name = "toml"
version = "1.2.0"
checksum = "7031"
dependencies = [
 "winnow",
]

[[package]]
name = "winnow"
version = "1.0.0"
checksum = "3140"
"#;

/// Returns a workspace with a file in each crate.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in sources::CRATES {
        put(folder.path(), &format!("crates/{name}/Cargo.toml"), "[dependencies]\n");
        put(folder.path(), &format!("crates/{name}/src/lib.rs"), "mod part;\n");
        put(folder.path(), &format!("crates/{name}/src/part/mod.rs"), "fn part() {}\n");
    }
    put(folder.path(), "Cargo.lock", LOCK);
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder");
    fs::write(file, text).expect("a file");
}

fn of(folder: &TempDir) -> String {
    digest::of(folder.path()).expect("the sources can be read")
}

/// Returns `true` if writing these files changes the fingerprint.
fn changes(files: &[(&str, &str)]) -> bool {
    let folder = workspace();
    let before = of(&folder);
    for (name, text) in files {
        put(folder.path(), name, text);
    }
    of(&folder) != before
}

#[test]
fn fingerprint_changes_with_every_crate_of_the_engine() {
    for name in sources::CRATES {
        assert!(changes(&[(&format!("crates/{name}/src/part/mod.rs"), "fn part() { }\n")]), "{name}");
        assert!(changes(&[(&format!("crates/{name}/src/new.rs"), "")]), "a new file of {name}");
        assert!(
            changes(&[(&format!("crates/{name}/Cargo.toml"), "[dependencies]\nlibm = \"0.2\"\n")]),
            "{name}"
        );
    }
}

#[test]
fn fingerprint_changes_if_text_moves_between_files() {
    let moved = [("crates/sim/src/lib.rs", "mod part;\nfn part() {}\n"), ("crates/sim/src/part/mod.rs", "")];
    assert!(changes(&moved));
}

#[test]
fn documents_tests_and_other_crates_keep_the_fingerprint() {
    assert!(!changes(&[
        ("README.md", "text"),
        ("crates/core/README.md", "text"),
        ("crates/core/src/README.md", "text"),
        ("crates/core/tests/it.rs", "fn it() {}"),
        ("crates/sim/benches/it.rs", "fn it() {}"),
        ("crates/cli/src/lib.rs", "fn it() {}"),
    ]));
}

#[test]
fn line_endings_of_another_system_keep_the_fingerprint() {
    let windows = LOCK.replace('\n', "\r\n");
    assert!(!changes(&[("Cargo.lock", &windows), ("crates/wire/src/lib.rs", "mod part;\r\n")]));
}

#[test]
fn only_engine_packages_of_the_lock_file_count() {
    assert!(changes(&[("Cargo.lock", &LOCK.replace("0a01", "0a02"))]), "another rand");
    assert!(changes(&[("Cargo.lock", &LOCK.replace("3140", "3141"))]), "what a package is built with");
    assert!(!changes(&[("Cargo.lock", &LOCK.replace("c1a9", "c1a8"))]), "the command's");
    assert!(!changes(&[("Cargo.lock", &LOCK.replace("0903", "0904"))]), "the other rand");
    assert!(
        !changes(&[("Cargo.lock", &LOCK.replace("version = \"0.1.0\"", "version = \"0.2.0\""))]),
        "our own version"
    );
}

#[test]
fn packages_of_the_lock_file_are_listed_once_and_sorted() {
    let expected = ["rand 0.10.1 0a01", "toml 1.2.0 7031", "winnow 1.0.0 3140"];
    assert_eq!(lock::packages(LOCK, "anabranch-lab"), expected);
}

#[test]
fn built_in_fingerprint_equals_that_of_the_workspace() {
    assert_eq!(digest::of(&sources::workspace()).expect("the sources can be read"), FINGERPRINT);
    assert_eq!(FINGERPRINT.len(), 64);
    assert_eq!(VERSION, env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_crate_without_its_workspace_has_one_too() {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), "crates/lab/src/lib.rs", "");
    assert_eq!(of(&folder).len(), 64);
}
