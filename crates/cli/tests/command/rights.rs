//! Rights of keys at a server, and labels in its output.

use std::fs;

use crate::protection::{Listening, Users};
use crate::support::{Ended, anabranch};

/// Adds the key of a user with options and a label.
fn authorize(users: &Users, user: &str, options: &[&str], label: &str) -> Ended {
    let (keys, key) = (users.text("bert"), users.key_of(user));
    let fixed = ["keys", "add", "--keys", &keys];
    anabranch(&[&fixed[..], options, &[&key, label]].concat())
}

fn recv(users: &Users, user: &str, address: &str, names: &[&str]) -> Ended {
    let (keys, back) = (users.text(user), users.text("back"));
    let fixed = ["recv", address, "--keys", &keys, "--dir", &back, "--path", "127.0.0.72"];
    anabranch(&[&fixed[..], names].concat())
}

#[test]
fn serve_names_the_key_at_the_beginning_and_in_each_line() {
    let users = Users::new();
    authorize(&users, "anna", &[], "Anna, laptop").with_status(0);
    let mut server = users.serve("bert", &["--allow", "both"]);
    users.send("anna", &server.address, &[]).with_status(0);
    recv(&users, "anna", &server.address, &["film.mkv"]).with_status(0);
    let fingerprint = users.fingerprint_of("anna");
    for (direction, names) in [("sent", serde_json::json!([])), ("fetched", serde_json::json!(["film.mkv"]))]
    {
        for event in ["start", "transfer", "file", "end"] {
            let line = server.event(event);
            assert_eq!(
                (&line["label"], &line["fingerprint"]),
                (&"Anna, laptop".into(), &fingerprint.clone().into())
            );
            if event == "transfer" {
                assert_eq!((&line["direction"], &line["names"]), (&direction.into(), &names));
            }
        }
    }
}

#[test]
fn others_can_only_send_unless_serve_allows_more() {
    let users = Users::new();
    authorize(&users, "anna", &[], "").with_status(0);
    let server = users.serve("bert", &[]);
    users.send("anna", &server.address, &[]).with_status(0);
    let refused = recv(&users, "anna", &server.address, &["--all"]).with_status(1);
    assert!(refused.err.contains("--allow read or both"), "{}", refused.err);
}

#[test]
fn rights_of_a_key_narrow_what_serve_allows() {
    let users = Users::new();
    let options = ["--allow", "write", "--folder", "from anna", "--quota", "1kB"];
    authorize(&users, "anna", &options, "Anna").with_status(0);
    authorize(&users, "carol", &["--allow", "read"], "Carol").with_status(0);
    let server = users.serve("bert", &["--allow", "both"]);
    users.send("anna", &server.address, &[]).with_status(0);
    assert!(users.path("inbox/from anna/film.mkv").exists() && !users.arrived());
    let replaced = fs::write(users.path("film.mkv"), "another film")
        .map(|()| users.send("anna", &server.address, &["--on-clash", "overwrite"]).with_status(3));
    assert!(replaced.expect("written").err.contains("lacks the right `overwrite`"));
    fs::write(users.path("large.mkv"), vec![1; 990]).expect("written");
    let (keys, large) = (users.text("anna"), users.text("large.mkv"));
    let full = anabranch(&["send", &large, &server.address, "--keys", &keys]).with_status(3);
    assert!(full.err.contains("quota of 1000 B"), "{}", full.err);
    let refused = recv(&users, "anna", &server.address, &["--all"]).with_status(1);
    assert!(refused.err.contains("lacks the right `read`"), "{}", refused.err);
    let refused = users.send("carol", &server.address, &[]).with_status(1);
    assert!(refused.err.contains("lacks the right `write`"), "{}", refused.err);
    recv(&users, "carol", &server.address, &["from anna"]).with_status(0);
    assert!(users.path("back/from anna/film.mkv").exists());
}

#[test]
fn rights_are_listed_and_wrong_ones_refused() {
    let users = Users::new();
    authorize(&users, "anna", &["--allow", "read,write", "--quota", "10GB"], "Anna").with_status(0);
    let listed = anabranch(&["keys", "list", "--keys", &users.text("bert")]).with_status(0);
    for option in ["read,\n", "write,\n", "quota=10GB\n"] {
        assert!(listed.out.contains(option), "{}", listed.out);
    }
    let json = anabranch(&["keys", "list", "--json", "--keys", &users.text("bert")]).with_status(0);
    assert_eq!(json.json_lines()[0]["authorized"][0]["rights"], "read,write,quota=10GB");
    let other = authorize(&users, "anna", &["--allow", "read"], "Anna").with_status(1);
    assert!(other.err.contains("keys remove SHA256:"), "{}", other.err);
    for (options, expected) in [
        (&["--allow", "overwrite"][..], "add write"),
        (&["--allow", "raed"], "it is none of read, write"),
        (&["--folder", "../x"], "`.` or `..`"),
        (&["--quota", "ten"], "`ten` is not a size"),
    ] {
        let refused = authorize(&users, "carol", options, "Carol").with_status(2);
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    let (keys, key) = (users.text("bert"), users.key_of("carol"));
    let behind =
        anabranch(&["keys", "add", "--keys", &keys, &key, "Carol", "--allow", "read"]).with_status(2);
    assert!(behind.err.contains("options go before KEY"), "{}", behind.err);
    let file = users.path("bert/authorized_keys");
    fs::write(&file, format!("# mine\nwrite,folder=/etc {} Anna\n", users.key_of("anna"))).expect("written");
    let (inbox, keys) = (users.text("inbox"), users.text("bert"));
    let refused = anabranch(&["serve", "--dir", &inbox, "--keys", &keys, "--listen", "127.0.0.71:0"]);
    let refused = refused.with_status(1);
    let place = format!("{}:2: option 2: folder is absolute", file.display());
    assert!(refused.err.contains(&place), "{}", refused.err);
}

#[test]
fn key_that_waits_for_one_transfer_follows_rights_too() {
    let users = Users::new();
    authorize(&users, "anna", &["--allow", "read"], "Anna").with_status(0);
    let (inbox, keys) = (users.text("inbox"), users.text("bert"));
    let wait = ["recv", "--all", "--json", "--dir", &inbox, "--listen", "127.0.0.71:0", "--keys", &keys];
    let mut waiting = Listening::start(&wait);
    let refused = users.send("anna", &waiting.address, &[]).with_status(1);
    assert!(refused.err.contains("lacks the right `write`"), "{}", refused.err);
    let note = waiting.event("note")["text"].as_str().expect("text").to_owned();
    assert!(note.starts_with("Anna (127.0.0.72:") && note.ends_with("has connected"), "{note}");
}
