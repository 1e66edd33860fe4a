use std::fs;

use super::*;
use crate::testing::{key, write};

fn entry(byte: u8, label: &str) -> AuthorizedKey {
    AuthorizedKey { rights: Rights::default(), key: key(byte), label: label.parse().expect("a label") }
}

#[test]
fn keys_are_added_once_and_removed_by_key_or_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("authorized_keys");
    assert!(AuthorizedKeys::add(&path, &entry(1, "Anna's laptop")).expect("added"));
    assert!(AuthorizedKeys::add(&path, &entry(2, "")).expect("added"));
    assert!(!AuthorizedKeys::add(&path, &entry(1, "another name")).expect("there"));
    let keys = AuthorizedKeys::load(&path).expect("read");
    assert_eq!(keys.entries().cloned().collect::<Vec<_>>(), [entry(1, "Anna's laptop"), entry(2, "")]);
    let removed =
        AuthorizedKeys::remove(&path, |entry| entry.label.as_str() == "Anna's laptop").expect("changed");
    assert_eq!(removed, 1);
    assert_eq!(fs::read_to_string(&path).expect("a file"), format!("{}\n", key(2)));
}

#[test]
fn byte_order_mark_before_the_first_key_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("authorized_keys");
    assert!(AuthorizedKeys::add(&path, &entry(1, "")).expect("added"));
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(&path, format!("\u{feff}{text}")).expect("written");
    let keys = AuthorizedKeys::load(&path).expect("read");
    assert_eq!(keys.entries().cloned().collect::<Vec<_>>(), [entry(1, "")]);
    assert!(AuthorizedKeys::add(&path, &entry(2, "")).expect("added"));
    assert_eq!(AuthorizedKeys::remove(&path, |other| other.key == entry(1, "").key).expect("changed"), 1);
}

#[test]
fn invalid_line_is_an_error_and_not_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("authorized_keys");
    for (line, reason) in [
        (format!("{} a\u{1b}[2Jb", key(1)), "printable"),
        (format!("{} {}", key(1), "x".repeat(129)), "at most 128 bytes"),
        ("Anna ed25519:AA".to_owned(), "a key is"),
        (format!("write,overwrit {} Anna", key(1)), "option 2: it is none of read, write"),
        ("write ssh-ed25519 AAAA".to_owned(), "a key is"),
    ] {
        write(&path, &format!("{}\n\n# three\n{line}\n", key(2)));
        let text = AuthorizedKeys::load(&path).expect_err(reason).to_string();
        assert!(text.contains(&format!("{}:4: ", path.display())) && text.contains(reason), "{text}");
    }
}

#[test]
fn rights_precede_the_key_and_are_written_as_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("authorized_keys");
    let line = format!("read,write,folder=\"a b\",quota=10GB {} Anna, laptop", key(1));
    write(&path, &format!("{line}\n{}\n", key(2)));
    let keys = AuthorizedKeys::load(&path).expect("read");
    let entries: Vec<_> = keys.entries().cloned().collect();
    assert_eq!(entries[0].to_string(), line);
    assert_eq!(entries[0].rights.folder.as_deref(), Some("a b"));
    assert_eq!(entries[1], entry(2, ""));
}
