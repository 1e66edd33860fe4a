//! `anabranch paths`.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;

use crate::support::{anabranch, command};

#[test]
fn loopback_is_listed_with_its_use() {
    let ended = anabranch(&["paths"]).with_status(0);
    let rows = ended.rows();
    let row = rows.iter().find(|row| row.contains(&"127.0.0.1")).expect("loopback");
    assert_eq!(row[2], "loopback");
    assert_eq!(row[4..], ["yes", "to", "this", "machine", "only"]);
    let json = anabranch(&["paths", "--json"]).with_status(0).json_lines();
    let addresses = json[0]["addresses"].as_array().expect("a list");
    let loopback = addresses.iter().find(|local| local["address"] == "127.0.0.1").expect("loopback");
    assert_eq!((&loopback["usable"], &loopback["usable_to_this_machine"]), (&false.into(), &true.into()));
    assert_eq!(loopback["reason"], "leads to this machine only");
}

#[test]
fn invalid_options_are_refused_with_an_example() {
    for (arguments, status, expected) in [
        (&["--path", "127.0.0.1"][..], 2, "--path has no effect without --check HOST"),
        (&["--scheme", "cmt"], 2, "--scheme has no effect without --check HOST"),
        (
            &["--check", "127.0.0.1", "--scheme", "cmtt"],
            2,
            "--scheme: unknown scheme `cmtt`, did you mean `cmt`?",
        ),
        (
            &["--check", "127.0.0.1", "--path", "nosuch0"],
            2,
            "--path nosuch0: neither an address nor an interface",
        ),
        (&["--check", "127.0.0.1", "--path", "203.0.113.9"], 2, "--path 203.0.113.9: no path can begin"),
        (
            &["--check", "127.0.0.1", "--path", "::1"],
            2,
            "--path ::1: it has IPv6 only and 127.0.0.1 has IPv4 only",
        ),
        (
            &["--check", "127.0.0.1", "--to", "127.0.0.1", "--to", "127.0.0.2", "--path", "lo"],
            2,
            "2 times --to for 1 times --path",
        ),
        (&["--check", "127.0.0.1:0"], 2, "`127.0.0.1:0`: `0` is not a valid destination port"),
        (&["--check", "a b"], 2, "`a b` is not a host"),
        (&["--check", "nobody.invalid"], 1, "nobody.invalid: no address is known for this name"),
        (&["--check", "0.0.0.0"], 1, "0.0.0.0 is the address of no host"),
        (&["--check", "127.0.0.1", "--failover-ms", "0"], 2, "--failover-ms"),
        (&["--check", "127.0.0.1", "--connect-timeout", "0"], 2, "`0` is not between 1ms and 24h"),
        (&["--check", "127.0.0.1", "--sctp-port", "0"], 2, "--sctp-port"),
    ] {
        let ended = anabranch(&[&["paths"], arguments].concat()).with_status(status);
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
        assert!(ended.out.is_empty(), "{arguments:?}: {}", ended.out);
    }
}

#[test]
fn path_to_an_unused_address_fails() {
    let silent = UdpSocket::bind("127.0.0.9:0").expect("a socket");
    let target = silent.local_addr().expect("an address").to_string();
    let arguments = ["paths", "--check", &target, "--path", "127.0.0.3", "--connect-timeout", "0.3"];
    let ended = anabranch(&arguments).with_status(1);
    assert_eq!(ended.rows(), [["127.0.0.3", &target, "routing", "table", "no"]]);
    assert!(ended.out.contains("no answer arrived within 0.3 s (127.0.0.3 to 127.0.0.9:"), "{}", ended.out);
    assert_eq!(ended.err, "");
    let ended = anabranch(&[&arguments[..], &["--insecure"]].concat()).with_status(1);
    assert!(ended.err.contains("content is not encrypted"), "{}", ended.err);
}

#[test]
fn paths_are_tried_separately_and_one_suffices() {
    let mut server = command(&["bench", "-s", "--from", "127.0.0.0/8", "--listen", "127.0.0.48:0"]);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let works = line.trim_end().strip_prefix("listening on ").expect("where it listens").to_owned();
    let silent = UdpSocket::bind("127.0.0.9:0").expect("a socket");
    let silent = silent.local_addr().expect("an address").to_string();
    let paths = ["--path", "127.0.0.3", "--path", "127.0.0.4", "--to", &silent, "--to", &works];
    let check = ["paths", "--check", "peer", "--connect-timeout", "2", "--json"];
    let ended = anabranch(&[&check[..], &paths].concat()).with_status(0);
    server.kill().expect("killed");
    server.wait().expect("it ends");
    let json = &ended.json_lines()[0];
    assert_eq!((&json["paths"][0]["works"], &json["paths"][1]["works"]), (&false.into(), &true.into()));
    assert_eq!(json["paths"][1]["remote"], works);
    assert_eq!(json["paths"][1]["through"], "routing table");
    assert!(json["paths"][1]["rtt_ms"].as_f64().is_some_and(|rtt| rtt > 0.0), "{json}");
    assert!(json["paths"][0]["reason"].as_str().is_some_and(|why| why.contains("no answer arrived")));
}
