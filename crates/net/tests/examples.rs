//! The examples, run as a user runs them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Returns the example of this name. Cargo builds examples with all tests of the crate, and not with `--test`.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("a running test");
    let target = test.parent().and_then(Path::parent).expect("a target folder");
    Command::new(target.join("examples").join(name))
}

/// Process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn key(file: &Path) -> String {
    let output = example("echo").arg("key").arg(file).output().expect("the example is built");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a key").trim().to_owned()
}

#[test]
fn echo_returns_what_was_sent_over_a_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let (server_key, client_key) = (key(&file("server.pem")), key(&file("client.pem")));
    let mut serving = example("echo");
    serving.arg("serve").arg(file("server.pem")).args([&client_key, "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = Running(serving.spawn().expect("a server"));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("its address");
    let address = line.split(['[', ']']).nth(1).expect("an address").to_owned();
    let mut sending = example("echo");
    sending.arg("send").arg(file("client.pem")).args([&server_key, &address]);
    let mut client = sending.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
    client.stdin.take().expect("a pipe").write_all(b"over a stream\n").expect("it reads");
    let output = client.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "over a stream\n");
}
