//! Wireshark reads the captures of runs.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

use std::io::Write;
use std::process::{Command, Stdio};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_sim::pcapng::PcapngTap;
use anabranch_sim::{
    Address, Datagram, Encapsulation, Envelope, Host, LinkConfig, LossModel, LossPlace, LossTrace,
    QueueConfig, Seeds, World,
};

/// SCTP packet with an INIT chunk from port 5000 to 5001. Its checksum is zero.
const INIT: [u8; 32] = [
    0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, // Common header.
    1, 0, 0, 20, 1, 2, 3, 4, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1, // INIT.
];

struct Sender(Vec<Envelope>);

impl Host for Sender {
    fn handle_datagram(&mut self, _: Time, _: Datagram<'_>) {}
    fn handle_timeout(&mut self, _: Time) {}
    fn poll_transmit(&mut self, _: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        buf.extend_from_slice(&INIT);
        self.0.pop()
    }
    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}

/// Returns a capture of two IPv4 packets, of which the second is lost and one is in UDP, and of an IPv6 packet in UDP.
fn capture() -> Vec<u8> {
    let v4: [Address; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    let v6: [Address; 2] = ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()];
    let udp = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
    let way =
        |ends: [Address; 2], encapsulation| Envelope { source: ends[0], destination: ends[1], encapsulation };
    let ways = vec![way(v6, udp), way(v4, Encapsulation::None), way(v4, udp)];

    let mut world = World::new(Seeds::new(1, 0));
    world.add_host(Box::new(Sender(ways)), &[v4[0], v6[0]]).unwrap();
    world.add_host(Box::new(Sender(Vec::new())), &[v4[1], v6[1]]).unwrap();
    let rate = Rate::from_bps(8_000_000);
    let config = LinkConfig::new("wire", rate, Span::from_nanos(1_000_000_123), QueueConfig::packets(5));
    let losses = LossModel::Trace(LossTrace::new().lose("flow", [2]));
    let link = world.add_link(config.with_loss(losses, LossPlace::BeforeQueue)).unwrap();
    world.add_route(v4[0], v4[1], &[link], Some("flow")).unwrap();
    world.add_route(v6[0], v6[1], &[link], Some("flow")).unwrap();
    let mut tap = PcapngTap::new(Vec::new()).with_drops();
    tap.name_interface(v4[0], "client/path-1");
    world.set_tap(Box::new(tap));
    world.run_until(Time::ZERO + Span::from_secs(2));
    world.take_tap::<PcapngTap<Vec<u8>>>().unwrap().finish().unwrap()
}

fn pipe(program: &str, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} failed");
    String::from_utf8(output.stdout).unwrap()
}

fn missing(program: &str) -> bool {
    let missing =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    if missing {
        println!("skipped: {program} is not installed");
    }
    missing
}

#[test]
fn tshark_sees_packets_times_and_comments() {
    if missing("tshark") {
        return;
    }
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.comment",
        "ip.src",
        "ipv6.dst",
        "ip.checksum.status",
        "udp.checksum.status",
        "udp.dstport",
        "sctp.chunk_type",
    ];
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let mut arguments = vec!["-r", "-", "-T", "fields", "-E", "separator=|"];
    arguments.extend(checks);
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = pipe("tshark", &arguments, &capture());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "0.000000000|client/path-1||10.0.0.1||1|1|9899|1",
            "0.000000000|client/path-1||10.0.0.1||1|||1",
            "0.000000000|dropped|lost on wire|10.0.0.1||1|||1",
            "0.000000000|fd00::1|||fd00::2||1|9899|1",
            "1.000060123|10.0.0.2||10.0.0.1||1|1|9899|1",
            "1.000140123|fd00::2|||fd00::2||1|9899|1",
        ]
    );
}

#[test]
fn capinfos_accepts_the_file() {
    if missing("capinfos") {
        return;
    }
    let text = pipe("capinfos", &["-c", "-E", "-r", "-"], &capture());
    assert!(text.contains("Raw IP") && text.contains('6'), "{text}");
}
