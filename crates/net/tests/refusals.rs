//! Attempts to open an association that the system or the network refuses.
//!
//! Tests with forged ICMP messages start this program again in its own network namespace, where it may send them.

#![cfg(target_os = "linux")]

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_core::time::Time;
use anabranch_net::{
    Config, ConnectError, Datagram, Endpoint, Observer, PathAddress, Peer, Protection, Refusal, SendOptions,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::namespace::in_namespace;

/// Far above the time of a refusal on a busy machine, and far below [`CONNECT_TIMEOUT`].
const LIMIT: Duration = Duration::from_secs(120);
/// Time after which an attempt ends without a refusal.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3600);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

fn ip(node: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, node])
}

fn patient() -> Config {
    Config::new("cmt").expect("a scheme").connect_timeout(CONNECT_TIMEOUT)
}

fn endpoint(nodes: &[IpAddr]) -> Endpoint {
    let builder = Endpoint::builder(Protection::Insecure);
    nodes
        .iter()
        .fold(builder, |builder, ip| builder.local(SocketAddr::new(*ip, 0)))
        .bind()
        .expect("an endpoint")
}

fn closed_port(address: IpAddr) -> SocketAddr {
    UdpSocket::bind(SocketAddr::new(address, 0)).expect("a socket").local_addr().expect("bound")
}

fn peer(paths: &[(IpAddr, SocketAddr)]) -> Peer {
    Peer::new(paths.iter().map(|(local, remote)| PathAddress::over_udp(*local, *remote)))
}

#[track_caller]
fn refusals(error: Option<ConnectError>) -> Vec<(SocketAddr, Refusal)> {
    let Some(ConnectError::Unreachable(refused)) = error else { panic!("{error:?}") };
    let remote = |path: PathAddress| SocketAddr::new(path.remote, path.udp_port.expect("a port"));
    refused.iter().map(|refused| (remote(refused.path), refused.refusal)).collect()
}

#[tokio::test]
async fn closed_port_ends_the_attempt_and_is_named() {
    for local in [ip(11), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])] {
        let remote = closed_port(local);
        let client = endpoint(&[local]);
        let error = within(client.connect(peer(&[(local, remote)]), patient())).await.err();
        let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(text.starts_with(&format!("port {} of {local} is closed", remote.port())), "{text}");
        assert_eq!(refusals(error), [(remote, Refusal::PortClosed)]);
    }
}

#[tokio::test]
async fn path_that_works_wins_over_one_that_is_refused() {
    let server = Endpoint::builder(Protection::Insecure).local(SocketAddr::new(ip(2), 0)).accept(patient());
    let server = server.bind().expect("a server");
    let (local, remote) = (ip(12), server.local_addresses()[0]);
    let client = endpoint(&[local]);
    let paths = [(local, closed_port(ip(3))), (local, remote)];
    let association = within(client.connect(peer(&paths), patient())).await.expect("connected");
    within(association.send("over the second path", SendOptions::default())).await.expect("taken");
    let theirs = within(server.accept()).await.expect("accepted");
    let message = within(theirs.recv()).await.expect("no error").expect("a message");
    assert_eq!(&message.payload[..], b"over the second path");
}

#[tokio::test]
async fn attempt_lasts_while_one_path_is_silent() {
    let silent = UdpSocket::bind(SocketAddr::new(ip(4), 0)).expect("a socket");
    let local = ip(13);
    let client = endpoint(&[local]);
    let paths = [(local, closed_port(ip(3))), (local, silent.local_addr().expect("bound"))];
    let config = patient().connect_timeout(Duration::from_secs(1));
    let error = within(client.connect(peer(&paths), config)).await.err();
    assert_eq!(error, Some(ConnectError::NoAnswer));
}

#[tokio::test]
async fn attempt_ends_when_every_path_is_refused() {
    let local = ip(14);
    let client = endpoint(&[local]);
    let closed = [closed_port(ip(3)), closed_port(ip(5))];
    let error = within(client.connect(peer(&closed.map(|remote| (local, remote))), patient())).await.err();
    assert_eq!(refusals(error), closed.map(|remote| (remote, Refusal::PortClosed)));
}

#[tokio::test]
async fn refused_attempt_leaves_other_associations_of_the_host_alone() {
    let server = Endpoint::builder(Protection::Insecure).local(SocketAddr::new(ip(6), 0)).accept(patient());
    let server = server.bind().expect("a server");
    let (local, remote) = (ip(15), server.local_addresses()[0]);
    let client = endpoint(&[local]);
    let association = within(client.connect(peer(&[(local, remote)]), patient())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    for round in 0..20_u8 {
        let error = within(client.connect(peer(&[(local, closed_port(ip(3)))]), patient())).await.err();
        assert_eq!(refusals(error).len(), 1, "round {round}");
        within(association.send(vec![round; 4000], SendOptions::default())).await.expect("taken");
        let message = within(theirs.recv()).await.expect("no error").expect("a message");
        assert_eq!(message.payload[..], [round; 4000]);
    }
    let lost: u64 = association.paths().await.iter().map(|path| path.lost_bytes).sum();
    assert_eq!(lost, 0);
    assert_eq!(client.statistics().await.send_failures, 0);
}

/// Codes of "Destination Unreachable".
const HOST_UNREACHABLE: u8 = 1;
const PORT_UNREACHABLE: u8 = 3;

/// Sender of ICMP messages that quote a UDP datagram.
struct Forger {
    socket: Socket,
}

impl Forger {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).expect("a raw socket");
        Forger { socket }
    }

    fn forge(&self, code: u8, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else { panic!("IPv6") };
        let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
        message.extend(ip_header(source, destination, 28 + payload.len()));
        message.extend(from.port().to_be_bytes());
        message.extend(to.port().to_be_bytes());
        message.extend((8 + payload.len() as u16).to_be_bytes());
        message.extend([0, 0]);
        message.extend(payload);
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let sent = self.socket.send_to(&message, &SocketAddr::new(from.ip(), 0).into());
        assert_eq!(sent.expect("sent"), message.len());
    }
}

fn ip_header(source: Ipv4Addr, destination: Ipv4Addr, length: usize) -> [u8; 20] {
    let mut header = [0; 20];
    header[..4].copy_from_slice(&[0x45, 0, (length >> 8) as u8, length as u8]);
    header[8..10].copy_from_slice(&[64, 17]);
    header[12..16].copy_from_slice(&source.octets());
    header[16..].copy_from_slice(&destination.octets());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[test]
fn forged_icmp_message_ends_an_attempt_only_with_our_tag() {
    in_namespace("refusals::forged", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn forged() {
    let silent = UdpSocket::bind(SocketAddr::new(ip(4), 0)).expect("a socket");
    let to = silent.local_addr().expect("bound");
    let client = endpoint(&[ip(11)]);
    let connecting =
        tokio::spawn(async move { client.connect(peer(&[(ip(11), to)]), patient()).await.err() });
    let silent = tokio::net::UdpSocket::from_std({
        silent.set_nonblocking(true).expect("set");
        silent
    })
    .expect("a socket");
    let mut init = [0; 2000];
    let (length, from) = within(silent.recv_from(&mut init)).await.expect("an INIT");
    let init = &init[..length];
    let forger = Forger::new();
    // If one of these were believed, the attempt would end with "unreachable".
    let forge = |to: SocketAddr, payload: &[u8]| forger.forge(HOST_UNREACHABLE, from, to, payload);
    for length in 0..20 {
        forge(to, &init[..length]);
    }
    for at in [0, 3, 7, 12, 16, 19] {
        let mut changed = init.to_vec();
        changed[at] ^= 1;
        forge(to, &changed);
    }
    forge(SocketAddr::new(to.ip(), to.port() ^ 1), init);
    forge(SocketAddr::new(ip(5), to.port()), init);
    forger.forge(PORT_UNREACHABLE, from, to, init);
    let error = within(connecting).await.expect("it ends");
    assert_eq!(refusals(error), [(to, Refusal::PortClosed)]);
}

/// Source, destination and UDP payload of a datagram.
type Sent = (SocketAddr, SocketAddr, Vec<u8>);

/// First datagram that an endpoint sends.
#[derive(Clone, Default)]
struct First(Arc<Mutex<Option<Sent>>>);

impl Observer for First {
    fn datagram(&mut self, _at: Time, datagram: &Datagram<'_>) {
        let Datagram { local, remote, payload, .. } = *datagram;
        self.0.lock().expect("the lock").get_or_insert_with(|| (local, remote, payload.to_vec()));
    }
}

#[test]
fn icmp_message_about_our_init_ends_nothing_once_the_peer_has_answered() {
    in_namespace("refusals::answered", &[]);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn answered() {
    let server = Endpoint::builder(Protection::Insecure).local(SocketAddr::new(ip(2), 0)).accept(patient());
    let server = server.bind().expect("a server");
    let first = First::default();
    let client =
        Endpoint::builder(Protection::Insecure).local(SocketAddr::new(ip(11), 0)).observer(first.clone());
    let client = client.bind().expect("a client");
    let paths = [(ip(11), server.local_addresses()[0])];
    let association = within(client.connect(peer(&paths), patient())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    let (from, to, init) = first.0.lock().expect("the lock").clone().expect("an INIT");
    let forger = Forger::new();
    for round in 0..50_u8 {
        forger.forge(PORT_UNREACHABLE, from, to, &init);
        within(association.send(vec![round; 2000], SendOptions::default())).await.expect("taken");
        let message = within(theirs.recv()).await.expect("no error").expect("a message");
        assert_eq!(message.payload[..], [round; 2000]);
    }
    assert_eq!(client.statistics().await.send_failures, 0);
}
