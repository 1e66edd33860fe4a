use std::fs;
use std::process::Command;
use std::thread;

use super::*;
use crate::testing::{mode, set_mode, write};

#[test]
fn key_is_created_once_with_private_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/anabranch/identity.pem");
    assert!(KeyPair::load(&path).expect("no file").is_none());
    let first = KeyPair::load_or_create(&path).expect("made").public();
    assert_eq!(KeyPair::load_or_create(&path).expect("read").public(), first);
    assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("a folder").count(), 1);
    #[cfg(unix)]
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
}

#[test]
fn processes_that_make_a_key_at_the_same_time_get_the_same_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("identity.pem");
    let keys: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| KeyPair::load_or_create(&path).expect("made").public())).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("identity.pem");
    let public = KeyPair::load_or_create(&path).expect("made").public();
    for loose in [0o640, 0o604, 0o660, 0o601] {
        set_mode(&path, loose);
        let text = KeyPair::load_or_create(&path).expect_err("loose").to_string();
        assert!(text.contains(&format!("chmod 600 {}", path.display())), "{text}");
    }
    set_mode(&path, 0o400);
    assert_eq!(KeyPair::load(&path).expect("tight").expect("a key").public(), public);
}

#[test]
fn a_damaged_key_is_named_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("identity.pem");
    let rsa = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    for text in ["", "abc", rsa, "-----BEGIN PRIVATE KEY-----\nAAAA\n"] {
        write(&path, text);
        let error = KeyPair::load_or_create(&path).expect_err(text).to_string();
        assert!(error.contains("restore it") && error.contains("identity.pem"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("there"), text);
    }
    write(&path, &"A".repeat(16 * 1024 + 1));
    assert!(matches!(KeyPair::load(&path), Err(IdentityError::TooLong { .. })));
}

#[test]
fn the_private_half_is_not_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("identity.pem");
    let pair = KeyPair::load_or_create(&path).expect("made");
    assert_eq!(format!("{pair:?}"), format!("KeyPair {{ public: {}, .. }}", pair.public()));
    let pem = fs::read_to_string(&path).expect("there");
    let error = IdentityError::content(&path, "damaged");
    assert!(!format!("{error:?}").contains(pem.lines().nth(1).expect("three lines")));
}

/// Checks with OpenSSL, if it is installed, that it reads the file and finds the same public key.
#[test]
fn another_implementation_reads_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("identity.pem");
    let pair = KeyPair::load_or_create(&path).expect("made");
    let openssl =
        Command::new("openssl").args(["pkey", "-pubout", "-outform", "DER", "-in"]).arg(&path).output();
    let Ok(output) = openssl else { return };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, pair.public().to_spki());
}
