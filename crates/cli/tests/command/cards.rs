//! The book's pages about schemes and components are those that the registry makes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{anabranch, workspace};

const AGAIN: &str = "the book differs from the cards: run `make cards` and look at the difference";

/// A folder with the two pages that lists are put into, as they are in the book.
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
fn the_book_says_what_the_cards_say() {
    let (made, book) = (copy_of_the_book(), workspace().join("docs/src"));
    write_into(made.path());
    let pages = names(made.path().join("schemes"));
    assert_eq!(pages, names(book.join("schemes")), "{AGAIN}");
    let paths = pages.iter().map(|page| format!("schemes/{page}"));
    for path in paths.chain(["SUMMARY.md".to_owned(), "schemes.md".to_owned()]) {
        let [made, book] =
            [made.path(), &book].map(|root| fs::read_to_string(root.join(&path)).expect(&path));
        assert!(made == book, "{path}: {AGAIN}");
    }
}

#[test]
fn pages_that_nothing_stands_behind_any_more_go_and_others_stay() {
    let folder = copy_of_the_book();
    write_into(folder.path());
    let pages = folder.path().join("schemes");
    fs::copy(pages.join("cmt.md"), pages.join("no-more.md")).expect("a page");
    fs::write(pages.join("mine.md"), "# Written by hand\n").expect("a page");
    write_into(folder.path());
    assert!(!pages.join("no-more.md").exists() && pages.join("mine.md").exists());
}

#[test]
fn a_page_is_printed_as_it_stands_in_the_book() {
    let page = fs::read_to_string(workspace().join("docs/src/schemes/cmt.md")).expect("a page");
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
