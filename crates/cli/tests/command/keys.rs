//! `anabranch keys`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, anabranch};

/// A key without a private key.
const KEY: &str = "ed25519:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

fn keys(home: &Path, arguments: &[&str]) -> Ended {
    let home = home.to_str().expect("a path");
    anabranch(&[&["keys", "--keys", home], arguments].concat())
}

fn json(ended: Ended) -> Value {
    ended.with_status(0).json_lines().remove(0)
}

#[test]
fn a_key_is_made_at_first_use_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    let first = json(keys(&home, &["show", "--json"]));
    assert_eq!(json(keys(&home, &["show", "--json"])), first);
    let shown = keys(&home, &["show"]).with_status(0).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines, [first["key"].as_str().expect("text"), first["fingerprint"].as_str().expect("text")]);
    assert!(lines[0].starts_with("ed25519:") && lines[1].starts_with("SHA256:"));
}

#[cfg(unix)]
#[test]
fn a_private_key_that_others_can_read_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    keys(folder.path(), &["show"]).with_status(0);
    let file = folder.path().join("identity.pem");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
    let err = keys(folder.path(), &["show"]).with_status(1).err;
    assert!(err.contains(&format!("chmod 600 {}", file.display())), "{err}");
}

#[test]
fn authorised_keys_are_added_listed_and_removed_by_any_identifier() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = || json(keys(folder.path(), &["list", "--json"]))["authorized"].clone();
    let fingerprint = json(keys(folder.path(), &["add", KEY, "--json"]))["fingerprint"].clone();
    keys(folder.path(), &["remove", KEY]).with_status(0);
    for which in ["Anna, laptop", fingerprint.as_str().expect("text"), KEY] {
        assert!(
            keys(folder.path(), &["add", KEY, "Anna,", "laptop"])
                .with_status(0)
                .out
                .starts_with("added SHA256:")
        );
        assert!(keys(folder.path(), &["add", KEY]).with_status(0).out.contains("exists already"));
        assert_eq!(list()[0]["label"], "Anna, laptop");
        assert!(keys(folder.path(), &["list"]).with_status(0).out.contains("Anna, laptop"));
        keys(folder.path(), &["remove", which]).with_status(0);
        assert_eq!(list(), Value::Array(Vec::new()));
    }
    let err = keys(folder.path(), &["remove", "Anna"]).with_status(1).err;
    assert!(err.contains("no key, fingerprint or label `Anna`") && err.contains("keys list"), "{err}");
    assert!(keys(folder.path(), &["list"]).with_status(0).out.starts_with("no keys in "));
}

#[test]
fn hosts_are_trusted_before_the_first_connection_and_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    keys(folder.path(), &["add", "--host", "Example.org", KEY]).with_status(0);
    let hosts = json(keys(folder.path(), &["list", "--json"]))["hosts"].clone();
    assert_eq!((&hosts[0]["host"], &hosts[0]["key"]), (&Value::from("example.org:9899"), &Value::from(KEY)));
    let other = keys(folder.path(), &["show"]).with_status(0).out.lines().next().expect("a key").to_owned();
    let err = keys(folder.path(), &["add", "--host", "example.org", &other]).with_status(1).err;
    assert!(err.contains("shows a key other than before") && err.contains("known_hosts:1"), "{err}");
    keys(folder.path(), &["forget", "example.org:9899"]).with_status(0);
    let err = keys(folder.path(), &["forget", "example.org"]).with_status(1).err;
    assert!(err.contains("no key of example.org:9899"), "{err}");
}

#[test]
fn invalid_key_host_or_label_is_refused_with_an_example() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, expected) in [
        (&["add", "ssh-ed25519"][..], "43 characters of base64"),
        (&["add", KEY, "a\u{1b}[2Jb"], "printable"),
        (&["add", "--host", "a/b", KEY], "is not a host"),
        (&["forget", "a b"], "is not a host"),
        (&["add", "--host", "h", KEY, "label"], "cannot be used with"),
    ] {
        let err = keys(folder.path(), arguments).with_status(2).err;
        assert!(err.contains(expected) && !err.contains('\u{1b}'), "{arguments:?}: {err}");
    }
    fs::write(folder.path().join("authorized_keys"), "nonsense\u{1b}[2J\n").expect("written");
    let err = keys(folder.path(), &["list"]).with_status(1).err;
    assert!(err.contains("authorized_keys:1: ") && !err.contains('\u{1b}'), "{err}");
}
