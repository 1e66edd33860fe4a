//! `--pcap`, `--trace`, `--qlog` and `--metrics` of commands on real sockets.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ended, anabranch, command, scrape, short_run, workspace};

/// Limit that exceeds the time of all commands, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// `anabranch bench -s` at an address, ended when dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(host: &str, more: &[&str]) -> Server {
        let listen = format!("{host}:0");
        let mut command = command(&[&["bench", "-s", "--listen", &listen], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("listening on ").expect("where it listens").to_owned();
        // Further output is read, so that the program does not block.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn columns(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().next().expect("a header").to_owned()
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_transfer_leaves_a_capture_traces_like_the_simulators_and_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pcap, trace, qlog] = ["c.pcapng", "trace", "events.sqlog"].map(|name| folder.path().join(name));
    let server = Server::start("127.0.4.1", &["--insecure"]);
    let outputs =
        ["--pcap", text(&pcap), "--snaplen", "full", "--trace", text(&trace), "--qlog", text(&qlog)];
    let path = ["--insecure", "--path", "127.0.4.2", "-n", "1M", "--scheme", "cmt"];
    anabranch(&[&["bench", "-c", &server.address], &path[..], &outputs].concat()).with_status(0);

    let simulated = folder.path().join("simulated");
    short_run(&["--schemes", "cmt", "--seeds", "1,", "--trace", text(&simulated)]).with_status(0);
    let simulated = simulated.join("cmt-seed1");
    let flow = std::fs::read_dir(&simulated).expect("a folder").find_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        name.strip_suffix("-paths.csv").map(str::to_owned)
    });
    let flow = flow.expect("a flow");
    for (here, there) in [
        ("association-1-paths.csv", format!("{flow}-paths.csv")),
        ("association-1-decisions.csv", format!("{flow}-decisions.csv")),
        ("packets.csv", "packets.csv".to_owned()),
    ] {
        assert_eq!(columns(&trace.join(here)), columns(&simulated.join(there)), "{here}");
    }

    let explained = anabranch(&["explain", text(&trace)]).with_status(0);
    assert!(explained.out.starts_with("cmt, profile "), "{}", explained.out);
    assert!(explained.out.contains("path-1 was given"), "{}", explained.out);
    assert!(!explained.out.contains("the run counted"), "the sums disagree: {}", explained.out);
    let json = anabranch(&["explain", "--json", text(&trace)]).with_status(0).json_lines();
    assert!(json[0]["flows"][0]["paths"][0]["sent_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20));

    let events = std::fs::read_to_string(&qlog).expect("events");
    assert!(
        events.starts_with("\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\""),
        "{events:.200}"
    );
    assert!(events.lines().skip(1).all(|line| line.starts_with("\u{1e}{\"time\":")));
    let capture = std::fs::read(&pcap).expect("a capture");
    assert!(capture.len() > 1 << 20 && capture.starts_with(&[0x0A, 0x0D, 0x0D, 0x0A]));
}

#[test]
fn capture_without_protection_keeps_headers_by_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().join("c.pcapng");
    let server = Server::start("127.0.4.9", &["--insecure"]);
    let path = ["--insecure", "--path", "127.0.4.10", "-n", "4M", "--pcap", text(&pcap)];
    anabranch(&[&["bench", "-c", &server.address], &path[..]].concat()).with_status(0);
    let size = std::fs::metadata(&pcap).expect("a capture").len();
    assert!((10_000..2 << 20).contains(&size), "{size} bytes for 4 MiB of payload");
}

#[test]
fn snap_length_that_cuts_headers_is_refused() {
    for command in [&["run", "two-path"][..], &["bench", "-c", "127.0.0.1"], &["send", "x", "127.0.0.1"]] {
        let ended = anabranch(&[command, &["--pcap", "c", "--snaplen", "40"]].concat()).with_status(2);
        assert!(ended.err.contains("64 bytes or more") && ended.err.contains("`full`"), "{}", ended.err);
    }
}

#[test]
fn a_killed_command_leaves_files_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pcap, trace] = ["c.pcapng", "trace"].map(|name| folder.path().join(name));
    let server = Server::start("127.0.4.3", &["--insecure"]);
    let outputs = ["--pcap", text(&pcap), "--trace", text(&trace)];
    let long = ["--insecure", "--path", "127.0.4.4", "-t", "60", "-b", "200M"];
    let mut client = command(&[&["bench", "-c", &server.address], &long[..], &outputs].concat());
    let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let packets = trace.join("packets.csv");
    eventually(|| std::fs::metadata(&packets).ok().filter(|file| file.len() > 100_000));
    client.kill().expect("killed");
    client.wait().expect("gone");
    let explained = anabranch(&["explain", text(&trace)]).with_status(0);
    assert!(explained.out.contains("the run did not end"), "{}", explained.out);
    assert!(explained.out.contains("path-1 was given"), "{}", explained.out);
    let Ok(tshark) = Command::new("tshark").args(["-r", text(&pcap), "-c", "200"]).output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    assert!(String::from_utf8_lossy(&tshark.stdout).lines().count() >= 200);
}

#[test]
fn metrics_can_be_scraped_while_data_moves() {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let server = Server::start("127.0.4.5", &["--metrics", &port.to_string()]);
    let long = ["bench", "-c", &server.address, "--path", "127.0.4.6", "-t", "60", "-b", "20M"];
    let mut client = command(&long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let page = eventually(|| {
        scrape(port).filter(|page| {
            let delivered = "anabranch_association_delivered_bytes_total{";
            let mut values = page.lines().filter(|line| line.starts_with(delivered));
            values.any(|line| {
                line.rsplit(' ').next().is_some_and(|value| value.parse::<f64>().is_ok_and(|v| v > 1e5))
            })
        })
    });
    let _ = client.kill();
    let _ = client.wait();
    assert!(page.contains("remote=\"127.0.4.6:"), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
}

#[test]
fn unwritable_file_or_used_port_is_reported_before_connecting() {
    let ask = |options: &[&str]| -> Ended {
        anabranch(&[&["bench", "-c", "127.0.4.7:1", "--path", "127.0.4.8"], options].concat())
    };
    let ended = ask(&["--pcap", "/nowhere/at/all.pcapng"]).with_status(1);
    assert!(ended.err.contains("/nowhere/at/all.pcapng: "), "{}", ended.err);
    let ended = ask(&["--metrics", "localhost"]).with_status(2);
    assert!(ended.err.contains("--metrics") && ended.err.contains("such as 9464"), "{}", ended.err);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = ask(&["--metrics", &address]).with_status(1);
    assert!(ended.err.contains(&address) && ended.err.contains("no other program"), "{}", ended.err);
}

#[test]
fn systemd_accepts_the_units() {
    for name in ["anabranch-serve", "anabranch-forward", "anabranch-gateway"] {
        let unit = workspace().join(format!("contrib/systemd/{name}.service"));
        let text = std::fs::read_to_string(&unit).expect("the unit");
        for line in
            ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet="]
        {
            assert!(text.lines().any(|found| found == line), "{name}: {line}");
        }
        // A drop-in has further options as words, so the variable has neither quotes nor braces.
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("what it starts");
        let variable = start.rsplit(' ').next().expect("a word");
        assert!(["$ANABRANCH_ACCESS", "$ANABRANCH_OPTIONS"].contains(&variable), "{start}");
        // The program is not installed at the unit's path, which may be the only error.
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join(format!("{name}.service"));
        let there = text.replace("/usr/local/bin/anabranch", env!("CARGO_BIN_EXE_anabranch"));
        std::fs::write(&copy, there).expect("a copy");
        let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&copy).output() else {
            println!("skipped: systemd-analyze is not installed");
            return;
        };
        let errors = String::from_utf8_lossy(&verified.stderr);
        assert!(!errors.lines().any(|line| line.contains(name)), "{errors}");
    }
}

#[test]
fn commands_of_the_units_accept_their_options() {
    let drop_ins =
        [("anabranch-forward", "-D 1080 gateway.example.org"), ("anabranch-gateway", "--allow *:443")];
    for (name, options) in drop_ins {
        let unit = workspace().join(format!("contrib/systemd/{name}.service"));
        let text = std::fs::read_to_string(&unit).expect("the unit");
        let start = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/anabranch "))
            .expect("a command");
        let line = start.replace("$ANABRANCH_OPTIONS", options) + " --no-such-option";
        let ended = anabranch(&line.split(' ').collect::<Vec<_>>()).with_status(2);
        assert!(ended.err.contains("--no-such-option"), "{name}: {}", ended.err);
    }
}
