//! Messages about peers that do not answer, and about Ctrl-C.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{anabranch, command, signal};

/// A running program with its standard error.
struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut child = command(arguments).stderr(Stdio::piped()).spawn().expect("the program starts");
        let err = BufReader::new(child.stderr.take().expect("a pipe"));
        Running { child, err }
    }

    /// Reads lines up to the one that contains this part.
    fn line(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.err.read_line(&mut line).expect("a line") > 0, "it ended without `{part}`");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Sends Ctrl-C and returns the further messages.
    fn interrupt(mut self) -> String {
        signal(self.child.id(), "INT");
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).expect("text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130), "{rest}");
        rest
    }
}

fn has_part(dir: &Path) -> bool {
    let names = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    names.into_iter().any(|name| name.to_string_lossy().ends_with(".anabranch-part"))
}

#[test]
fn after_ctrl_c_both_sides_print_how_to_resume() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, inbox) = (folder.path().join("my film"), folder.path().join("inbox"));
    fs::create_dir(&inbox).expect("made");
    fs::write(&file, vec![7; 20_000_000]).expect("written");
    let (file, dir) = (file.to_str().expect("a path"), inbox.to_str().expect("a path"));
    let mut server =
        Running::start(&["serve", "--dir", dir, "--from", "127.0.0.0/8", "--listen", "127.0.0.61:0"]);
    let line = server.line("serving ");
    let peer = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let sender = Running::start(&["send", file, &peer, "--path", "127.0.0.62", "--limit", "20Mbit"]);
    let since = Instant::now();
    while !has_part(&inbox) {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing arrives");
        thread::sleep(Duration::from_millis(10));
    }
    let said = sender.interrupt();
    assert!(said.contains("received blocks are kept: start it again to resume\n"), "{said}");
    let again = format!("  anabranch send '{file}' {peer} --path 127.0.0.62 --limit 20Mbit\n");
    assert!(said.ends_with(&again), "{said}");
    let told = server.line("the peer stopped");
    assert!(told.contains("; received blocks are kept, and the peer can resume"), "{told}");
    assert!(!told.contains("lost") && !told.contains("open a new"), "{told}");
    server.interrupt();
}

#[test]
fn missing_answer_is_reported_within_the_given_time() {
    let silent = UdpSocket::bind("127.0.0.63:0").expect("a socket");
    let peer = silent.local_addr().expect("bound").to_string();
    let arguments = ["send", "Cargo.toml", &peer, "--path", "127.0.0.62", "--connect-timeout", "3"];
    let err = anabranch(&arguments).with_status(1).err;
    for expected in [
        format!("connecting to {peer}: 1 of 1 path tried, 1 s of 3 s\n"),
        format!("{peer}: no answer arrived within 3 s"),
    ] {
        assert!(err.contains(&expected), "no `{expected}` in:\n{err}");
    }
}

#[test]
fn answer_without_protection_is_believed_after_three_attempts() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_str().expect("a path");
    let listen = ["--insecure", "--from", "127.0.0.0/8", "--listen", "127.0.0.65:0"];
    let mut server = Running::start(&[&["serve", "--dir", path][..], &listen].concat());
    let line = server.line("serving ");
    let peer = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let err = anabranch(&["send", "Cargo.toml", &peer, "--path", "127.0.0.62"]).with_status(1).err;
    let reason = "the association could not be protected: the peer does not protect its packets";
    assert_eq!(err.matches(reason).count(), 2, "once as a note and once as the error:\n{err}");
    assert!(err.contains(": trying again for up to"), "{err}");
    server.interrupt();
}

#[test]
fn invalid_options_are_reported_before_encryption() {
    let taken = UdpSocket::bind("127.0.0.64:0").expect("a socket");
    let port = taken.local_addr().expect("bound").port().to_string();
    let busy = ["bench", "-s", "--from", "127.0.0.0/8", "--listen", "127.0.0.64", "-p", &port];
    let err = anabranch(&busy).with_status(1).err;
    assert!(err.contains(&format!("127.0.0.64:{port} is in use; ")), "{err}");
    assert!(err.contains("--listen 127.0.0.64:PORT") && !err.contains("encrypted"), "{err}");
    let twice = ["bench", "-s", "--insecure", "--listen", "127.0.0.64:7", "-p", "8"];
    let err = anabranch(&twice).with_status(2).err;
    assert!(err.contains("every --listen already names a port"), "{err}");
    let scheme = ["send", "Cargo.toml", "127.0.0.64", "--path", "127.0.0.62", "--scheme", "cmtt"];
    let err = anabranch(&scheme).with_status(2).err;
    assert!(err.contains("did you mean `cmt`") && !err.contains("encrypted"), "{err}");
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().to_str().expect("a path");
    let serve = ["serve", "--dir", dir, "--insecure", "--listen", &format!("127.0.0.64:{port}")];
    let err = anabranch(&serve).with_status(1).err;
    assert!(err.contains("is in use") && !err.contains("content is not encrypted"), "{err}");
}

#[test]
fn negative_number_of_seeds_is_refused_with_the_remedy() {
    let err = anabranch(&["run", "scenarios/two-path.toml", "--seeds", "-3"]).with_status(2).err;
    assert!(
        err.contains("a seed is not negative; write a count such as 20") && !err.contains("-- -3"),
        "{err}"
    );
}
