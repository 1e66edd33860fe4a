//! Peers that commands accept while they listen.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{anabranch, command};

/// Binds a port, so that other programs fail to bind it while the socket exists.
fn taken() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.50:0").expect("a socket");
    let address = socket.local_addr().expect("an address").to_string();
    (socket, address)
}

/// A listening command, ended when dropped.
struct Listening(Child);

impl Listening {
    fn start(arguments: &[&str]) -> Listening {
        let mut command = command(arguments);
        Listening(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// Returns the first line of standard output.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        line
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.first_line()).expect("JSON")
    }

    /// Ends the command and returns its standard error.
    fn standard_error(mut self) -> String {
        let _ = self.0.kill();
        let mut said = String::new();
        self.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        said
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn listening_command_binds_nothing_without_authorised_peers() {
    let (_taken, address) = taken();
    let empty = tempfile::tempdir().expect("a folder");
    let keys = ["--keys", empty.path().to_str().expect("a path")];
    for (typed, listens) in [
        ("anabranch serve --dir not-there", &["serve", "--dir", "not-there"][..]),
        ("anabranch recv --all", &["recv", "--all"]),
        ("anabranch bench -s", &["bench", "-s"]),
    ] {
        let listen = [listens, &["--listen", &address], &keys].concat();
        let ended = anabranch(&listen).with_status(2);
        let lines: Vec<&str> = ended.err.lines().collect();
        for choice in ["--insecure --from 127.0.0.0/8", "--insecure"] {
            let whole = format!("  {typed} --listen {address} {choice}");
            assert!(lines.iter().any(|line| line.ends_with(&whole)), "{whole}: {}", ended.err);
        }
        assert!(lines[0].starts_with("nothing is listening yet: "), "{}", ended.err);
        assert!(
            lines[0].contains("authorized_keys has no key") && lines[1].contains("anabranch keys add KEY")
        );
        assert_eq!((ended.out.as_str(), lines.len()), ("", 5), "{}", ended.err);
    }
    assert!(!crate::support::workspace().join("not-there").exists());
    for choice in [&["--from", "127.0.0.0/8"][..], &["--insecure"]] {
        let ended = anabranch(&[&["bench", "-s", "--listen", &address], choice].concat()).with_status(1);
        assert!(ended.err.contains(&format!("cannot listen: {address} is in use")), "{}", ended.err);
    }
}

#[test]
fn mistakes_about_who_may_connect_name_the_option_and_the_remedy() {
    let (_taken, address) = taken();
    let many: Vec<String> =
        (0..257).flat_map(|n| ["--from".to_owned(), format!("10.0.{}.{}", n / 128, n % 128 * 2)]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (arguments, expected) in [
        (&["--keys", "x", "--insecure"][..], "cannot be used with '--insecure'"),
        (&["--insecure", "--keylog", "x"], "cannot be used with"),
        (&["--ca", "x"], "--cert <FILE>"),
        (&["--key", "x"], "--ca <FILE>"),
        (&["--from", "10.0.0.0/33"], "invalid value '10.0.0.0/33' for '--from <ADDR[/PREFIX]>'"),
        (&["--from", "10.0.0.0/33"], "from 1 to 32"),
        (&["--from", "::1/129"], "from 1 to 128"),
        (&["--from", "host"], "names of hosts are not resolved"),
        (&["--from", "0.0.0.0/0"], "leave --from out"),
        (&["--from", "::/0"], "leave --from out"),
        (&["--from", "0.0.0.0/1", "--from", "128.0.0.0/1"], "leave --from out"),
        (&many, "--from: at most 256 networks can be named; give shorter prefixes"),
    ] {
        for listens in [&["bench", "-s"][..], &["recv"], &["serve", "--dir", "."]] {
            let listen = [listens, &["--listen", &address], arguments].concat();
            let ended = anabranch(&listen).with_status(2);
            assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
            assert_eq!(ended.out, "");
        }
    }
    for (arguments, expected) in [
        (&["recv", "127.0.0.50", "--from", "::1"][..], "--from requires --listen; omit it"),
        (&["bench", "-c", "127.0.0.50", "--from", "::1"], "--from has no effect with --client"),
        (&["send", "Cargo.toml", "127.0.0.50", "--from", "::1"], "--from requires --code; omit it"),
    ] {
        let ended = anabranch(arguments).with_status(2);
        assert!(ended.err.contains(expected), "{arguments:?}: {}", ended.err);
    }
}

#[test]
fn files_are_accepted_from_the_named_networks_only() {
    let (dir, from) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (dir, file) = (dir.path().to_str().expect("UTF-8"), from.path().join("file"));
    std::fs::write(&file, "content").expect("written");
    let networks = ["--from", "127.0.0.52/31", "--from", "127.0.0.53/31", "--from", "2001:db8::/32"];
    let fixed = ["serve", "--json", "--dir", dir, "--listen", "127.0.0.51:0"];
    let mut server = Listening::start(&[&fixed[..], &networks].concat());
    let listening = server.json();
    assert_eq!(listening["from"], json!(["127.0.0.52/31", "2001:db8::/32"]), "{listening}");
    assert_eq!((&listening["insecure"], &listening["encrypted"]), (&json!(false), &json!(true)));
    let to = listening["addresses"][0].as_str().expect("an address");
    let send = |path, seconds| {
        let file = file.to_str().expect("UTF-8");
        anabranch(&["send", file, to, "--path", path, "--connect-timeout", seconds])
    };
    for outside in ["127.0.0.51", "127.0.0.54"] {
        let ended = send(outside, "1.5").with_status(1);
        assert!(ended.err.contains("no answer arrived within 1.5 s"), "{}", ended.err);
        assert!(ended.err.contains("accepts this machine"), "{}", ended.err);
    }
    send("127.0.0.53", "30").with_status(0);
    assert_eq!(std::fs::read(std::path::Path::new(dir).join("file")).expect("there"), b"content");
    assert_eq!(server.standard_error(), "");
}

#[test]
fn missing_protection_is_a_warning_in_text_and_a_field_in_json() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().to_str().expect("UTF-8");
    let listen = ["--listen", "127.0.0.55:0", "--insecure"];
    let everyone = json!(["0.0.0.0/0", "::/0"]);
    for listens in [&["serve", "--dir", dir, "--json"][..], &["recv", "--all", "--dir", dir, "--json"]] {
        let mut server = Listening::start(&[listens, &listen].concat());
        let listening = server.json();
        assert_eq!((&listening["insecure"], &listening["from"]), (&Value::from(true), &everyone));
        assert_eq!(listening["encrypted"], false);
        assert_eq!(server.standard_error(), "");
    }
    let warnings = |said: &str| said.lines().filter(|line| line.starts_with("warning: --insecure")).count();
    let mut server = Listening::start(&[&["bench", "-s", "-J"], &listen[..]].concat());
    let listening = server.json();
    assert_eq!((&listening["data"]["insecure"], &listening["data"]["from"]), (&Value::from(true), &everyone));
    assert_eq!(warnings(&server.standard_error()), 0);

    for (quiet, warned) in [(&[][..], 1), (&["-q"], 0)] {
        let mut server = Listening::start(&[&["bench", "-s"], quiet, &listen].concat());
        assert!(server.first_line().starts_with("listening on 127.0.0.55:"));
        assert_eq!(warnings(&server.standard_error()), warned, "{quiet:?}");
    }
    let named = ["--listen", "127.0.0.55:0", "--from", "127.0.0.0/8"];
    let mut server = Listening::start(&[&["bench", "-s"], &named[..]].concat());
    server.first_line();
    let said = server.standard_error();
    assert!(said.contains("accepting peers from 127.0.0.0/8\n") && warnings(&said) == 0, "{said}");
}
