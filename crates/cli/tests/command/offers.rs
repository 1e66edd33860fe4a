//! Offers with a one-time code that end before the files are transferred.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use crate::protection::Users;
use crate::support::{command, signal};

/// `send --code` with its text for people.
struct Offer {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
    /// Argument CODE@HOST:PORT.
    at: String,
}

impl Offer {
    fn start(users: &Users, more: &[&str]) -> Self {
        let (keys, film) = (users.text("bert"), users.text("film.mkv"));
        let fixed = ["send", "--code", &film, "--listen", "127.0.0.75:0", "--keys", &keys];
        let mut child = piped(&[&fixed[..], more].concat());
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let err = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut offer = Offer { child, out, err, at: String::new() };
        // The second line of the code's text is the command of the receiver.
        let mut text = String::new();
        for _ in 0..2 {
            offer.out.read_line(&mut text).expect("a line");
        }
        offer.at = text.trim_end().rsplit(' ').next().expect("CODE@HOST").to_owned();
        offer
    }

    /// Presses Ctrl-C and returns the rest of standard error.
    fn interrupted(&mut self) -> String {
        signal(self.child.id(), "INT");
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).expect("text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130), "{rest}");
        rest
    }

    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(self.err.read_line(&mut line).expect("a line") > 0, "no {text}");
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn piped(arguments: &[&str]) -> Child {
    command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn receive(users: &Users, at: &str, more: &[&str]) -> Child {
    let (keys, inbox) = (users.text("anna"), users.text("inbox"));
    let fixed = ["recv", at, "--dir", &inbox, "--keys", &keys, "--path", "127.0.0.76", "--yes"];
    piped(&[&fixed[..], more].concat())
}

#[test]
fn interrupted_offer_without_receiver_reports_unused_code() {
    let users = Users::new();
    let mut offer = Offer::start(&users, &[]);
    let said = offer.interrupted();
    let reason = "interrupted: no receiver has used the code, so nothing was transferred\n";
    assert!(said.contains(reason), "{said}");
    assert!(said.contains("the code is no longer valid: start it again for another one"), "{said}");
    assert!(!said.contains("received blocks") && !said.contains("0 of 0 files"), "{said}");
}

#[test]
fn interrupted_offer_after_refusal_reports_that_nothing_was_transferred() {
    let users = Users::new();
    let mut offer = Offer::start(&users, &[]);
    let refused = receive(&users, &offer.at, &["--max", "1B"]).wait_with_output().expect("it ends");
    assert_eq!(refused.status.code(), Some(1));
    offer.wait_for("still waiting");
    let said = offer.interrupted();
    assert!(said.contains("the receiver left before it accepted the files"), "{said}");
    assert!(said.contains("the code is no longer valid: start it again for another one"), "{said}");
}

#[test]
fn interrupted_transfer_by_code_asks_for_the_new_code() {
    let users = Users::new();
    fs::write(users.path("film.mkv"), vec![7; 30_000_000]).expect("written");
    let mut offer = Offer::start(&users, &["--limit", "8Mbit"]);
    let mut receiver = receive(&users, &offer.at, &["--json"]);
    let mut events = BufReader::new(receiver.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("\"begin\"") {
        line.clear();
        assert!(events.read_line(&mut line).expect("a line") > 0, "the transfer begins");
    }
    let said = offer.interrupted();
    let _ = receiver.kill();
    let _ = receiver.wait();
    assert!(said.contains("interrupted: 0 of 1 file"), "{said}");
    assert!(
        said.contains("received blocks are kept: start it again and give the receiver the new code"),
        "{said}"
    );
    assert!(said.contains("the code is no longer valid"), "{said}");
}
