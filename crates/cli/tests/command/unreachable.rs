//! Unreachable peers in network namespaces: closed ports, missing routes, dead neighbours, and routers that report this.
//!
//! The options allow an hour for each attempt. It has to end as soon as the system or the network refuses it.

use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::network::{End, Network};

/// Limit far above the time of a refusal on a busy machine: Linux waits three seconds for a neighbour to answer.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns a client whose router is the middle, at 10.91.1.254.
fn routed() -> Option<Network> {
    let network = Network::new()?;
    network.files("data", 1);
    network.client.run("ip route add default via 10.91.1.254 dev c1");
    network.middle.run(
        "ip addr add 10.91.1.254/24 dev sw1; sysctl -qw net.ipv4.ip_forward=1; \
         sysctl -qw net.ipv4.icmp_ratelimit=0",
    );
    Some(network)
}

/// Runs a command that fails, and returns the text on standard error.
#[track_caller]
fn failed(network: &Network, arguments: &[&str]) -> String {
    let arguments = [arguments, &["--connect-timeout", "1h"]].concat();
    let mut child =
        network.anabranch(End::Client, &arguments).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stderr.take().expect("a pipe");
    let text = thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if begun.elapsed() > LIMIT {
            child.kill().expect("killed");
            child.wait().expect("it ends");
            panic!("{arguments:?} does not end");
        }
        thread::sleep(Duration::from_millis(10));
    };
    let text = text.join().expect("no panic").expect("text");
    assert_eq!(status.code(), Some(1), "{text}");
    text
}

#[track_caller]
fn send_fails(network: &Network, host: &str, options: &[&str], expected: &str) {
    let text = failed(network, &[&["send", "data", host], options].concat());
    assert!(text.contains(expected), "{host} {options:?}: no `{expected}` in: {text}");
}

#[test]
fn closed_port_is_named_by_every_command_that_connects() {
    let Some(network) = routed() else { return };
    let expected = "port 9899 of 10.91.1.2 is closed";
    for arguments in [
        &["send", "data", "10.91.1.2"][..],
        &["recv", "10.91.1.2", "name"],
        &["recv", "--list", "10.91.1.2"],
        &["bench", "-c", "10.91.1.2"],
    ] {
        let text = failed(&network, arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    send_fails(&network, "10.91.1.2:7", &[], "port 7 of 10.91.1.2 is closed");
    send_fails(&network, "10.91.1.2", &["--insecure", "--path", "c1"], expected);
}

#[test]
fn refusal_by_a_route_is_named() {
    let Some(network) = routed() else { return };
    for (kind, expected) in [
        ("unreachable", "10.99.0.1 is unreachable"),
        ("prohibit", "a firewall or a routing rule forbids packets to 10.99.0.1"),
        ("blackhole", "no route to 10.99.0.1"),
    ] {
        // Routes of this machine leave no usable path. An explicit path is refused at its attempt.
        network.client.run(&format!("ip route add {kind} 10.99.0.0/24"));
        send_fails(&network, "10.99.0.1", &[], "no route to 10.99.0.1");
        send_fails(&network, "10.99.0.1", &["--path", "10.91.1.1"], expected);
        network.client.run(&format!("ip route del {kind} 10.99.0.0/24"));
    }
    network.client.run("ip route del default");
    send_fails(&network, "10.98.0.1", &[], "no route to 10.98.0.1");
    send_fails(&network, "10.98.0.1", &["--path", "c1"], "no route to 10.98.0.1");
}

#[test]
fn refusal_by_a_router_is_named() {
    let Some(network) = routed() else { return };
    network.middle.run("ip route add unreachable 10.99.0.0/24; ip route add prohibit 10.98.0.0/24");
    send_fails(&network, "10.99.0.1", &[], "10.99.0.1 is unreachable");
    send_fails(&network, "10.98.0.1", &[], "a firewall or a routing rule forbids packets to 10.98.0.1");
    // A router without a route reports that.
    send_fails(&network, "10.97.0.1", &[], "no route to 10.97.0.1");
}

#[test]
fn dead_neighbour_and_dead_router_are_named() {
    let Some(network) = routed() else { return };
    send_fails(&network, "10.91.1.77", &[], "10.91.1.77 is unreachable");
    network.client.run("ip route replace default via 10.91.1.78 dev c1");
    send_fails(&network, "10.99.0.1", &[], "10.99.0.1 is unreachable");
}

#[test]
fn refused_path_does_not_end_an_attempt_over_another_one() {
    let Some(network) = routed() else { return };
    let _server = network.serve(&["--listen", "10.91.2.2"]);
    std::fs::write(network.path("hosts"), "10.91.1.2 server\n10.91.2.2 server\n").expect("written");
    let sending =
        network.start(End::Client, &["send", "data", "server", "--json", "--connect-timeout", "1h"]);
    sending.end();
    super::network::assert_same(&network.path("data"), &network.path("served/data"), 1);
}

#[test]
fn named_retry_waits_for_a_server_that_is_started_later() {
    let Some(network) = routed() else { return };
    let arguments = ["send", "data", "10.91.1.2", "--retry", "1h"];
    let mut command = network.anabranch(End::Client, &arguments);
    let mut sending = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = std::io::BufReader::new(sending.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("is closed") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).expect("text") > 0, "it ended");
    }
    assert!(line.contains("trying again"), "{line}");
    let _server = network.serve(&[]);
    assert!(sending.wait().expect("it ends").success());
    super::network::assert_same(&network.path("data"), &network.path("served/data"), 1);
}
