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

/// Folder with a key pair for each end, and their public keys.
struct Keys {
    folder: tempfile::TempDir,
    server: String,
    client: String,
}

impl Keys {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key =
            |file: &str| output(example(name).arg("key").arg(folder.path().join(file))).trim().to_owned();
        let (server, client) = (key("server.pem"), key("client.pem"));
        Keys { folder, server, client }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns the standard output of a command that succeeds.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("the example is built");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Starts a server, and returns the address in its first line.
fn start(server: &mut Command) -> (Running, Lines, String) {
    let mut child = server.stdout(Stdio::piped()).spawn().expect("the example is built");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("text");
    let address = line.split(['[', ']']).nth(1).expect("an address").to_owned();
    (Running(child), lines, address)
}

type Lines = std::io::Lines<BufReader<std::process::ChildStdout>>;

#[test]
fn echo_returns_what_was_sent_over_a_stream() {
    let keys = Keys::new("echo");
    let mut serve = example("echo");
    serve.arg("serve").arg(keys.file("server.pem")).args([&keys.client, "127.0.0.1:0"]);
    let (_server, _, address) = start(&mut serve);
    let mut sending = example("echo");
    sending.arg("send").arg(keys.file("client.pem")).args([&keys.server, &address]);
    let mut client = sending.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a client");
    client.stdin.take().expect("a pipe").write_all(b"over a stream\n").expect("it reads");
    let output = client.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "over a stream\n");
}

#[test]
fn chat_passes_the_lines_of_a_member_to_the_others() {
    let keys = Keys::new("chat");
    let mut serve = example("chat");
    serve.arg("serve").arg(keys.file("server.pem")).args(["127.0.0.1:0", &keys.client]);
    let (_server, _, address) = start(&mut serve);
    let join = |name: &str| {
        let mut join = example("chat");
        join.arg("join").arg(keys.file("client.pem")).args([&keys.server, &address, name]);
        let mut child = Running(join.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a member"));
        let lines = BufReader::new(child.0.stdout.take().expect("a pipe")).lines();
        (child.0.stdin.take().expect("a pipe"), lines.map(|line| line.expect("text")), child)
    };
    let (mut anna, mut heard_by_anna, _anna) = join("Anna");
    assert_eq!(heard_by_anna.next().as_deref(), Some("welcome, members here: 1"));
    let (berta, mut heard_by_berta, _berta) = join("Berta");
    assert_eq!(heard_by_berta.next().as_deref(), Some("welcome, members here: 2"));
    assert_eq!(heard_by_anna.next().as_deref(), Some("Berta has joined"));
    anna.write_all(b"hello\n").expect("it reads");
    assert_eq!(heard_by_berta.next().as_deref(), Some("Anna: hello"));
    drop(berta);
    assert_eq!(heard_by_berta.next(), None, "a member that leaves hears no more");
    assert_eq!(heard_by_anna.next().as_deref(), Some("Berta has left"));
}

#[test]
fn file_gets_files_of_the_folder_and_no_others() {
    let keys = Keys::new("file");
    let folder = keys.file("served");
    std::fs::create_dir(&folder).expect("created");
    let large: Vec<u8> = (0..300_000).map(|index: u32| (index % 251) as u8).collect();
    std::fs::write(folder.join("large"), &large).expect("written");
    std::fs::write(folder.join("empty"), "").expect("written");
    let mut serve = example("file");
    serve.arg("serve").arg(keys.file("server.pem")).arg(&keys.client).arg(&folder).arg("127.0.0.1:0");
    let (_server, _, address) = start(&mut serve);
    let into = tempfile::tempdir().expect("a folder");
    let get = |names: &[&str]| {
        let mut get = example("file");
        get.arg("get").arg(keys.file("client.pem")).args([&keys.server, &address]).args(names);
        get.current_dir(into.path()).output().expect("the example is built")
    };
    let done = get(&["large", "empty"]);
    assert!(done.status.success(), "{done:?}");
    assert!(std::fs::read(into.path().join("large")).expect("stored") == large);
    assert_eq!(std::fs::read(into.path().join("empty")).expect("stored"), b"");
    // The key file is beside the folder.
    for name in ["missing", "..", "../server.pem"] {
        let done = get(&[name]);
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && error.contains("the server has no file"), "{name}: {error}");
    }
}

#[test]
fn datagrams_arrive_or_are_abandoned() {
    let keys = Keys::new("datagrams");
    let mut receive = example("datagrams");
    receive.arg("receive").arg(keys.file("server.pem")).args([&keys.client, "127.0.0.1:0"]);
    let (_receiver, mut lines, address) = start(&mut receive);
    let mut send = example("datagrams");
    send.arg("send").arg(keys.file("client.pem")).args([&keys.server, &address, "20"]);
    let sent = output(&mut send);
    let number = |text: &str| text.split(' ').find_map(|word| word.parse::<u32>().ok());
    let abandoned = sent.strip_prefix("20 sent, ").and_then(number).expect("a number");
    let arrived = lines.next().expect("a line").expect("text");
    // A message may be abandoned after it has arrived, before its SACK has.
    assert!(number(&arrived).expect("a number") + abandoned >= 20, "{sent}{arrived}");
}

#[test]
fn scheduler_of_the_user_delivers_all_data() {
    let text = output(&mut example("scheduler"));
    assert!(text.contains("received: 16384000 bytes"), "{text}");
}

#[test]
fn driver_without_tokio_gets_its_message_back() {
    assert_eq!(output(&mut example("driver")), "echo: over one path\n");
}
