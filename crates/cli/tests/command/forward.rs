//! `forward` and `gateway`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protection::{Listening, Users};
use crate::support::{Ended, anabranch, command, signal, within_limit};

/// Time in which each step of a test ends on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a program that returns all bytes of each connection, and returns its address.
pub(crate) fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            let _ = connection.read_to_end(&mut bytes);
            let _ = connection.write_all(&bytes);
        }
    });
    address
}

pub(crate) fn exchange(to: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect(to)?;
    connection.write_all(bytes)?;
    connection.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).map(|_| answer)
}

/// Two users of whom `anna` may use the gateway of `bert`.
fn gateway(more: &[&str]) -> (Users, Listening) {
    gateway_as(command, more)
}

fn forward(users: &Users, to: &Listening, more: &[&str]) -> Listening {
    forward_as(command, users, to, more)
}

/// Starts a gateway with the program that `command` returns for its arguments.
fn gateway_as(command: impl Fn(&[&str]) -> Command, more: &[&str]) -> (Users, Listening) {
    let users = Users::new();
    users.authorize("anna", "bert");
    let keys = users.text("bert");
    let fixed = ["gateway", "--json", "--listen", "127.0.0.73:0", "--keys", &keys];
    let gateway = Listening::start_command(command(&[&fixed[..], more].concat()));
    (users, gateway)
}

fn forward_as(
    command: impl Fn(&[&str]) -> Command,
    users: &Users,
    to: &Listening,
    more: &[&str],
) -> Listening {
    let keys = users.text("anna");
    let fixed = ["forward", "--json", &to.address, "--path", "127.0.0.74", "--keys", &keys];
    Listening::start_command(command(&[&fixed[..], more].concat()))
}

pub(crate) fn interrupt(listening: &Listening) {
    signal(listening.id(), "INT");
}

fn last_object(ended: &Ended) -> Value {
    ended.json_lines().pop().expect("an object")
}

#[test]
fn connections_are_forwarded_and_counted_until_ctrl_c() {
    let target = echo();
    let (users, gateway) = gateway(&["--allow", "127.0.0.0/8:*"]);
    let local = format!("127.0.0.1:0:{target}");
    let forwarding = forward(&users, &gateway, &["-L", &local]);
    assert_eq!(exchange(&forwarding.address, b"forwarded").expect("an answer"), b"forwarded");
    interrupt(&forwarding);
    let ended = forwarding.end().with_status(130);
    let end = last_object(&ended);
    assert_eq!((&end["event"], &end["complete"], &end["reset"]), (&"end".into(), &1.into(), &0.into()));
    assert_eq!((&end["to_peer_bytes"], &end["from_peer_bytes"]), (&9.into(), &9.into()));
    interrupt(&gateway);
    let ended = gateway.end().with_status(130);
    assert!(ended.out.contains(&format!("\"target\":\"{target}\"")), "{}", ended.out);
    assert_eq!(last_object(&ended)["complete"], 1);
}

#[test]
fn proxy_reports_forbidden_targets_on_both_sides() {
    let (users, mut gateway) = gateway(&[]);
    let mut forwarding = forward(&users, &gateway, &["-D", "127.0.0.1:0"]);
    let answer = exchange(&forwarding.address, b"CONNECT 127.0.0.1:80 HTTP/1.1\r\n\r\n").expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 403 "), "{}", String::from_utf8_lossy(&answer));
    for event in [forwarding.event("not_opened"), gateway.event("not_opened")] {
        assert_eq!((&event["target"], &event["failure"]), (&"127.0.0.1:80".into(), &"forbidden".into()));
    }
    interrupt(&forwarding);
    let end = last_object(&forwarding.end().with_status(130));
    assert_eq!(end["failed"]["forbidden"], 1);
}

/// Number of descriptors of a command that has too few of them for [`MANY`] connections.
const FEW: &str = "-n 64";
const MANY: usize = 100;

fn opened(to: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let mut connection = TcpStream::connect(to).expect("a connection");
        connection.set_read_timeout(Some(LIMIT)).expect("an option");
        // A refused connection may be reset already.
        let _ = connection.write_all(b"x");
        connection
    };
    (0..MANY).map(connect).collect()
}

/// Ends all connections, and returns the number of those whose byte came back.
fn answered(mut connections: Vec<TcpStream>) -> usize {
    for connection in &connections {
        let _ = connection.shutdown(Shutdown::Write);
    }
    let is_answered = |connection: &mut TcpStream| {
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).is_ok() && answer == b"x"
    };
    connections.iter_mut().filter_map(|each| is_answered(each).then_some(())).count()
}

#[test]
#[cfg(target_os = "linux")]
fn gateway_short_of_descriptors_refuses_connections_until_others_end() {
    let local = format!("127.0.0.1:0:{}", echo());
    let (users, mut gateway) =
        gateway_as(|arguments| within_limit(FEW, arguments), &["--allow", "127.0.0.0/8:*"]);
    let mut forwarding = forward(&users, &gateway, &["-L", &local]);
    let connections = opened(&forwarding.address);
    for side in [&mut gateway, &mut forwarding] {
        assert_eq!(side.event("not_opened")["failure"], "exhausted");
    }
    let answered = answered(connections);
    assert!((1..MANY).contains(&answered), "{answered}");
    let begun = Instant::now();
    while exchange(&forwarding.address, b"later").ok().as_deref() != Some(b"later") {
        assert!(begun.elapsed() < LIMIT, "no connection after the others");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn forwarder_short_of_descriptors_delays_connections_until_others_end() {
    let local = format!("127.0.0.1:0:{}", echo());
    let (users, gateway) = gateway(&["--allow", "127.0.0.0/8:*"]);
    let forwarding = forward_as(|arguments| within_limit(FEW, arguments), &users, &gateway, &["-L", &local]);
    assert_eq!(answered(opened(&forwarding.address)), MANY);
}

#[test]
fn key_with_rights_to_files_only_may_not_use_the_gateway() {
    let users = Users::new();
    let (keys, key) = (users.text("bert"), users.key_of("anna"));
    anabranch(&["keys", "add", "--keys", &keys, "--allow", "write", &key, "anna"]).with_status(0);
    let fixed = ["gateway", "--json", "--listen", "127.0.0.73:0", "--keys", &keys];
    let mut gateway = Listening::start(&fixed);
    let anna = users.text("anna");
    let refused = anabranch(&["forward", &gateway.address, "-D", "127.0.0.1:0", "--keys", &anna]);
    refused.with_status(1);
    let why = gateway.event("refused")["why"].as_str().expect("a text").to_owned();
    assert!(why.contains("anna") && why.contains("`forward`"), "{why}");
    anabranch(&["keys", "remove", "--keys", &keys, "anna"]).with_status(0);
    anabranch(&["keys", "add", "--keys", &keys, "--allow", "forward", &key, "anna"]).with_status(0);
    drop(gateway);
    let gateway = Listening::start(&fixed);
    drop(forward(&users, &gateway, &["-D", "127.0.0.1:0"]));
}

#[test]
fn other_users_than_the_named_ones_are_refused() {
    let (users, mut gateway) = gateway(&["--user", "carol"]);
    let anna = users.text("anna");
    let refused = anabranch(&["forward", &gateway.address, "-D", "127.0.0.1:0", "--keys", &anna]);
    refused.with_status(1);
    assert!(gateway.event("refused")["why"].as_str().expect("a text").contains("--user"));
}

#[test]
fn server_of_files_is_not_taken_for_a_gateway() {
    let users = Users::new();
    users.authorize("anna", "bert");
    let server = users.serve("bert", &[]);
    let anna = users.text("anna");
    let refused =
        anabranch(&["forward", &server.address, "-D", "127.0.0.1:0", "--keys", &anna]).with_status(1);
    assert!(refused.err.contains("run `anabranch gateway` there"), "{}", refused.err);
}

#[test]
fn wrong_command_lines_are_refused_with_a_remedy() {
    for (arguments, expected) in [
        (&["forward", "127.0.0.1"][..], "give -D PORT"),
        (&["forward", "127.0.0.1", "-D", "1080", "--insecure"], "omit it"),
        (&["gateway", "--insecure"], "omit it"),
        (&["forward", "127.0.0.1", "-L", "80:a"], "such as 8080:example.org:80"),
        (&["gateway", "--allow", "10.0.0.0/8"], "such as 8000-8999"),
    ] {
        let refused = anabranch(arguments).with_status(2);
        assert!(refused.err.contains(expected), "{arguments:?}: {}", refused.err);
    }
}

#[test]
fn port_in_use_ends_the_command_before_it_connects() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").to_string();
    let output = command(&["forward", "192.0.2.1", "-D", &port]).stdin(Stdio::null()).output();
    let output = output.expect("it starts");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains(&format!("-D {port}: cannot listen")), "{err}");
}

#[test]
fn check_of_a_host_that_answers_tcp_only_reports_blocked_udp() {
    let silent = UdpSocket::bind("127.0.0.76:0").expect("a socket");
    let target = silent.local_addr().expect("an address").to_string();
    let check = ["forward", "--check", &target, "--path", "127.0.0.77", "--connect-timeout", "0.3"];
    let ended = anabranch(&[&check[..], &["--json"]].concat()).with_status(1);
    let link = &ended.json_lines()[0]["links"][0];
    assert_eq!((&link["works"], &link["udp_blocked"]), (&false.into(), &true.into()), "{link}");
    let ended = anabranch(&check).with_status(1);
    assert!(ended.out.contains("UDP is blocked on the link of 127.0.0.77 to 127.0.0.76:"), "{}", ended.out);
    assert!(ended.err.contains("at most 32.0 MB and 6 s"), "{}", ended.err);
}

#[test]
fn check_of_a_gateway_measures_the_link() {
    let (users, gateway) = gateway(&[]);
    let (target, keys) = (&gateway.address, users.text("anna"));
    let check = [
        "forward",
        "--check",
        target,
        "--path",
        "127.0.0.74",
        "--keys",
        &keys,
        "--check-size",
        "1MB",
        "--json",
    ];
    let report = anabranch(&check).with_status(0).json_lines().remove(0);
    let link = &report["links"][0];
    assert_eq!((&link["works"], &report["together"]), (&true.into(), &Value::Null), "{report}");
    assert!(link["bytes"].as_u64().is_some_and(|bytes| bytes >= 1_000_000), "{report}");
}
