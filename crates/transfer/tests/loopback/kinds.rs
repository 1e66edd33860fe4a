//! Names whose kind has changed at the source.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anabranch_transfer::{Event, Filters, OnClash, Rule, SendSource, SenderRequests, ServerOptions};

use crate::loopback::deletion::send;
use crate::loopback::support::{Serving, run};

const KINDS: [&str; 3] = ["file", "folder", "link"];

/// Creates an entry of this kind.
fn make(path: &Path, kind: &str) {
    match kind {
        "file" => fs::write(path, "content").expect("written"),
        "link" => symlink("target", path).expect("linked"),
        _ => {
            fs::create_dir_all(path.join("deep")).expect("made");
            fs::write(path.join("deep/file"), "inside").expect("written");
        }
    }
}

fn kind_of(path: &Path) -> &'static str {
    let there = path.symlink_metadata().expect("there");
    if there.is_dir() {
        "folder"
    } else if there.is_symlink() {
        "link"
    } else {
        "file"
    }
}

fn serving() -> Serving {
    Serving::start(OnClash::Refuse, ServerOptions { allow_delete: true, ..ServerOptions::default() })
}

fn sender_requests(dry_run: bool) -> SenderRequests {
    SenderRequests { on_clash: OnClash::Refuse, checksum: false, dry_run, delete: true }
}

/// Creates a folder `t` with an entry of this kind, and the target of a link.
fn source(kind: &str) -> tempfile::TempDir {
    let from = tempfile::tempdir().expect("a folder");
    fs::create_dir(from.path().join("t")).expect("made");
    fs::write(from.path().join("t/target"), "target").expect("written");
    make(&from.path().join("t/x"), kind);
    from
}

#[test]
fn delete_converges_after_a_name_became_another_kind() {
    run(async {
        for before in KINDS {
            for after in KINDS.into_iter().filter(|after| *after != before) {
                // A folder and another kind are no clash of contents; a file and a link are one, which the policy decides.
                if before != "folder" && after != "folder" {
                    continue;
                }
                let serving = serving();
                let there = serving.dir.path().join("t/x");
                fs::create_dir(serving.dir.path().join("t")).expect("made");
                make(&there, before);
                let from = source(after);
                let sources = || vec![SendSource::path(from.path().join("t"))];
                let (ended, totals, events) = send(&serving, sources(), sender_requests(true)).await;
                ended.expect("read");
                assert_eq!(totals.failed_files, 0, "{before} {after}: {}", events.text());
                let removed = if before == "folder" { 3 } else { 1 };
                assert_eq!(totals.deletable, removed, "{before} {after}: {}", events.text());
                assert_eq!(kind_of(&there), before, "a dry run changes nothing");
                for (round, removed) in [(0, removed), (1, 0)] {
                    let (ended, totals, events) = send(&serving, sources(), sender_requests(false)).await;
                    ended.expect("sent");
                    let counts = (totals.failed_files, totals.deleted);
                    assert_eq!(counts, (0, removed), "{round} {before} {after}: {}", events.text());
                    assert_eq!(kind_of(&there), after);
                }
                if after == "folder" {
                    assert_eq!(fs::read(there.join("deep/file")).expect("there"), b"inside");
                }
            }
        }
    });
}

#[test]
fn top_level_name_is_replaced_only_if_overwriting_is_allowed() {
    run(async {
        for (on_clash, is_replaced) in [(OnClash::Refuse, false), (OnClash::Overwrite, true)] {
            let options = ServerOptions { allow_delete: true, ..ServerOptions::default() };
            let serving = Serving::start(on_clash, options);
            make(&serving.dir.path().join("x"), "folder");
            let from = source("file");
            let sources = vec![SendSource::path(from.path().join("t/x"))];
            let (ended, totals, events) = send(&serving, sources, sender_requests(false)).await;
            ended.expect("sent");
            assert_eq!(totals.failed_files, u64::from(!is_replaced), "{}", events.text());
            let kind = if is_replaced { "file" } else { "folder" };
            assert_eq!(kind_of(&serving.dir.path().join("x")), kind);
        }
    });
}

#[test]
fn excluded_content_keeps_its_folder_in_the_way() {
    run(async {
        let serving = serving();
        let there = serving.dir.path().join("t/x");
        fs::create_dir(serving.dir.path().join("t")).expect("made");
        make(&there, "folder");
        fs::write(there.join("kept.log"), "log").expect("written");
        let from = source("file");
        let rule = Rule { includes: false, pattern: "*.log".to_owned() };
        let filters = Filters::new(vec![rule]).expect("a pattern");
        let sources = vec![SendSource::path(from.path().join("t")).with_filters(filters)];
        let (ended, totals, events) = send(&serving, sources, sender_requests(false)).await;
        ended.expect("sent");
        assert_eq!(totals.failed_files, 1, "{}", events.text());
        assert!(events.text().contains("something in it stays"), "{}", events.text());
        assert_eq!(fs::read(there.join("kept.log")).expect("there"), b"log");
    });
}

#[test]
fn another_kind_is_refused_without_delete() {
    run(async {
        let serving = Serving::start(OnClash::Overwrite, ServerOptions::default());
        fs::create_dir(serving.dir.path().join("t")).expect("made");
        make(&serving.dir.path().join("t/x"), "folder");
        let from = source("file");
        let (ended, totals, events) = serving.send(vec![SendSource::path(from.path().join("t"))]).await;
        ended.expect("sent");
        assert_eq!(totals.failed_files, 1, "{}", events.text());
        assert!(events.text().contains("is a folder"), "{}", events.text());
        let deleted = events.list().iter().filter(|event| matches!(event, Event::Deleted { .. })).count();
        assert_eq!((kind_of(&serving.dir.path().join("t/x")), deleted), ("folder", 0));
    });
}
