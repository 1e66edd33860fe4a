//! `tun --lane` over two direct links in network namespaces.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use super::network::{End, Network, Running};
use super::tun::{self, CONNECT, REFLECTOR, has_nft, output};
use crate::judged::{Judged, LATEST_US, is_reached};

/// Reads a connection to its end, then sends the addresses of both ends, the digest of the read bytes, and 3 MiB. Replies to datagrams
/// with the address of their sender, in a process of its own: threads of one interpreter wait for each other.
const SERVER: &str = "
import hashlib, os, socket, threading
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(('10.99.0.1', 7002))
datagrams.settimeout(0.5)
serving = os.getpid()
if os.fork() == 0:
    while os.getppid() == serving:
        try:
            _, address = datagrams.recvfrom(100)
            datagrams.sendto(address[0].encode(), address)
        except TimeoutError:
            pass
    os._exit(0)
def serve(connection):
    peer, local = connection.getpeername()[0], connection.getsockname()
    try:
        received = b''.join(iter(lambda: connection.recv(65536), b''))
        digest = hashlib.sha256(received).hexdigest()
        connection.sendall(f'{peer} {local[0]}:{local[1]} {digest}\\n'.encode() + bytes(range(256)) * 12288)
    except OSError:
        pass
    connection.close()
def listen(listener):
    while True:
        threading.Thread(target=serve, args=listener.accept()[:1]).start()
for target in ('10.99.0.1', 7000), ('10.99.0.2', 7001), ('fd99::1', 7000):
    family = socket.AF_INET6 if ':' in target[0] else socket.AF_INET
    threading.Thread(target=listen, args=(socket.create_server(target, family=family),)).start()
print('listening')
";

/// Sends 3 MiB to a server and half-closes. Prints the reply, with a digest in place of its bytes.
const EXCHANGE: &str = "
import hashlib, socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
connection.sendall(bytes(range(256)) * 12288)
connection.shutdown(socket.SHUT_WR)
report, answer = b''.join(iter(lambda: connection.recv(65536), b'')).split(b'\\n', 1)
print(report.decode(), hashlib.sha256(answer).hexdigest())
";

/// Prints the reply to a datagram.
const DATAGRAM: &str = "
import socket
connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connection.connect(('10.99.0.1', 7002))
connection.settimeout(1)
for _ in range(30):
    connection.send(b'?')
    try:
        print(connection.recv(100).decode())
        break
    except TimeoutError:
        pass
";

/// Digest of 3 MiB, in which each byte follows its predecessor.
const DIGEST: &str = "f6dd7fec8584ad00219a447071c1fa368a1caee4d9c146083d233713ddccd2c0";

fn network() -> Option<Network> {
    let network = tun::network().filter(|_| has_nft())?;
    network.server.run("ip addr add 10.99.0.2/32 dev lo; ip addr add fd99::1/128 dev lo");
    Some(network)
}

fn start(network: &Network) -> (Running, Running) {
    tun::start(network, &["--allow", "10.99.0.0/24:*", "--allow", "[fd99::1]:*"], &["--lane"])
}

fn python(network: &Network, source: &str, arguments: &[&str]) -> String {
    output(network, End::Client, &[&["python3", "-c", source], arguments].concat())
}

fn tables(network: &Network) -> String {
    output(network, End::Client, &["nft", "list", "tables"])
}

#[test]
fn connections_keep_bytes_and_target_and_datagrams_stay_packets() {
    let Some(network) = network() else { return };
    let _server = network.python(End::Server, SERVER);
    let (mut gateway, mut client) = start(&network);
    for (host, port) in [("10.99.0.1", "7000"), ("10.99.0.2", "7001"), ("fd99::1", "7000")] {
        // The gateway connects from its own address.
        let expected = format!("{host} {host}:{port} {DIGEST} {DIGEST}");
        assert_eq!(python(&network, EXCHANGE, &[host, port]), expected);
    }
    let seen = python(&network, DATAGRAM, &[]);
    assert!(seen.starts_with("10.177.0."), "{seen}");
    assert_eq!(tables(&network), "table inet anabranch_lane");
    client.interrupt();
    let packets = client.event("packets");
    assert!((1..100).contains(&packets["sent"].as_u64().expect("a number")), "{packets}");
    let end = client.event("end");
    let bytes = 3 * 3 * (1 << 20);
    assert_eq!((&end["complete"], &end["to_peer_bytes"]), (&3.into(), &bytes.into()), "{end}");
    assert_eq!(tables(&network), "");
    gateway.interrupt();
    let end = gateway.event("end");
    assert_eq!((&end["complete"], &end["from_peer_bytes"]), (&3.into(), &bytes.into()), "{end}");
}

#[test]
fn refused_and_forbidden_targets_reset_the_connection_and_are_counted() {
    let Some(network) = network() else { return };
    let (_gateway, mut client) = start(&network);
    for target in ["10.99.0.1", "10.98.0.1"] {
        let failed = python(&network, CONNECT, &[target, "30"]);
        assert!(failed.contains("reset"), "{target}: {failed}");
    }
    client.interrupt();
    let end = client.event("end");
    assert_eq!((&end["failed"]["refused"], &end["failed"]["forbidden"]), (&1.into(), &1.into()), "{end}");
}

#[test]
fn lane_of_a_killed_process_redirects_nothing_and_is_reverted() {
    let Some(network) = network() else { return };
    let _reflector = network.python(End::Server, REFLECTOR);
    let (_gateway, client) = start(&network);
    assert_eq!(python(&network, CONNECT, &["10.99.0.1", "30"]), "10.99.0.1");
    drop(client);
    network.client.run("ip route add 10.99.0.1 via 10.91.1.2");
    assert_eq!(python(&network, CONNECT, &["10.99.0.1", "30"]), "10.91.1.1");
    assert_eq!(tables(&network), "table inet anabranch_lane");
    network.start(End::Client, &["tun", "--clean", "--json"]).wait();
    assert_eq!(tables(&network), "");
}

#[test]
fn restart_of_the_gateway_resets_connections_and_later_ones_work() {
    const HELD: &str = "
import socket
connection = socket.create_connection(('10.99.0.1', 7000), timeout=60)
connection.sendall(b'x')
print('{\"event\": \"connected\"}')
try:
    connection.recv(100)
except ConnectionResetError:
    print('{\"event\": \"reset\"}')
";
    let Some(network) = network() else { return };
    let _server = network.python(End::Server, SERVER);
    let (gateway, mut client) = start(&network);
    let mut held = network.python(End::Client, HELD);
    held.event("connected");
    client.event("opened");
    drop(gateway);
    client.event("lost");
    held.event("reset");
    let _gateway = network.start(End::Server, &["gateway", "--json", "--tun", "--allow", "10.99.0.0/24:*"]);
    client.event("restored");
    assert!(python(&network, EXCHANGE, &["10.99.0.1", "7000"]).ends_with(DIGEST));
}

/// Runs `tun --lane`, which fails, and returns its message.
fn failure(network: &Network, path: Option<&Path>) -> String {
    let mut command = network.anabranch(End::Client, &["tun", "10.91.1.2", "--lane"]);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.stderr(Stdio::piped()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn missing_permission_and_missing_nftables_are_errors_with_a_remedy() {
    let Some(network) = network() else { return };
    let gateway = network.start(End::Server, &["gateway", "--json", "--tun", "--no-lane"]);
    let message = failure(&network, None);
    assert!(message.contains("does not permit --lane; start it without --no-lane"), "{message}");
    drop(gateway);
    let _gateway = network.start(End::Server, &["gateway", "--json", "--tun"]);
    let folder = network.path("programs");
    fs::create_dir_all(&folder).expect("a folder");
    for program in ["ip", "nsenter"] {
        let found = output(&network, End::Client, &["sh", "-c", &format!("command -v {program}")]);
        symlink(found, folder.join(program)).expect("a link");
    }
    let message = failure(&network, Some(&folder));
    assert!(message.contains("--lane: `nft -f -`") && message.contains("install nftables"), "{message}");
    assert!(!output(&network, End::Client, &["ip", "link"]).contains("anabranch0"));
}

/// Sends bytes without end.
const SOURCE: &str = "
import socket, threading
def serve(connection):
    try:
        while True:
            connection.sendall(bytes(65536))
    except OSError:
        pass
listener = socket.create_server(('10.99.0.1', 7003))
print('listening')
while True:
    threading.Thread(target=serve, args=listener.accept()[:1]).start()
";

/// Prints the number of bytes that one connection receives within 4 s.
const RECEIVE: &str = "
import socket, time
connection = socket.create_connection(('10.99.0.1', 7003), timeout=30)
end, received = time.monotonic() + 4, 0
while time.monotonic() < end:
    received += len(connection.recv(65536))
print(received)
";

const LINK: &str = "rate=10Mbit,delay=10ms,queue=100ms";
/// Bytes that a link carries in the time of a measurement.
const LINK_BYTES: f64 = 10e6 / 8.0 * 4.0;

/// Starts a relay for each of these links, a gateway and a client.
fn open(network: &Network, links: &[u8], more: &[&str]) -> (Vec<Running>, Running, Running) {
    let mut relays: Vec<Running> = Vec::new();
    let mut paths: Vec<String> = Vec::new();
    for link in links {
        let (listen, to) = (format!("127.0.0.{}:0", 80 + link), format!("10.91.{link}.2:9899"));
        let mut relay = network
            .start(End::Client, &["relay", "--json", "--listen", &listen, "--to", &to, "--link", LINK]);
        let address = relay.event("listening")["listen"].as_str().expect("an address").to_owned();
        paths.extend(["--path".to_owned(), format!("127.0.0.{}", 90 + link), "--to".to_owned(), address]);
        relays.push(relay);
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (gateway, client) = tun::start(network, &["--allow", "10.99.0.0/24:*"], &[&paths, more].concat());
    (relays, gateway, client)
}

/// Returns the bytes of one download over these links, and whether the relays were in time.
fn download(network: &Network, links: &[u8], more: &[&str]) -> (f64, bool) {
    let (relays, _gateway, _client) = open(network, links, more);
    let received = python(network, RECEIVE, &[]).parse().expect("a number");
    (received, were_in_time(relays))
}

/// Ends the relays. Returns `true` if they were in time.
fn were_in_time(mut relays: Vec<Running>) -> bool {
    let late = |relay: &mut Running| {
        relay.interrupt();
        let totals = relay.event("totals");
        ["forward", "reverse"].map(|way| totals[way]["late_mean_us"].as_f64().expect("a time"))
    };
    relays.iter_mut().all(|relay| late(relay).into_iter().all(|late| late < LATEST_US))
}

#[test]
fn one_connection_over_two_equal_links_has_170_percent_of_one() {
    let Some(network) = network() else { return };
    let _source = network.python(End::Server, SOURCE);
    let (packets, _) = download(&network, &[1, 2], &[]);
    is_reached(|| {
        let ((one, first), (both, second)) =
            (download(&network, &[1], &["--lane"]), download(&network, &[1, 2], &["--lane"]));
        let figures = format!("{one} bytes over one link, {both} over two, {packets} as packets");
        println!("{figures}");
        Judged::new(first && second, one >= 0.8 * LINK_BYTES && both >= 1.7 * one, figures)
    });
}

/// Prints round-trip times of datagrams in ms: the median of idle ones, and the median and ninth decile beside uploads. The uploads
/// have a process of their own, because threads of one interpreter wait for each other.
const BESIDE: &str = "
import os, socket, sys, threading, time
def upload():
    connection = socket.create_connection(('10.99.0.1', 7000), timeout=60)
    while True:
        connection.sendall(bytes(65536))
def sorted_times():
    times = []
    for _ in range(60):
        begun = time.monotonic()
        datagrams.send(b'?')
        datagrams.recv(100)
        times.append(time.monotonic() - begun)
        time.sleep(0.02)
    return sorted(time * 1000 for time in times)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.connect(('10.99.0.1', 7002))
datagrams.settimeout(30)
idle = sorted_times()
measuring = os.getpid()
if os.fork() == 0:
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=upload, daemon=True).start()
    while os.getppid() == measuring:
        time.sleep(0.1)
    os._exit(0)
time.sleep(3)
beside = sorted_times()
print(idle[30], beside[30], beside[54], flush=True)
";

/// Measures datagrams beside this number of uploads until half of them return within this time in ms of idle ones, and nine of ten
/// within twice that time.
#[track_caller]
fn assert_datagrams_beside(uploads: usize, within_ms: f64) {
    let Some(network) = network() else { return };
    let _server = network.python(End::Server, SERVER);
    is_reached(|| {
        let (relays, _gateway, _client) = open(&network, &[1, 2], &["--lane"]);
        let printed = python(&network, BESIDE, &[&uploads.to_string()]);
        let figures = format!("{printed} ms idle and beside");
        println!("{figures}");
        let times: Vec<f64> = printed.split(' ').map(|time| time.parse().expect("a time")).collect();
        let [idle, median, decile] = times[..] else { panic!("{figures}") };
        let is_reached = median < idle + within_ms && decile < idle + 2.0 * within_ms;
        Judged::new(were_in_time(relays), is_reached, figures)
    });
}

#[test]
fn median_of_datagrams_beside_eight_uploads_is_within_20_ms_of_idle() {
    assert_datagrams_beside(8, 20.0);
}

#[test]
fn median_of_datagrams_beside_64_uploads_is_within_50_ms_of_idle() {
    assert_datagrams_beside(64, 50.0);
}
