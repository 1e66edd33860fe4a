//! How fast one path is that nothing but the machine limits, beside usrsctp's own `tsctp`. Nothing is judged:
//! `make interop-speed` prints it. What sends is on our side of the network, what receives on the other.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::rig::{Ended, Input, Network, Peer, Side, ours};

const TSCTP: &str = "/usr/lib/usrsctp/tsctp";
/// Messages of this size, as `tsctp` takes them.
const MESSAGE_BYTES: u32 = 8192;
const MESSAGES: u32 = 24_000;
/// What both sides have for data each way.
const BUFFER: u32 = 2 << 20;
/// tsctp's fragmentation point is not set, so that packets are as long as the link takes, as ours are.
const MTU_BYTES: u32 = 1500;

fn ours_on(network: &Network, side: Side, options: &str) -> Command {
    let mut command = network.command(side, ours().to_str().expect("UTF-8"));
    command.args(["--scheme", "sctp", "--mtu-bytes", &MTU_BYTES.to_string()]);
    command.args(["--buffer-bytes", &BUFFER.to_string()]);
    command.args(options.split_whitespace());
    command
}

fn tsctp(network: &Network, side: Side, options: &str) -> Command {
    let mut command = network.command(side, TSCTP);
    command.args(["-R", &BUFFER.to_string(), "-S", &BUFFER.to_string(), "-D"]);
    command.args(options.split_whitespace());
    command
}

/// A server listens when its UDP socket is there.
fn start_server(mut command: Command) -> Child {
    let server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it is installed");
    std::thread::sleep(Duration::from_secs(1));
    server
}

/// Bytes per second, from the line in which a tsctp that received says: length, messages, calls, sum, seconds, rate, ...
fn rate_of(server: Child) -> f64 {
    let mut server = server;
    std::thread::sleep(Duration::from_millis(500));
    server.kill().expect("it runs");
    let output = server.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.split(", ").count() >= 7).unwrap_or_else(|| panic!("{text}"));
    let fields: Vec<f64> = line.split(", ").filter_map(|field| field.trim().parse().ok()).collect();
    fields[3] / fields[4]
}

/// Our peer sends to a receiver at UDP port 9900 and SCTP port 5001.
fn send_ours(network: &Network) -> Ended {
    let route = "--route 10.77.1.1:9899=10.77.1.2:9900 --remote-sctp 5001";
    let flood = format!("--end shutdown flood --message-bytes {MESSAGE_BYTES} --messages {MESSAGES}");
    let command = ours_on(network, Side::Ours, &format!("{route} {flood}"));
    Peer::start("sender", command, Input::None).wait().closed()
}

/// tsctp sends to a receiver at UDP port 9900 and SCTP port 5001.
fn send_tsctp(network: &Network) {
    let options = format!("-E 9899 -U 9900 -p 5001 -l {MESSAGE_BYTES} -n {MESSAGES} 10.77.1.2");
    let mut command = tsctp(network, Side::Ours, &options);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it is installed");
    assert!(status.success(), "{command:?}: {status}");
}

fn receive_with_tsctp(network: &Network, send: impl FnOnce(&Network)) -> f64 {
    let server = start_server(tsctp(network, Side::Theirs, "-L 10.77.1.2 -E 9900 -U 9899 -p 5001"));
    send(network);
    rate_of(server)
}

fn receive_with_ours(network: &Network, send: impl FnOnce(&Network)) -> f64 {
    let command = ours_on(network, Side::Theirs, "--sctp 5001 --listen 10.77.1.2:9900 discard");
    let receiver = Peer::start("receiver", command, Input::None);
    receiver.wait_for("listening");
    send(network);
    let ended = receiver.wait().closed();
    let number = |key: &str| ended.end()[key].as_f64().expect("a number");
    number("bytes") / number("seconds")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement: make interop-speed"]
fn one_path() {
    type Run = fn(&Network) -> f64;
    let runs: [(&str, Run); 4] = [
        ("tsctp to tsctp", |network| receive_with_tsctp(network, send_tsctp)),
        ("ours to tsctp", |network| receive_with_tsctp(network, |network| drop(send_ours(network)))),
        ("tsctp to ours", |network| receive_with_ours(network, send_tsctp)),
        ("ours to ours", |network| receive_with_ours(network, |network| drop(send_ours(network)))),
    ];
    let network = Network::new(1);
    let mut rates = [const { Vec::new() }; 4];
    // Interleaved, so that a busy moment meets all of them.
    for _ in 0..3 {
        for ((_, run), rates) in runs.iter().zip(&mut rates) {
            rates.push(run(&network) / 1e6);
        }
    }
    println!("\n{MESSAGES} messages of {MESSAGE_BYTES} B, buffers of {BUFFER} B, median of 3");
    let base = median(rates[0].clone());
    for ((name, _), rates) in runs.iter().zip(rates) {
        let rate = median(rates);
        println!("{name:16} {rate:8.1} MB/s   {:.2} of tsctp to tsctp", rate / base);
    }
}
