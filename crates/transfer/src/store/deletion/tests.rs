//! Tests of the entries that are removed from a folder, and of those that stay.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::batch::MAX_BATCH_BYTES;
#[cfg(target_os = "linux")]
use super::super::testing::open_below;
use super::*;
use crate::protocol::Reason;

/// Creates a folder with these files, and folders for names that end in a slash.
fn folder(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("d")).expect("made");
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("made");
        if file.ends_with('/') {
            fs::create_dir_all(path).expect("made");
        } else {
            fs::write(path, file).expect("written");
        }
    }
    dir
}

/// Returns everything below `d`, with a slash behind the names of folders.
fn names(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![dir.join("d")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(dir).expect("below").to_str().expect("text").to_owned();
            let is_folder = path.symlink_metadata().expect("there").is_dir();
            found.insert(if is_folder { format!("{name}/") } else { name });
            left.extend(is_folder.then_some(path));
        }
    }
    found
}

/// Returns the reported names, with a question mark behind those that could not be removed.
fn delete(
    dir: &Path,
    on_clash: OnClash,
    is_dry: bool,
    listed: &[&str],
    protects: &dyn Fn(&Name, bool) -> bool,
) -> Result<Vec<String>, Failure> {
    let mut names = ListedNames::default();
    listed.iter().for_each(|name| names.push(name).expect("in order"));
    let (mut told, cancel) = (Vec::new(), Cancel::default());
    let mut deletion = Deletion {
        listed: &names,
        protects,
        is_dry,
        cancel: &cancel,
        tell: &mut |name, failure| told.push(format!("{name}{}", if failure.is_some() { "?" } else { "" })),
    };
    let folder = Folder::open(dir, on_clash).expect("a folder");
    folder.delete_unlisted(&Name::new("d").expect("a name"), &mut deletion)?;
    told.sort();
    Ok(told)
}

fn nothing(_: &Name, _: bool) -> bool {
    false
}

#[test]
fn unlisted_entries_are_removed_recursively_in_their_folder() {
    let dir = folder(&["d/keep", "d/go", "d/gone/a/b", "d/gone/c", "d/kept/inside", "beside", "e/go"]);
    let told = delete(dir.path(), OnClash::Refuse, false, &["keep", "kept", "missing"], &nothing);
    assert_eq!(told, Ok(["d/go", "d/gone", "d/gone/a", "d/gone/a/b", "d/gone/c"].map(str::to_owned).into()));
    assert_eq!(names(dir.path()), ["d/keep", "d/kept/", "d/kept/inside"].map(str::to_owned).into());
    assert!(dir.path().join("beside").exists() && dir.path().join("e/go").exists());
}

#[test]
fn dry_run_reports_the_same_and_removes_no_file() {
    let dir = folder(&["d/keep", "d/go", "d/gone/a/b"]);
    let before = names(dir.path());
    let planned = delete(dir.path(), OnClash::Refuse, true, &["keep"], &nothing).expect("looked at");
    assert_eq!(names(dir.path()), before);
    assert_eq!(delete(dir.path(), OnClash::Refuse, false, &["keep"], &nothing), Ok(planned));
    assert_eq!(names(dir.path()), ["d/keep".to_owned()].into());
}

#[test]
fn links_are_removed_and_never_followed() {
    let dir = folder(&["d/real/inside", "e/inside"]);
    let outside = folder(&["d/precious"]);
    for (target, name) in [
        (dir.path().join("e"), "d/near"),
        (outside.path().to_owned(), "d/far"),
        ("gone".into(), "d/dangling"),
    ] {
        symlink(target, dir.path().join(name)).expect("linked");
    }
    symlink(outside.path(), dir.path().join("d/real/deep")).expect("linked");
    delete(dir.path(), OnClash::Refuse, false, &[], &nothing).expect("looked at");
    assert!(names(dir.path()).is_empty());
    assert!(dir.path().join("e/inside").exists() && outside.path().join("d/precious").exists());
    // A folder that has become a link is not entered, regardless of its target.
    for target in [outside.path().join("d"), dir.path().join("e")] {
        fs::remove_dir_all(dir.path().join("d"))
            .or_else(|_| fs::remove_file(dir.path().join("d")))
            .expect("gone");
        symlink(target, dir.path().join("d")).expect("linked");
        assert!(delete(dir.path(), OnClash::Refuse, false, &[], &nothing).is_err());
    }
    assert!(dir.path().join("e/inside").exists() && outside.path().join("d/precious").exists());
}

#[test]
fn unfinished_and_unofferable_files_stay_with_their_folder() {
    let kept =
        ["d/x/.a.0011223344556677.anabranch-part", "d/.a.0011223344556677.anabranch-journal", "d/y/a\x01b"];
    let dir = folder(&[&kept[..], &["d/x/go", "d/y/go", "d/go"]].concat());
    let told = delete(dir.path(), OnClash::Refuse, false, &[], &nothing);
    assert_eq!(told, Ok(["d/go", "d/x/go", "d/y/go"].map(str::to_owned).into()));
    let expected: BTreeSet<String> =
        kept.iter().chain(&["d/x/", "d/y/"]).map(|name| (*name).to_owned()).collect();
    assert_eq!(names(dir.path()), expected);
}

#[test]
fn copy_beside_another_file_stays_under_that_clash_rule() {
    let files = ["d/a", "d/a.1", "d/a.9999", "d/a.10000", "d/a.01", "d/a.x", "d/b.1"];
    for (on_clash, expected) in
        [(OnClash::Rename, &["d/a", "d/a.1", "d/a.9999"][..]), (OnClash::Overwrite, &["d/a"])]
    {
        let dir = folder(&files);
        delete(dir.path(), on_clash, false, &["a"], &nothing).expect("looked at");
        assert_eq!(names(dir.path()), expected.iter().map(|name| (*name).to_owned()).collect());
    }
}

#[test]
fn target_of_a_listed_name_stays_under_any_local_name() {
    // The name differs and leads to the same file, as on a file system that ignores case.
    let dir = folder(&["d/same", "d/other"]);
    let told = delete(dir.path(), OnClash::Refuse, false, &["./same"], &nothing);
    assert_eq!(told, Ok(vec!["d/other".to_owned()]));
}

#[test]
fn missing_folder_has_no_removals() {
    let dir = folder(&[]);
    fs::remove_dir(dir.path().join("d")).expect("removed");
    assert_eq!(delete(dir.path(), OnClash::Refuse, true, &[], &nothing), Ok(Vec::new()));
    fs::write(dir.path().join("d"), "a file").expect("written");
    // A dry run keeps the file, which would have been replaced.
    assert_eq!(delete(dir.path(), OnClash::Refuse, true, &[], &nothing), Ok(Vec::new()));
    let failure = delete(dir.path(), OnClash::Refuse, false, &[], &nothing).expect_err("it is a file");
    assert_eq!(failure.reason, Reason::Clash);
}

#[test]
fn removal_stops_once_its_result_is_not_awaited() {
    let dir = folder(&["d/a", "d/b"]);
    let (cancel, listed) = (Cancel::default(), ListedNames::default());
    cancel.cancel();
    let mut deletion = Deletion {
        listed: &listed,
        protects: &nothing,
        is_dry: false,
        cancel: &cancel,
        tell: &mut |name, _| panic!("{name} was removed"),
    };
    let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
    assert!(folder.delete_unlisted(&Name::new("d").expect("a name"), &mut deletion).is_err());
    assert_eq!(names(dir.path()).len(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn deep_tree_is_removed_with_a_fixed_number_of_descriptors() {
    let deep = format!("d/{}file", "x/".repeat(crate::MAX_PARTS - 2));
    for is_dry in [true, false] {
        let dir = folder(&[&deep]);
        let (listed, cancel, most, told) =
            (ListedNames::default(), Cancel::default(), std::cell::Cell::new(0), std::cell::Cell::new(0));
        let mut deletion = Deletion {
            listed: &listed,
            protects: &|_, _| {
                most.set(most.get().max(open_below(dir.path())));
                false
            },
            is_dry,
            cancel: &cancel,
            tell: &mut |name, failure| {
                assert_eq!(failure, None, "{name}");
                most.set(most.get().max(open_below(dir.path())));
                told.set(told.get() + 1);
            },
        };
        let held = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
        held.delete_unlisted(&Name::new("d").expect("a name"), &mut deletion).expect("removed");
        assert_eq!(told.get(), crate::MAX_PARTS - 1);
        assert!((2..=5).contains(&most.get()), "{} descriptors", most.get());
        assert_eq!(names(dir.path()).is_empty(), !is_dry);
    }
}

#[test]
fn folders_beyond_one_batch_are_removed_except_protected_ones() {
    let count = 2 * MAX_BATCH_BYTES / 40;
    let dir = folder(&["d/file"]);
    (0..count).for_each(|number| fs::create_dir(dir.path().join(format!("d/{number:040}"))).expect("made"));
    let protects = |name: &Name, _: bool| name.last().ends_with("00");
    let planned = delete(dir.path(), OnClash::Refuse, true, &[], &protects).expect("read");
    let removed = delete(dir.path(), OnClash::Refuse, false, &[], &protects).expect("removed");
    assert_eq!(planned, removed);
    let kept = count.div_ceil(100);
    assert_eq!((removed.len(), names(dir.path()).len()), (count + 1 - kept, kept));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Trees of files in up to three folders, of which those that end in `o` are protected.
    #[test]
    fn listed_and_protected_entries_and_their_folders_stay(
        files in prop::collection::btree_set("d/([ab]/){0,2}[xy][ot]", 0..16),
        listed in prop::collection::btree_set("[ab]|[xy][ot]", 0..4),
    ) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let dir = folder(&files);
        let before = names(dir.path());
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        let protects = |name: &Name, is_folder: bool| !is_folder && name.last().ends_with('o');
        let told = delete(dir.path(), OnClash::Refuse, false, &listed, &protects).expect("looked at");
        let stays = |name: &String| {
            let first = name["d/".len()..].split('/').next().expect("a part");
            let holds_protected = |file: &&&str| file.starts_with(name.as_str()) && file.ends_with('o');
            listed.contains(&first) || files.iter().any(|file| holds_protected(&file))
        };
        let (expected, gone): (BTreeSet<String>, BTreeSet<String>) = before.into_iter().partition(stays);
        prop_assert_eq!(names(dir.path()), expected);
        prop_assert_eq!(told, gone.iter().map(|name| name.trim_end_matches('/').to_owned()).collect::<Vec<_>>());
    }
}
