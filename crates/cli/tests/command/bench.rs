//! `anabranch bench`.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Stdio};

use anabranch_tests::middle::{Fate, Middle, forged_abort};
use serde_json::Value;

use crate::support::{Ended, anabranch, command, signal};

/// A running server with its address.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    addresses: Vec<String>,
}

impl Server {
    fn start(hosts: &[&str], more: &[&str]) -> Server {
        let listen = hosts.iter().flat_map(|host| ["--listen".to_owned(), format!("{host}:0")]);
        let listen: Vec<String> = listen.collect();
        let listen: Vec<&str> = listen.iter().map(String::as_str).collect();
        let mut command = command(&[&["bench", "-s", "--from", "127.0.0.0/8"], &listen[..], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let addresses = line.trim_end().strip_prefix("listening on ").expect("where it listens");
        let addresses = addresses.split(", ").map(str::to_owned).collect();
        Server { child, out, addresses }
    }

    fn client(&self, more: &[&str]) -> Ended {
        anabranch(&[&["bench", "-c", &self.addresses[0]], more].concat())
    }

    /// Returns output and exit status, after the server's only test.
    fn ended(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (rest, self.child.wait().expect("it ends").code())
    }

    fn stop(self) -> (String, Option<i32>) {
        signal(self.child.id(), "INT");
        self.ended()
    }
}

/// Ends a server that its test has not ended, also if the test fails.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).expect("JSON")
}

#[test]
fn both_ends_report_equal_bytes_over_two_paths() {
    let server = Server::start(&["127.0.0.41", "127.0.0.42"], &["-1"]);
    let to = server.addresses.clone();
    let paths = ["--path", "127.0.0.43", "--path", "127.0.0.44", "--to", &to[0], "--to", &to[1]];
    let ended = server
        .client(&[&paths[..], &["-n", "3M", "-l", "10000", "-P", "3", "--scheme", "cmt", "-J"]].concat());
    let json = whole(&ended.with_status(0));
    let listed = json["start"]["paths"].as_array().expect("paths");
    let ends: Vec<_> = listed.iter().map(|path| (path["local"].clone(), path["remote"].clone())).collect();
    assert_eq!(
        ends,
        [("127.0.0.43".into(), to[0].clone().into()), ("127.0.0.44".into(), to[1].clone().into())]
    );
    let forward = &json["end"]["forward"];
    for side in ["sender", "receiver"] {
        assert_eq!(forward[side]["bytes"], 3 << 20, "{side}");
        assert_eq!(forward[side]["messages"], (3_u64 << 20).div_ceil(10_000), "{side}");
        assert!(forward[side]["bits_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{side}");
    }
    assert!(json["end"]["reverse"].is_null());
    // Every path carried data, and the intervals are complete: a chunk has sixteen bytes besides its data.
    let delivered = |path: usize| -> u64 {
        let rows = json["intervals"].as_array().expect("intervals").iter();
        rows.map(|interval| interval["paths"][path]["delivered_bytes"].as_u64().expect("bytes")).sum()
    };
    assert!(delivered(0) > 0 && delivered(1) > 0);
    assert!(delivered(0) + delivered(1) >= 3 << 20);
    let (out, status) = server.ended();
    assert_eq!(status, Some(0));
    assert!(
        out.contains("received sender:   3.00 MiB in") && out.contains("received receiver: 3.00 MiB in"),
        "{out}"
    );
}

#[test]
fn server_or_both_send_on_request() {
    let server = Server::start(&["127.0.0.41"], &[]);
    let path = ["--path", "127.0.0.43", "-n", "1M", "-J"];
    let reverse = whole(&server.client(&[&path[..], &["-R"]].concat()).with_status(0));
    assert!(reverse["end"]["forward"].is_null());
    assert_eq!(reverse["end"]["reverse"]["receiver"]["bytes"], 1 << 20);
    assert_eq!(reverse["end"]["reverse"]["sender"]["bytes"], 1 << 20);
    let last = reverse["intervals"].as_array().and_then(|all| all.last()).expect("an interval");
    assert_eq!(last["direction"], "reverse");
    assert_eq!(
        last["paths"][0]["remote"].as_str().map(|remote| remote.starts_with("127.0.0.43:")),
        Some(true)
    );
    let both = whole(&server.client(&[&path[..], &["--bidir"]].concat()).with_status(0));
    for direction in ["forward", "reverse"] {
        assert_eq!(both["end"][direction]["receiver"]["bytes"], 1 << 20, "{direction}");
    }
    let (out, status) = server.stop();
    assert_eq!(status, Some(130));
    assert_eq!(out.matches("sent receiver: 1.00 MiB").count(), 2, "{out}");
}

#[test]
fn rate_is_kept_and_omitted_seconds_are_not_counted() {
    let server = Server::start(&["127.0.0.41"], &["-1"]);
    let more = ["--path", "127.0.0.43", "-t", "1", "-O", "0.5", "-b", "4M", "-l", "1000", "-i", "0.25"];
    let ended = server.client(&[&more[..], &["--json-stream"]].concat()).with_status(0);
    let lines = ended.json_lines();
    assert_eq!((&lines[0]["event"], &lines[lines.len() - 1]["event"]), (&"start".into(), &"end".into()));
    let intervals: Vec<_> = lines.iter().filter(|line| line["event"] == "interval").collect();
    assert!(intervals.len() >= 2 && intervals[0]["data"]["omitted"] == true);
    let sent = lines[lines.len() - 1]["data"]["forward"]["sender"]["bytes"].as_u64().expect("bytes");
    // At 4 Mbit/s, a second has 500,000 bytes. A slow machine sends less, or catches up after a delay; without -O it would be
    // 750,000.
    assert!((1..700_000).contains(&sent), "{sent}");
}

/// Returns the end of a test in one direction, with the figures of sender and receiver, and the seconds that the command took.
fn measured(server: &Server, more: &[&str]) -> (Value, f64) {
    let began = std::time::Instant::now();
    let ended =
        server.client(&[&["--path", "127.0.0.43", "--json", "--quiet"], more].concat()).with_status(0);
    (whole(&ended)["end"].clone(), began.elapsed().as_secs_f64())
}

#[test]
fn low_rate_and_duration_are_met() {
    let server = Server::start(&["127.0.0.41"], &[]);
    for (rate, bytes) in [("1k", 250), ("100k", 25_000), ("300kbit/s", 75_000)] {
        for way in [&[][..], &["-R"]] {
            let (end, took_s) = measured(&server, &[&["-b", rate, "-t", "2s"], way].concat());
            let side = &end[if way.is_empty() { "forward" } else { "reverse" }];
            assert_eq!(side["sender"]["bytes"], bytes, "{rate}: {end}");
            assert_eq!(side["receiver"]["seconds"], 2.0, "{rate}: {end}");
            // Bytes that a busy machine delays are not counted.
            let received = side["receiver"]["bytes"].as_u64().expect("bytes");
            assert!((bytes / 2..=bytes).contains(&received), "{rate}: {end}");
            assert!(took_s >= 2.0, "{rate}: {took_s} s");
        }
    }
    // In a test by bytes, the last message is sent when the rate has paid for it: 2 KiB at 16 kbit/s take 1.024 s.
    let (end, took_s) = measured(&server, &["-b", "16k", "-n", "2K"]);
    let receiver = &end["forward"]["receiver"];
    assert_eq!(receiver["bytes"], 2048);
    let rate = receiver["bits_per_second"].as_f64().expect("a rate");
    assert!(rate <= 16_500.0 && took_s >= 1.0, "{rate} bit/s, {took_s} s");
}

#[test]
fn intervals_of_a_test_by_time_end_with_it() {
    let server = Server::start(&["127.0.0.41"], &["-1"]);
    let ended = server.client(&["--path", "127.0.0.43", "-b", "8k", "-t", "1", "-i", "0.5", "-J", "-q"]);
    let json = whole(&ended.with_status(0));
    let intervals = json["intervals"].as_array().expect("intervals");
    let lasting = |interval: &Value| interval["to_s"].as_f64().zip(interval["from_s"].as_f64());
    let lengths = intervals.iter().filter_map(lasting).map(|(to, from)| to - from);
    assert!(lengths.clone().count() >= 1 && lengths.clone().all(|length| length > 0.05), "{intervals:?}");
}

#[test]
fn message_longer_than_the_rate_allows_is_shortened_with_a_notice() {
    let server = Server::start(&["127.0.0.41"], &["-1"]);
    let ended =
        server.client(&["--path", "127.0.0.43", "-b", "80k", "-l", "64K", "-t", "0.2"]).with_status(0);
    assert!(ended.err.contains("--length: messages of 1000 B instead of 64.0 KiB"), "{}", ended.err);
    assert!(ended.out.contains(" in messages of 1000 B on 1 stream"), "{}", ended.out);
}

#[test]
fn text_output_has_a_line_per_path_and_the_sum() {
    let server = Server::start(&["127.0.0.41", "127.0.0.42"], &["-1"]);
    let to = server.addresses.clone();
    let paths = ["--path", "127.0.0.43", "--path", "127.0.0.44", "--to", &to[0], "--to", &to[1]];
    let ended = server.client(&[&paths[..], &["-n", "300K", "--quiet"]].concat()).with_status(0);
    assert_eq!(ended.err, "");
    for expected in [
        "300 KiB to 127.0.0.41:",
        "path 1: 127.0.0.43 to ",
        "path 2: 127.0.0.44 to ",
        " forward  path 1 ",
        " forward  path 2 ",
        " forward  sum  ",
        "forward sender:   300 KiB in ",
        "forward receiver: 300 KiB in ",
        "  active\n",
    ] {
        assert!(ended.out.contains(expected), "no `{expected}` in\n{}", ended.out);
    }
}

#[test]
fn ctrl_c_of_client_prints_partial_result_and_server_continues() {
    let server = Server::start(&["127.0.0.41"], &[]);
    let to = &server.addresses[0];
    let mut client =
        command(&["bench", "-c", to, "--path", "127.0.0.43", "-t", "60", "-b", "1M", "-i", "0.2"]);
    let mut client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains(" forward  path 1 ") {
        line.clear();
        assert!(out.read_line(&mut line).expect("a line") > 0, "it ended too early");
    }
    signal(client.id(), "INT");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(client.wait().expect("it ends").code(), Some(130), "{rest}");
    assert!(rest.contains("stopped after ") && rest.contains("forward sender: "), "{rest}");
    server.client(&["--path", "127.0.0.43", "-n", "10K"]).with_status(0);
    assert_eq!(server.stop().1, Some(130));
}

#[test]
fn garbage_and_clients_that_are_killed_do_not_end_a_server() {
    let server = Server::start(&["127.0.0.41"], &["-1"]);
    let to = &server.addresses[0];
    let garbage = UdpSocket::bind("127.0.0.45:0").expect("a socket");
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length).map(|at: u32| (at * 37 + length) as u8).collect();
        garbage.send_to(&bytes, to).expect("sent");
    }
    let mut killed =
        command(&["bench", "-c", to, "--path", "127.0.0.44", "-t", "60", "-b", "1M", "-i", "0.1"]);
    let mut killed = killed.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(killed.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    // The server still waits for that client, and meanwhile serves another one, which is its only test.
    server.client(&["--path", "127.0.0.43", "-n", "1M"]).with_status(0);
    assert_eq!(server.ended().1, Some(0));
}

#[test]
fn an_option_without_effect_is_an_error() {
    for (arguments, expected) in [
        (&[][..], "--server|--client"),
        (&["-s", "-c", "host"], "cannot be used with"),
        (&["-s", "-t", "3"], "cannot be used with"),
        (&["-s", "-R"], "cannot be used with"),
        (&["-s", "-P", "2"], "cannot be used with"),
        (&["-s", "--path", "lo"], "--path has no effect with --server"),
        (&["-s", "--to", "127.0.0.1"], "--to has no effect with --server"),
        (
            &["-s", "-p", "7", "--listen", "127.0.0.1:8"],
            "--port has no effect: every --listen already names a port",
        ),
        (&["-c", "host", "--listen", "127.0.0.1"], "cannot be used with"),
        (&["-c", "host", "-1"], "cannot be used with"),
        (&["-c", "127.0.0.1:7", "-p", "7"], "--port has no effect: 127.0.0.1:7 already has a port"),
        (&["-c", "127.0.0.1", "-p", "7", "--to", "127.0.0.1:8"], "--port has no effect with --to"),
        (&["-c", "host", "-t", "3", "-n", "1M"], "cannot be used with"),
        (&["-c", "host", "-R", "--bidir"], "cannot be used with"),
        (&["-c", "host", "-J", "--json-stream"], "cannot be used with"),
        (&["-c", "host", "-n", "1M", "-O", "1"], "cannot be used with"),
        (&["-c", "127.0.0.1", "-t", "0"], "--time"),
        (&["-c", "127.0.0.1", "-l", "17M"], "--length"),
        (&["-c", "127.0.0.1", "-P", "65"], "1..=64"),
        (&["-c", "127.0.0.1", "-n", "many"], "expected bytes"),
        (&["-c", "127.0.0.1", "-b", "fast"], "expected bits per second"),
        (&["-c", "127.0.0.1", "--scheme", "cmtt"], "did you mean `cmt`?"),
    ] {
        let ended = anabranch(&[&["bench"], arguments].concat()).with_status(2);
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
        assert!(ended.out.is_empty(), "{arguments:?}: {}", ended.out);
    }
}

#[test]
fn unavailable_address_and_absent_server_are_failures() {
    let taken = UdpSocket::bind("127.0.0.46:0").expect("a socket");
    let taken = taken.local_addr().expect("an address").to_string();
    let ended = anabranch(&["bench", "-s", "--insecure", "--listen", &taken]).with_status(1);
    assert!(ended.err.contains(&format!("cannot listen: {taken} is in use")), "{}", ended.err);
    let refused = anabranch(&["bench", "-c", "127.0.0.47:9", "--connect-timeout", "0.3"]).with_status(1);
    assert!(refused.err.contains("127.0.0.47:9: port 9 of 127.0.0.47 is closed"), "{}", refused.err);
}

/// Returns an attacker on the path to a server, who answers the first INIT with an ABORT.
fn aborting_once(server: &str) -> Middle {
    let server: SocketAddr = server.parse().expect("an address");
    let mut is_done = false;
    let attack = move |_, packet: &mut Vec<u8>| match forged_abort(packet).filter(|_| !is_done) {
        Some(abort) => {
            is_done = true;
            Fate::Answered(abort)
        }
        None => Fate::Forwarded,
    };
    Middle::start(IpAddr::from([127, 0, 0, 46]), server, attack).expect("a forwarder")
}

#[test]
fn forged_abort_ends_neither_bench_nor_check_of_paths() {
    let server = Server::start(&["127.0.0.45"], &[]);
    let middle = aborting_once(&server.addresses[0]);
    let to = middle.address().to_string();
    let ended = anabranch(&["bench", "-c", &to, "--path", "127.0.0.47", "-n", "100k"]).with_status(0);
    assert!(ended.err.contains("the peer refuses associations") && ended.err.contains("trying again"));
    let middle = aborting_once(&server.addresses[0]);
    let to = middle.address().to_string();
    let ended = anabranch(&["paths", "--check", &to, "--path", "127.0.0.47"]).with_status(0);
    assert!(ended.out.contains(" yes "), "{}", ended.out);
    assert_eq!(server.stop().1, Some(130));
}
