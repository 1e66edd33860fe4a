//! Speed of one path that only the machine limits, compared with usrsctp. The benchmark has no limits to meet: `make interop-speed`
//! prints it. The sender is on our side of the network, and the receiver on the other.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::rig::{Ended, Input, Network, Peer, Side, ours, usrsctp};

const MESSAGE_BYTES: u32 = 8192;
const MESSAGES: u32 = 12_000;
/// Buffer of both sides in each direction, in bytes.
const BUFFER: u32 = 2 << 20;
/// MTU of the link, which usrsctp discovers.
const MTU_BYTES: u32 = 1500;

/// Route on which the sender of a pair reaches the receiver.
const ROUTE: &str = "--route 10.77.1.1:9899=10.77.1.2:9900 --remote-sctp 5001";

#[derive(Clone, Copy, Debug)]
enum Stack {
    Ours,
    Usrsctp,
}

fn start(network: &Network, side: Side, program: &str, options: &str) -> Peer {
    let mut command = network.command(side, "sh");
    command.args(["-c", &format!("{program} {options}")]);
    Peer::start("peer", command, Input::None)
}

fn ours_with(options: &str) -> (String, String) {
    let common = format!("--scheme sctp --mtu-bytes {MTU_BYTES} --buffer-bytes {BUFFER}");
    (ours().display().to_string(), format!("{common} {options}"))
}

fn usrsctp_with(options: &str) -> (String, String) {
    let common = format!("--buffer {BUFFER} --message {MESSAGE_BYTES}");
    (usrsctp().display().to_string(), format!("{common} {options}"))
}

fn start_receiver(network: &Network, stack: Stack) -> Peer {
    let (program, options) = match stack {
        Stack::Ours => ours_with("--sctp 5001 --listen 10.77.1.2:9900 discard"),
        Stack::Usrsctp => usrsctp_with(
            "--local 10.77.1.2 --udp 9900 --remote-udp 9899 --sctp 5001 pipe < /dev/null > /dev/null",
        ),
    };
    let receiver = start(network, Side::Theirs, &program, &options);
    receiver.wait_for("listening");
    receiver
}

fn send(network: &Network, stack: Stack) -> Ended {
    let (program, options) = match stack {
        Stack::Ours => ours_with(&format!(
            "{ROUTE} --end shutdown flood --message-bytes {MESSAGE_BYTES} --messages {MESSAGES}"
        )),
        Stack::Usrsctp => {
            let bytes = u64::from(MESSAGES) * u64::from(MESSAGE_BYTES);
            let (program, options) = usrsctp_with(
                "--udp 9899 --remote-udp 9900 --sctp 5002 --remote-sctp 5001 --local 10.77.1.1 --remote 10.77.1.2 --end shutdown pipe",
            );
            (format!("head -c {bytes} /dev/zero | {program}"), options)
        }
    };
    start(network, Side::Ours, &program, &options).wait().closed()
}

/// Returns MB/s, from the first to the last message that arrived.
fn rate(network: &Network, sender: Stack, receiver: Stack) -> f64 {
    let receiver = start_receiver(network, receiver);
    send(network, sender);
    let ended = receiver.wait().closed();
    let number = |key: &str| ended.end()[key].as_f64().expect("a number");
    number("bytes") / number("seconds") / 1e6
}

/// Returns the rate of `tsctp`. The output of its library, which takes time, is discarded.
fn rate_of_tsctp(network: &Network) -> f64 {
    let tsctp = format!("timeout 100 /usr/lib/usrsctp/tsctp -D -R {BUFFER} -S {BUFFER} -p 5001");
    // Fields of the output: length, messages, calls, sum, seconds, rate, notifications.
    let listen =
        format!("{tsctp} -L 10.77.1.2 -E 9900 -U 9899 | grep -a -m 1 -x '[0-9]*, [0-9]*, [0-9]*, .*'");
    let mut receiver = network.command(Side::Theirs, "sh");
    let receiver = receiver.args(["-c", &listen]).stdout(Stdio::piped()).stderr(Stdio::null());
    let receiver = receiver.spawn().expect("it is installed");
    std::thread::sleep(Duration::from_secs(1));
    let mut sender: Command = network.command(Side::Ours, "sh");
    let options = format!("-E 9899 -U 9900 -l {MESSAGE_BYTES} -n {MESSAGES} 10.77.1.2 > /dev/null 2>&1");
    let status = sender.args(["-c", &format!("{tsctp} {options}")]).status().expect("it is installed");
    assert!(status.success(), "{sender:?}: {status}");
    let output = receiver.wait_with_output().expect("it ends");
    let line = String::from_utf8_lossy(&output.stdout);
    let fields: Vec<f64> = line.split(", ").filter_map(|field| field.trim().parse().ok()).collect();
    fields[3] / fields[4] / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement: make interop-speed"]
fn one_path() {
    type Run = fn(&Network) -> f64;
    let runs: [(&str, Run); 5] = [
        ("usrsctp to usrsctp", |network| rate(network, Stack::Usrsctp, Stack::Usrsctp)),
        ("ours to usrsctp", |network| rate(network, Stack::Ours, Stack::Usrsctp)),
        ("usrsctp to ours", |network| rate(network, Stack::Usrsctp, Stack::Ours)),
        ("ours to ours", |network| rate(network, Stack::Ours, Stack::Ours)),
        ("tsctp to tsctp", rate_of_tsctp),
    ];
    let network = Network::new(1);
    let mut rates = [const { Vec::new() }; 5];
    // Interleaved, so that other load of the machine affects all of them.
    for _ in 0..3 {
        for ((_, run), rates) in runs.iter().zip(&mut rates) {
            rates.push(run(&network));
        }
    }
    println!(
        "\n{MESSAGES} messages of {MESSAGE_BYTES} B, MTU {MTU_BYTES} B, buffers of {BUFFER} B, median of 3"
    );
    let base = median(rates[0].clone());
    for ((name, _), rates) in runs.iter().zip(rates) {
        let rate = median(rates);
        println!("{name:18} {rate:8.1} MB/s   {:.2} of usrsctp to usrsctp", rate / base);
    }
}
