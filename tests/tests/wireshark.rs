//! Wireshark dissects every packet of a transfer, and finds every checksum right.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use crate::rig::exchange::Exchange;
use crate::rig::messages::mixed;
use crate::rig::{address, association, at, craft, endpoint};
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::{AssociationEvent, Encapsulation, Endpoint, EndpointConfig};
use anabranch_sim::pcapng::{PcapngTap, PcapngWriter};
use anabranch_sim::{
    Datagram, HostId, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World,
};
use anabranch_wire::{DataRepr, Tsn};

const UDP_PORT: u16 = 9899;
const PATHS: u8 = 2;
const UDP: Encapsulation = Encapsulation::Udp { local_port: UDP_PORT, remote_port: UDP_PORT };

/// Returns `true` if the test may pass without tshark. The question arises only if tshark is missing.
fn may_be_skipped() -> bool {
    let missing =
        Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    let skip = missing && std::env::var_os("ANABRANCH_SKIP_TSHARK").is_some();
    assert!(!missing || skip, "tshark is not installed; install it or set ANABRANCH_SKIP_TSHARK");
    skip
}

/// Dissection of one packet by tshark.
#[derive(Debug)]
struct Dissected {
    checksum: String,
    malformed: String,
    chunks: Vec<u8>,
}

fn dissect(capture: &[u8], more: &[&str]) -> Vec<Dissected> {
    // Other spellings of the preference are silently ignored, and then no checksum is verified.
    let fields = ["sctp.checksum.status", "_ws.malformed", "sctp.chunk_type"];
    let mut arguments = vec!["-r", "-", "-o", "sctp.checksum:CRC 32c", "-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    arguments.extend(more);
    let mut child = Command::new("tshark")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("tshark starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    let input = capture.to_vec();
    // It runs in a separate thread, since tshark may stop reading until its output is read.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("tshark ends");
    writer.join().expect("no panic").expect("tshark reads everything");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("it writes text");
    text.lines().map(parse).collect()
}

fn parse(line: &str) -> Dissected {
    let mut columns = line.split('|').map(str::to_owned);
    let mut next = || columns.next().expect("there are three columns");
    let (checksum, malformed, chunks) = (next(), next(), next());
    Dissected {
        checksum,
        malformed,
        chunks: chunks.split(',').filter_map(|kind| kind.parse().ok()).collect(),
    }
}

fn host(world: &World, node: u8, carried: Encapsulation, application: Exchange) -> SctpHost<Exchange> {
    let addresses = (0..PATHS).map(|path| address(path, node)).collect();
    let config = EndpointConfig { encapsulation: carried, ..endpoint(addresses, association("sctp")) };
    let endpoint = Endpoint::new(Time::ZERO, config, world.seeds().entropy(&["node", &node.to_string()]));
    SctpHost::new(endpoint, carried, application)
}

fn add_links(world: &mut World, one: IpAddr, other: IpAddr) {
    for (from, to) in [(one, other), (other, one)] {
        let (rate, delay) = (Rate::from_bps(10_000_000), Span::from_millis(20));
        let link = LinkConfig::new(from.to_string(), rate, delay, QueueConfig::packets(50))
            .with_loss(LossModel::Bernoulli(0.03), LossPlace::BeforeQueue);
        let link = world.add_link(link).expect("a new name");
        world.add_route(from, to, &[link], None).expect("both ends exist");
    }
}

/// Returns the capture of a two-homed transfer with losses from the first INIT to the last SHUTDOWN-COMPLETE.
fn capture(carried: Encapsulation) -> Vec<u8> {
    let mut world = World::new(Seeds::new(5, 0));
    let (mine, theirs) = (mixed(1, 400_000, 4), mixed(2, 100_000, 4));
    let pairs: Vec<_> = (0..PATHS).map(|path| (address(path, 1), address(path, 2))).collect();
    let one = Exchange::new(Some(pairs.clone()), &mine, theirs.len());
    let other = Exchange::new(None, &theirs, mine.len());
    let mut hosts: Vec<HostId> = Vec::new();
    for (node, application) in [(1, one), (2, other)] {
        let addresses: Vec<_> = (0..PATHS).map(|path| address(path, node)).collect();
        let host = host(&world, node, carried, application);
        hosts.push(world.add_host(Box::new(host), &addresses).expect("new addresses"));
    }
    for (one, other) in pairs {
        add_links(&mut world, one, other);
    }
    world.set_tap(Box::new(PcapngTap::new(Vec::new())));
    world.run_until(at(120_000));
    let sender = world.host::<SctpHost<Exchange>>(hosts[0]);
    assert!(sender.application.events.contains(&AssociationEvent::Closed), "it ends gracefully");
    let id = sender.application.id.expect("it was opened");
    let statistics = sender.endpoint.association(id).expect("it is not forgotten").statistics();
    assert!(statistics.retransmissions > 2, "{statistics:?}");
    world.host::<SctpHost<Exchange>>(hosts[1]).application.inbox.assert_is(&mine, "at the far end");
    world.take_tap::<PcapngTap<Vec<u8>>>().expect("it is there").finish().expect("memory takes it all")
}

fn all_is_well(packets: &[Dissected]) {
    assert!(packets.len() > 500, "{} packets", packets.len());
    let mut kinds = BTreeSet::new();
    for (number, packet) in packets.iter().enumerate() {
        assert_eq!((packet.checksum.as_str(), packet.malformed.as_str()), ("1", ""), "packet {}", number + 1);
        kinds.extend(packet.chunks.iter().copied());
    }
    let expected = [0, 1, 2, 3, 4, 5, 7, 8, 10, 11, 14];
    assert!(expected.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn wireshark_finds_nothing_malformed_and_every_checksum_right() {
    if !may_be_skipped() {
        all_is_well(&dissect(&capture(Encapsulation::None), &[]));
    }
}

#[test]
fn wireshark_understands_a_transfer_in_udp() {
    if !may_be_skipped() {
        all_is_well(&dissect(&capture(UDP), &["-d", "udp.port==9899,sctp"]));
    }
}

/// Returns a capture of packets that were never sent.
fn planted(packets: &[Vec<u8>], encapsulation: anabranch_sim::Encapsulation) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).expect("memory takes it");
    let interface = writer.add_interface("planted").expect("memory takes it");
    for payload in packets {
        let (source, destination) = (address(0, 1), address(0, 2));
        let datagram = Datagram { source, destination, encapsulation, payload };
        writer.packet(interface, Time::ZERO, datagram, None).expect("memory takes it");
    }
    writer.finish().expect("memory takes it")
}

#[test]
fn wireshark_sees_a_planted_wrong_checksum_and_a_planted_malformed_chunk() {
    if may_be_skipped() {
        return;
    }
    let good = craft::packet(7, |w| w.data(&DataRepr { tsn: Tsn::new(1), ..DataRepr::default() }, b"abcd"));
    let mut wrong = good.clone();
    wrong[30] ^= 1;
    let mut overlong = craft::packet(7, |w| w.shutdown(Tsn::new(1)));
    overlong[15] = 200;
    craft::fix_checksum(&mut overlong);
    let udp = anabranch_sim::Encapsulation::Udp { source_port: UDP_PORT, destination_port: UDP_PORT };
    for encapsulation in [anabranch_sim::Encapsulation::None, udp] {
        let capture = planted(&[good.clone(), wrong.clone(), overlong.clone()], encapsulation);
        let packets = dissect(&capture, &["-d", "udp.port==9899,sctp"]);
        let statuses: Vec<_> = packets.iter().map(|p| p.checksum.as_str()).collect();
        assert_eq!(statuses, ["1", "0", "1"]);
        let malformed: Vec<_> = packets.iter().map(|p| !p.malformed.is_empty()).collect();
        assert_eq!(malformed, [false, false, true]);
    }
}
