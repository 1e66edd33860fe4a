//! Pages of the book about schemes and components, which `anabranch schemes --markdown` generates from the registry.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{anabranch, workspace};

/// Returns a folder with the two pages of the book that contain lists.
fn copy_of_the_book() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for page in ["SUMMARY.md", "schemes.md"] {
        fs::copy(workspace().join("docs/src").join(page), folder.path().join(page)).expect("a page");
    }
    folder
}

fn write_into(folder: &Path) {
    let ended = anabranch(&["schemes", "--markdown", folder.to_str().expect("a path")]).with_status(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
}

fn names(folder: PathBuf) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn generated_lists_link_to_each_page_once() {
    let made = copy_of_the_book();
    write_into(made.path());
    let pages = names(made.path().join("schemes"));
    assert!(pages.contains("cmt.md") && pages.contains("min-rtt.md"), "{pages:?}");
    for list in ["SUMMARY.md", "schemes.md"] {
        let text = fs::read_to_string(made.path().join(list)).expect(list);
        for page in &pages {
            let link = format!("](schemes/{page})");
            let rows = text.lines().filter(|line| line.starts_with(['|', ' ']) && line.contains(&link));
            assert_eq!(rows.count(), 1, "{list}: {page}");
        }
    }
}

#[test]
fn repeated_writing_leaves_lists_and_pages_unchanged() {
    let folder = copy_of_the_book();
    write_into(folder.path());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    let before = ["SUMMARY.md", "schemes.md", "schemes/cmt.md"].map(read);
    write_into(folder.path());
    assert_eq!(before, ["SUMMARY.md", "schemes.md", "schemes/cmt.md"].map(read));
}

#[test]
fn pages_without_a_scheme_are_removed_and_others_kept() {
    let folder = copy_of_the_book();
    write_into(folder.path());
    let pages = folder.path().join("schemes");
    fs::copy(pages.join("cmt.md"), pages.join("no-more.md")).expect("a page");
    fs::write(pages.join("mine.md"), "# Written by hand\n").expect("a page");
    write_into(folder.path());
    assert!(!pages.join("no-more.md").exists() && pages.join("mine.md").exists());
}

#[test]
fn printed_page_equals_the_page_of_the_book() {
    let book = copy_of_the_book();
    write_into(book.path());
    let page = fs::read_to_string(book.path().join("schemes/cmt.md")).expect("a page");
    assert_eq!(anabranch(&["schemes", "cmt", "--markdown"]).with_status(0).out, page);
    assert!(anabranch(&["schemes", "--markdown"]).with_status(0).out.contains(&page));
}

#[test]
fn a_folder_that_is_no_book_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let ended = anabranch(&["schemes", "--markdown", path]).with_status(1);
    assert!(ended.err.contains("schemes.md"), "{}", ended.err);
    fs::write(folder.path().join("schemes.md"), "# No marks\n").expect("a page");
    let ended = anabranch(&["schemes", "--markdown", path]).with_status(1);
    assert!(ended.err.contains("schemes.md: no line `<!-- cards: begin -->`"), "{}", ended.err);
    let ended = anabranch(&["schemes", "--markdown", "cmt"]).with_status(2);
    assert!(ended.err.contains("cmt: no such folder"), "{}", ended.err);
    anabranch(&["schemes", "cmt", "--markdown", path]).with_status(2);
}
