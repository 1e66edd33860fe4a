//! The programs of usrsctp (Debian: libusrsctp-examples), unmodified.

use std::process::Stdio;

use crate::rig::{Input, Network, Peer, Side, ours};

const FOLDER: &str = "/usr/lib/usrsctp";

fn ours_on(network: &Network, options: &str) -> std::process::Command {
    let mut command = network.command(Side::Ours, ours().to_str().expect("UTF-8"));
    command.args(options.split_whitespace());
    command
}

/// Waits until a process has bound a UDP port in its network namespace. A packet that arrives earlier is refused.
fn wait_until_bound(process: &std::process::Child, port: u16) {
    let sockets = format!("/proc/{}/net/udp", process.id());
    let is_bound =
        || std::fs::read_to_string(&sockets).is_ok_and(|text| text.contains(&format!(":{port:04X} ")));
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_bound() {
        assert!(std::time::Instant::now() < limit, "{sockets} has no port {port}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn echo_server_sends_back_what_we_send() {
    let network = Network::new(1);
    let mut command = network.command(Side::Theirs, &format!("{FOLDER}/echo_server"));
    // UDP ports of the example and of this project's side.
    let mut server = command
        .args(["9900", "9899"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is installed");
    wait_until_bound(&server, 9900);
    // The example reads one message at a time and waits while its send buffer is full, so more data in flight would block both
    // sides.
    let ours = ours_on(
        &network,
        "--route 10.77.1.1:9899=10.77.1.2:9900 --remote-sctp 7 --end shutdown \
         ping --messages 30 --over-streams 4 --unordered --sizes 1,79,80,1400,1500,4096,10240",
    );
    let ours = Peer::start("ours", ours, Input::None).wait();
    let _ = server.kill();
    let _ = server.wait();
    let ours = ours.closed();
    assert_eq!(ours.end()["messages"], 30);
    assert_eq!(ours.end()["wrong"], 0);
}

#[test]
#[ignore = "needs usrsctp: make interop"]
fn client_gets_back_what_it_sends_to_us() {
    let network = Network::new(1);
    let ours = ours_on(&network, "--listen 10.77.1.1:9899 echo");
    let ours = Peer::start("ours", ours, Input::None);
    ours.wait_for("listening");
    let mut command = network.command(Side::Theirs, "sh");
    // The input of the example must not end before all data has returned, since the example then shuts down at once.
    let script = format!(
        "{{ for line in one two three; do echo $line; sleep 0.3; done; }} | {FOLDER}/client 10.77.1.1 9899 0 9900 9899"
    );
    let output = command.args(["-c", &script]).output().expect("it is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let came: Vec<&str> = text.lines().filter(|line| ["one", "two", "three"].contains(line)).collect();
    assert_eq!(came, ["one", "two", "three"], "{text}");
    let ours = ours.wait().closed();
    assert_eq!(ours.end()["messages"], 3);
}
