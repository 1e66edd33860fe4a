//! Output that cannot be written: closed, on a full device, or with a reader that has ended.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::command;

/// State of a broken output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// The descriptor of the stream is closed.
    Closed,
    /// Each write fails: no space is left on the device.
    Full,
    /// The reader of the pipe has ended.
    NoReader,
}

const ALL: [Broken; 3] = [Broken::Closed, Broken::Full, Broken::NoReader];

/// Returns the command with a broken standard error.
fn with_err(arguments: &[&str], broken: Broken) -> Command {
    with_stream(arguments, 2, broken)
}

/// Returns the command with a broken standard output.
fn with_out(arguments: &[&str], broken: Broken) -> Command {
    with_stream(arguments, 1, broken)
}

fn with_stream(arguments: &[&str], stream: u8, broken: Broken) -> Command {
    let direct = command(arguments);
    let redirected = match broken {
        Broken::Closed => format!(r#"exec "$0" "$@" {stream}>&-"#),
        _ => r#"exec "$0" "$@""#.to_owned(),
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", &redirected]).arg(direct.get_program()).args(direct.get_args());
    shell.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(direct.get_current_dir().expect("the workspace"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let end = match broken {
        Broken::Closed => return shell,
        Broken::Full => Stdio::from(File::options().write(true).open("/dev/full").expect("/dev/full")),
        Broken::NoReader => Stdio::from(std::io::pipe().expect("a pipe").1),
    };
    if stream == 1 {
        shell.stdout(end)
    } else {
        shell.stderr(end)
    };
    shell
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A program that is ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a free UDP port of loopback. The program that gets its number binds it shortly afterwards, so the port is below the range
/// from which the system assigns ports to other tests.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let ports = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let mut free = ports.filter(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("a free port")
}

/// Waits until a server has bound this port. `bench -c` reports a closed port as an error at once.
fn wait_until_bound(port: u16) {
    let began = Instant::now();
    let local = format!(":{port:04X} ");
    while !fs::read_to_string("/proc/net/udp").expect("a table of sockets").contains(&local) {
        assert!(began.elapsed() < Duration::from_secs(60), "port {port} is not bound");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until this file exists with this content.
fn wait_for(path: &Path, content: &[u8]) {
    let began = Instant::now();
    while fs::read(path).ok().as_deref() != Some(content) {
        assert!(began.elapsed() < Duration::from_secs(60), "{} has not arrived", path.display());
        thread::sleep(Duration::from_millis(20));
    }
}

struct Files {
    dir: TempDir,
    content: Vec<u8>,
}

impl Files {
    fn new(length: usize) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        fs::write(dir.path().join("file"), &content).expect("written");
        Files { dir, content }
    }

    fn path(&self, name: &str) -> String {
        text(&self.dir.path().join(name)).to_owned()
    }

    fn wait_in(&self, folder: &str) {
        wait_for(&self.dir.path().join(folder).join("file"), &self.content);
    }
}

/// Starts a server of the folder; its output goes to the broken stream.
fn serve(files: &Files, inbox: &str, port: u16, broken: (u8, Broken)) -> Running {
    let listen = format!("127.0.0.1:{port}");
    let dir = files.path(inbox);
    let mut arguments = vec![
        "serve",
        "--dir",
        &dir,
        "--allow",
        "both",
        "--listen",
        &listen,
        "--from",
        "127.0.0.0/8",
        "--verbose",
    ];
    if broken.0 == 1 {
        arguments.pop();
        arguments.push("--json");
    }
    Running(with_stream(&arguments, broken.0, broken.1).spawn().expect("the program starts"))
}

fn ended(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

#[track_caller]
fn assert_status(output: &Output, status: i32, context: impl std::fmt::Debug) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{context:?}\nout:\n{out}\nerr:\n{err}");
    assert!(!err.contains("panicked"), "{context:?}: {err}");
}

#[test]
fn broken_standard_error_ends_no_transfer() {
    for broken in ALL {
        let files = Files::new(100_000);
        let port = free_port();
        let server = serve(&files, "inbox", port, (2, broken));
        let (file, host) = (files.path("file"), format!("127.0.0.1:{port}"));
        let sent = ended(with_err(&["send", &file, &host, "--verbose", "--retry", "10"], broken));
        assert_status(&sent, 0, ("send", broken));
        files.wait_in("inbox");
        let fetched = files.path("fetched");
        let received = ["recv", &host, "file", "--dir", &fetched, "--verbose", "--retry", "10"];
        assert_status(&ended(with_err(&received, broken)), 0, ("recv", broken));
        files.wait_in("fetched");
        drop(server);
    }
}

#[test]
fn broken_standard_output_ends_no_transfer() {
    for (broken, status) in [(Broken::Closed, 0), (Broken::Full, 1), (Broken::NoReader, 0)] {
        let files = Files::new(100_000);
        let port = free_port();
        let server = serve(&files, "inbox", port, (1, broken));
        let (file, host) = (files.path("file"), format!("127.0.0.1:{port}"));
        let sent = ended(with_out(&["send", &file, &host, "--json", "--retry", "10"], broken));
        assert_status(&sent, status, ("send", broken));
        files.wait_in("inbox");
        let again = ended(with_out(&["send", &file, &host, "--json"], broken));
        assert_status(&again, status, ("the server serves the next one", broken));
        drop(server);
    }
}

#[test]
fn reader_of_the_first_line_does_not_stop_a_transfer() {
    let files = Files::new(300_000);
    let port = free_port();
    let (file, host, inbox) = (files.path("file"), format!("127.0.0.1:{port}"), files.path("inbox"));
    let server =
        ["serve", "--dir", &inbox, "--listen", &host, "--from", "127.0.0.0/8", "--insecure", "--quiet"];
    let _server = Running(command(&server).stderr(Stdio::null()).spawn().expect("the program starts"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut sending = command(&["send", &file, &host, "--insecure", "--verbose", "--retry", "10"]);
    sending.stderr(writer.try_clone().expect("a descriptor")).stdout(writer);
    let mut child = Running(sending.spawn().expect("the program starts"));
    drop(sending);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).expect("a line");
    assert!(line.starts_with("warning: --insecure"), "{line}");
    assert_eq!(child.0.wait().expect("it ends").code(), Some(0));
    files.wait_in("inbox");
}

#[test]
fn services_continue_without_a_reader() {
    for (stream, broken) in [(1, Broken::NoReader), (1, Broken::Full), (2, Broken::Closed)] {
        let port = free_port();
        let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        target.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let (listen, to) =
            (format!("127.0.0.1:{port}"), target.local_addr().expect("an address").to_string());
        let relay = ["relay", "--listen", &listen, "--to", &to, "--link", "rate=100Mbit,delay=1ms", "--json"];
        let mut relay = Running(with_stream(&relay, stream, broken).spawn().expect("the program starts"));
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        // A line per second has failed before the last datagram passes.
        for wait in [0, 1500] {
            thread::sleep(Duration::from_millis(wait));
            let began = Instant::now();
            target.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
            loop {
                client.send_to(b"there", &listen).expect("sent");
                if target.recv(&mut [0; 16]).is_ok() {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(20), "{broken:?}: nothing passes");
            }
        }
        assert!(relay.0.try_wait().expect("a child").is_none(), "{broken:?}: the relay has ended");
    }
}

#[test]
fn bench_measures_with_broken_standard_error() {
    for broken in ALL {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let server = ["bench", "-s", "--listen", &listen, "--from", "127.0.0.0/8"];
        let _server = Running(with_err(&server, broken).spawn().expect("the program starts"));
        wait_until_bound(port);
        let client = ["bench", "-c", "127.0.0.1", "-p", &port.to_string(), "-n", "100k"];
        assert_status(&ended(with_err(&client, broken)), 0, broken);
        let full = ended(with_out(&client, Broken::Full));
        assert_status(&full, 1, "standard output is full");
        assert_status(&ended(with_out(&client, Broken::NoReader)), 0, "the reader has ended");
    }
}

#[test]
fn run_ends_well_with_broken_standard_error() {
    let run =
        ["run", "two-path", "--schemes", "cmt", "--seeds", "2", "--set", "run.duration='1 s'", "--json"];
    for broken in ALL {
        assert_status(&ended(with_err(&run, broken)), 0, broken);
    }
    // The exit status of a wrong command line does not depend on the output of its message.
    for broken in ALL {
        assert_status(&ended(with_err(&["run", "no-such-scenario"], broken)), 2, broken);
        assert_status(&ended(with_err(&["no-such-command"], broken)), 2, broken);
    }
}

#[test]
fn result_that_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let files = Files::new(10);
    let _server = serve(&files, "", port, (2, Broken::NoReader));
    let host = format!("127.0.0.1:{port}");
    let example = text(dir.path());
    let relay = format!("127.0.0.1:{}", free_port());
    let run = ["run", "two-path", "--schemes", "cmt", "--seeds", "1", "--set", "run.duration='1 s'"];
    let commands: [&[&str]; 16] = [
        &["recv", &host, "--list", "--retry", "10"],
        &["recv", &host, "--list", "--json", "--retry", "10"],
        &["recv", &host, "file", "--stdout", "--retry", "10"],
        &run,
        &[&run[..], &["--json"]].concat(),
        &["init"],
        &["init", "two-path", "--dir", example, "--force"],
        &["schemes"],
        &["schemes", "cmt", "--json"],
        &["keys", "show"],
        &["paths"],
        &["completions", "bash"],
        &[
            "relay",
            "--listen",
            &relay,
            "--to",
            "127.0.0.1:9",
            "--link",
            "rate=1Mbit,delay=1ms",
            "--for",
            "10ms",
        ],
        &["--help"],
        &["help", "run"],
        &["--version"],
    ];
    for arguments in commands {
        let full = ended(with_out(arguments, Broken::Full));
        let err = String::from_utf8_lossy(&full.stderr).into_owned();
        let status = full.status.code();
        assert!(matches!(status, Some(1 | 3)), "{arguments:?}: {status:?} {err}");
        assert!(err.contains("No space left on device"), "{arguments:?}: {err}");
        if !arguments.contains(&"--stdout") {
            let unread = ended(with_out(arguments, Broken::NoReader));
            assert_status(&unread, 0, arguments);
            assert!(!String::from_utf8_lossy(&unread.stderr).contains("standard output"), "{arguments:?}");
        }
    }
}

#[test]
fn terminal_that_hangs_up_does_not_stop_a_transfer() {
    let files = Files::new(600_000);
    let port = free_port();
    let _server = serve(&files, "inbox", port, (2, Broken::NoReader));
    let sending = command(&["send"]);
    let line = format!(
        "trap '' HUP; {} send {} 127.0.0.1:{port} --limit 1600kbit --verbose --retry 10; echo $? > {}",
        text(Path::new(sending.get_program())),
        files.path("file"),
        files.path("status")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).envs(sending.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let Ok(mut terminal) = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() else {
        println!("skipped: script is not installed");
        return;
    };
    // The terminal ends once progress is drawn on it.
    terminal.stdout.take().expect("a pipe").read_exact(&mut [0; 1]).expect("something is drawn");
    terminal.kill().expect("ended");
    terminal.wait().expect("it ends");
    wait_for(&files.dir.path().join("status"), b"0\n");
    files.wait_in("inbox");
}
