//! `tun` and `gateway --tun` over two direct links in network namespaces.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use super::network::{End, Network, Running, assert_cut_links_stop_no_download};

/// Serves the folder `served` over HTTP on port 8000 of all addresses.
const WEB_SERVER: &str = "
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='served')
server = http.server.ThreadingHTTPServer(('', 8000), handler)
sys.stderr = open('server.log', 'w')
print('listening')
server.serve_forever()
";

/// Downloads each file from an address behind the gateway, one connection for each.
const DOWNLOAD: &str = "
import shutil, urllib.request
print('started')
for number in range(14):
    with urllib.request.urlopen(f'http://10.99.0.1:8000/{number}', timeout=30) as answer, open(f'got/{number}', 'wb') as file:
        shutil.copyfileobj(answer, file, 16384)
";

/// Prints the address that a server sees, or the error.
pub(super) const CONNECT: &str = "
import socket, sys
try:
    connection = socket.create_connection((sys.argv[1], 7000), timeout=float(sys.argv[2]))
    print(connection.recv(100).decode())
except OSError as error:
    print('failed', error)
";

/// Reports to each client its address.
pub(super) const REFLECTOR: &str = "
import socket
family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
listener = socket.create_server(('', 7000), family=family, dualstack_ipv6=family == socket.AF_INET6)
print('listening')
while True:
    connection, address = listener.accept()
    connection.sendall(address[0].removeprefix('::ffff:').encode())
    connection.close()
";

/// Returns `true` if nftables are installed.
pub(super) fn has_nft() -> bool {
    let has = Command::new("nft").arg("-v").output().is_ok();
    if !has {
        eprintln!("skipped: nft is not installed");
    }
    has
}

/// Returns a network with 10.99.0.1 behind the gateway, or `None` if TUN devices are not permitted.
pub(super) fn network() -> Option<Network> {
    let network = Network::new()?;
    if File::options().read(true).write(true).open("/dev/net/tun").is_err() {
        eprintln!("skipped: TUN devices are not permitted here");
        return None;
    }
    network.namespace(End::Server).run("ip addr add 10.99.0.1/32 dev lo; ip addr add 10.98.0.1/32 dev lo");
    Some(network)
}

pub(super) fn start(network: &Network, gateway: &[&str], tun: &[&str]) -> (Running, Running) {
    let gateway = network.start(End::Server, &[&["gateway", "--json", "--tun"], gateway].concat());
    let mut client = network.start(End::Client, &[&["tun", "10.91.1.2", "--json"], tun].concat());
    client.event("tun");
    (gateway, client)
}

pub(super) fn output(network: &Network, end: End, words: &[&str]) -> String {
    let output = network.namespace(end).enter(words).output().expect("it starts");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

pub(super) fn rules(network: &Network) -> [String; 2] {
    ["-4", "-6"].map(|family| output(network, End::Client, &["ip", family, "rule"]))
}

#[test]
fn downloads_through_the_tunnel_survive_cut_links() {
    let Some(network) = network() else { return };
    network.files("served", 14);
    fs::create_dir_all(network.path("got")).expect("a folder");
    let _web = network.python(End::Server, WEB_SERVER);
    let (mut gateway, mut client) = start(&network, &["--allow", "10.99.0.1:*"], &[]);
    assert_cut_links_stop_no_download(&network, network.python(End::Client, DOWNLOAD));
    client.interrupt();
    let packets = client.event("packets");
    assert!(packets["received"].as_u64().expect("a number") > 15_000, "{packets}");
    assert_eq!((&packets["dropped_spoofed"], &packets["dropped_malformed"]), (&0.into(), &0.into()));
    gateway.interrupt();
    assert_eq!(gateway.event("packets")["dropped_malformed"], 0);
}

#[test]
fn connection_survives_a_restart_of_the_gateway() {
    const ECHO: &str = "
import socket
listener = socket.create_server(('', 7000))
print('listening')
connection, _ = listener.accept()
while True:
    connection.sendall(connection.recv(100))
";
    const ECHOES: &str = "
import socket, sys
connection = socket.create_connection(('10.99.0.1', 7000), timeout=30)
for number in range(2):
    connection.sendall(b'x')
    print(connection.recv(100).decode(), flush=True)
    sys.stdin.readline()
";
    let Some(network) = network() else { return };
    let _echo = network.python(End::Server, ECHO);
    let (gateway, mut client) = start(&network, &["--allow", "10.99.0.1:*"], &[]);
    let mut echoes = network.namespace(End::Client).enter(&["python3", "-u", "-c", ECHOES]);
    let mut echoes = echoes.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(echoes.stdout.take().expect("a pipe")));
    assert_eq!(lines.next().expect("a line").expect("text"), "x");
    drop(gateway);
    client.event("lost");
    let _gateway = network.start(End::Server, &["gateway", "--json", "--tun", "--allow", "10.99.0.1:*"]);
    client.event("restored");
    drop(echoes.stdin.take());
    assert_eq!(lines.next().expect("a line").expect("text"), "x");
    assert!(echoes.wait().expect("it ends").success());
}

#[test]
fn routes_and_dns_are_reverted_at_the_end_and_after_a_crash() {
    let Some(network) = network() else { return };
    let previous = "nameserver 192.0.2.1\n";
    fs::write(network.path("resolv.conf"), previous).expect("written");
    let dns = || fs::read_to_string(network.path("resolv.conf")).expect("text");
    let before = rules(&network);
    let tun = ["--dns", "10.99.0.1"];
    let (gateway, mut client) = start(&network, &["--allow", "10.99.0.1:*"], &tun);
    assert!(dns().ends_with("nameserver 10.99.0.1\n"), "{}", dns());
    assert!(output(&network, End::Client, &["ip", "route", "get", "10.99.0.1"]).contains("dev anabranch0"));
    assert!(output(&network, End::Client, &["ip", "route", "get", "10.91.1.2"]).contains("dev c1"));
    assert!(!rules(&network)[1].is_empty() && rules(&network) != before);
    client.interrupt();
    client.event("packets");
    assert_eq!((rules(&network), dns().as_str()), (before.clone(), previous));

    let mut client = network.start(End::Client, &[&["tun", "10.91.1.2", "--json"], &tun[..]].concat());
    client.event("tun");
    // Killed without notice.
    drop(client);
    assert_ne!((rules(&network), dns().as_str()), (before.clone(), previous));
    assert!(!output(&network, End::Client, &["ip", "link"]).contains("anabranch0"));
    let mut clean = network.start(End::Client, &["tun", "--clean", "--json"]);
    assert!(clean.event("reverted")["changes"].as_u64() >= Some(6));
    clean.wait();
    assert_eq!((rules(&network), dns().as_str()), (before, previous));
    drop(gateway);
}

#[test]
fn gateway_translates_addresses_and_forbids_private_targets() {
    let Some(network) = network() else { return };
    if !has_nft() {
        return;
    }
    let middle = network.middle.id();
    network.server.run(&format!(
        "ip link add net0 type veth peer name net1 netns {middle}; \
         ip addr add 93.184.215.1/24 dev net0; ip link set net0 up"
    ));
    network.middle.run("ip addr add 93.184.215.2/24 dev net1; ip link set net1 up");
    let _reflector = network.python(End::Server, REFLECTOR);
    let _outside = network.python_in(&network.middle, REFLECTOR);
    let (mut gateway, mut client) = start(&network, &["--nat", "net0"], &[]);
    let connect = |address: &str, timeout: &str| {
        output(&network, End::Client, &["python3", "-c", CONNECT, address, timeout])
    };
    assert_eq!(connect("93.184.215.2", "30"), "93.184.215.1");
    for private in ["10.98.0.1", "10.177.0.1"] {
        assert!(connect(private, "2").starts_with("failed"));
    }
    client.interrupt();
    client.event("packets");
    gateway.interrupt();
    assert!(gateway.event("packets")["dropped_forbidden"].as_u64() >= Some(2));
    gateway.event("end");
    assert_eq!(output(&network, End::Server, &["nft", "list", "tables"]), "");
    assert_eq!(output(&network, End::Server, &["cat", "/proc/sys/net/ipv4/ip_forward"]), "0");
}
