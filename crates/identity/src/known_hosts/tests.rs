use std::fs;
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::testing::{key, set_mode, write};

fn host(text: &str) -> HostName {
    text.parse().expect("a host")
}

/// Creates a folder with a file of this text.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("known_hosts");
    write(&path, text);
    (folder, path)
}

#[test]
fn a_host_is_unknown_until_it_is_added_and_known_from_then_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/known_hosts");
    let status = |key| KnownHosts::load(&path).and_then(|hosts| hosts.check(&host("Example.org:9899"), key));
    assert_eq!(status(key(1)).expect("no file"), HostStatus::Unknown);
    KnownHosts::add(&path, &host("example.org:9899"), key(1)).expect("added");
    assert!(!KnownHosts::add(&path, &host("example.org:9899"), key(1)).expect("there"));
    assert_eq!(status(key(1)).expect("the same key"), HostStatus::Known);
    assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), 1);
    let other = KnownHosts::load(&path).expect("a file").check(&host("example.org:7"), key(2));
    assert_eq!(other.expect("another port"), HostStatus::Unknown);
}

#[test]
fn a_host_is_trusted_at_first_use_and_with_the_same_key_from_then_on() {
    let (_folder, path) = file("");
    let trust = |number| KnownHosts::trust(&path, &host("example.org:9899"), key(number));
    assert_eq!(trust(1).expect("first use"), HostStatus::Unknown);
    assert_eq!(trust(1).expect("the same key"), HostStatus::Known);
    assert!(matches!(trust(2), Err(IdentityError::Changed(_))));
    assert_eq!(KnownHosts::load(&path).expect("read").entries().count(), 1);
}

#[test]
fn another_key_is_refused_with_both_fingerprints_and_the_line() {
    let (_folder, path) = file(&format!("# mine\n\nexample.org:9899 {}\n", key(1)));
    let hosts = KnownHosts::load(&path).expect("read");
    let text = hosts.check(&host("example.org:9899"), key(2)).expect_err("changed").to_string();
    for part in [
        key(1).fingerprint().to_string(),
        key(2).fingerprint().to_string(),
        format!("{}:3", path.display()),
        "anabranch keys forget example.org:9899".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    // Another process that saw another key first does not add its own.
    let error = KnownHosts::add(&path, &host("example.org:9899"), key(2)).expect_err("changed");
    assert!(matches!(error, IdentityError::Changed(changed) if changed.line == 3));
}

#[test]
fn a_host_may_have_several_keys() {
    let (_folder, path) = file(&format!("h:1 {}\nh:1 {}", key(1), key(2)));
    let hosts = KnownHosts::load(&path).expect("read");
    assert_eq!(hosts.check(&host("h:1"), key(2)).expect("one of them"), HostStatus::Known);
    assert!(hosts.check(&host("h:1"), key(3)).is_err());
}

#[test]
fn forgetting_a_host_leaves_every_other_line_as_it_is() {
    let others = format!("# a note\r\n  i:1   {}  \n\n#last", key(2));
    let (_folder, path) = file(&format!("h:1 {}\n{others}", key(1)));
    assert_eq!(KnownHosts::forget(&path, &host("h:1")).expect("changed"), 1);
    assert_eq!(fs::read_to_string(&path).expect("a file"), others);
    assert_eq!(KnownHosts::forget(&path, &host("h:1")).expect("no change"), 0);
    KnownHosts::add(&path, &host("j:1"), key(3)).expect("added");
    assert_eq!(fs::read_to_string(&path).expect("a file"), format!("{others}\nj:1 {}\n", key(3)));
}

#[test]
fn a_wrong_line_is_named_and_its_text_is_not_shown() {
    let long = format!("h:1 {}", "x".repeat(2000));
    for (line, reason) in [
        ("h:1", "expected `HOST:PORT KEY`"),
        ("h:1 ed25519:AA and more", "expected `HOST:PORT KEY`"),
        ("h ed25519:AA", "a host is a name or an address"),
        ("h:1 ssh-ed25519:\u{1b}[2J", "a key is `ed25519:`"),
        (&long, "a line has at most 1024 bytes"),
    ] {
        let (_folder, path) = file(&format!("h:1 {}\n{line}\n", key(1)));
        let text = KnownHosts::load(&path).expect_err(line).to_string();
        assert!(text.contains(&format!("{}:2: ", path.display())) && text.contains(reason), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn file_is_refused_if_binary_too_long_or_writable_by_others() {
    let (_folder, path) = file("");
    fs::write(&path, [0xFF, 0xFE]).expect("written");
    assert!(KnownHosts::load(&path).expect_err("no text").to_string().contains("UTF-8"));
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
    assert!(matches!(KnownHosts::load(&path), Err(IdentityError::TooLong { .. })));
    assert!(KnownHosts::load(path.parent().expect("a folder")).is_err(), "a folder is not a file");
    #[cfg(unix)]
    {
        write(&path, "");
        set_mode(&path, 0o664);
        let text = KnownHosts::load(&path).expect_err("loose").to_string();
        assert!(text.contains("mode 664") && text.contains("chmod go-w"), "{text}");
        assert!(KnownHosts::add(&path, &host("h:1"), key(1)).is_err(), "nor is it written");
    }
}

#[test]
fn a_file_that_is_full_stays_as_it_is() {
    let (_folder, path) = file(&"#".repeat(1 << 20));
    assert!(matches!(KnownHosts::add(&path, &host("h:1"), key(1)), Err(IdentityError::TooLong { .. })));
    assert_eq!(fs::metadata(&path).expect("a file").len(), 1 << 20);
}

#[test]
fn concurrent_additions_of_several_writers_are_all_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("known_hosts");
    thread::scope(|scope| {
        for writer in 1..9_u8 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..8_u8 {
                    KnownHosts::add(path, &host(&format!("w{writer}-{number}:1")), key(writer))
                        .expect("added");
                    // All writers compete for this host.
                    let _ = KnownHosts::add(path, &host("h:1"), key(writer));
                }
            });
        }
    });
    let hosts = KnownHosts::load(&path).expect("read");
    assert_eq!(hosts.entries().filter(|entry| entry.host == host("h:1")).count(), 1);
    assert_eq!(hosts.entries().count(), 65);
    let files: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|file| file.expect("a file").file_name())
        .collect();
    assert_eq!(files.len(), 2, "no drafts are left: {files:?}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_when_the_file_is_changed() {
    let (folder, path) = file("");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    KnownHosts::add(&link, &host("h:1"), key(1)).expect("added");
    assert!(link.is_symlink());
    assert_eq!(KnownHosts::load(&path).expect("read").entries().count(), 1);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in r"([ -~\t\u{1b}\u{202e}]{0,60}\n?|a:1 ed25519:[A-Za-z0-9+/]{43}\n){0,6}") {
        for (_, entry) in trust_file::parse(Path::new("f"), &text, read).unwrap_or_default() {
            prop_assert_eq!(read(&entry.to_string()), Ok(entry));
        }
    }
}
