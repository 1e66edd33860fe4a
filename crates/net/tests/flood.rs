//! Floods of handshakes from one source, an IPv4 address or an IPv6 network (/64), at a protected endpoint. They take places only
//! from their own source.

#![allow(clippy::disallowed_macros, reason = "a test prints what it has measured")]

#[cfg(target_os = "linux")]
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_core::protection::{KeyManagementMethod, KeyManagementRoles, ProtectionMode};
use anabranch_core::time::{Rate, Span};
use anabranch_net::{Association, Config, Credentials, Endpoint, PathAddress, Peer, Protection};
use anabranch_relay::{Relay, RelayConfig};
use anabranch_sim::{LinkConfig, QueueConfig};
use anabranch_tests::credentials::{credentials, identity};
use anabranch_tests::hostile::craft::fix_checksum;

/// Number of places for associations without keys.
const PLACES: usize = 8;

/// Number of handshakes of a flood.
const FLOOD: u16 = 60;

/// Longer than any step takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

fn endpoint(address: IpAddr, protection: Protection, accepts: bool) -> Endpoint {
    let builder = Endpoint::builder(protection).local(SocketAddr::new(address, 0)).max_handshakes(PLACES);
    let builder = if accepts { builder.accept(Config::new("cmt").expect("a scheme")) } else { builder };
    builder.bind().expect("an endpoint")
}

fn protected(address: IpAddr, credentials: Credentials, accepts: bool) -> Endpoint {
    endpoint(address, Protection::dtls(credentials), accepts)
}

async fn connect(client: &Endpoint, server: &Endpoint, config: Config) -> Association {
    let path = PathAddress::over_udp(client.local_addresses()[0].ip(), server.local_addresses()[0]);
    let peer = Peer::new([path]).sctp_port(server.sctp_port());
    within(client.connect(peer, config)).await.expect("connected at the first attempt")
}

/// Returns the protection of a peer that negotiates the key management and never runs it.
fn wanted() -> anabranch_core::protection::Protection {
    anabranch_core::protection::Protection {
        mode: ProtectionMode::Strict,
        roles: KeyManagementRoles::Client,
        methods: vec![KeyManagementMethod::TLS],
        restart: false,
    }
}

/// Connects a peer that completes the cookie exchange and then stays silent.
async fn silent(address: IpAddr, server: &Endpoint) -> (Endpoint, Association) {
    let config = Config::new("cmt").expect("a scheme").with_core(|core| core.protection = Some(wanted()));
    let endpoint = endpoint(address, Protection::Insecure, false);
    let association = connect(&endpoint, server, config).await;
    (endpoint, association)
}

/// Connects a silent peer at `bystander` and a client at `client`, beside a flood from the addresses of one source.
async fn flood_leaves_others_alone(
    server: IpAddr,
    bystander: IpAddr,
    client: IpAddr,
    flood: impl Fn(u16) -> IpAddr,
) {
    let server = protected(server, credentials(2, &[1]), true);
    let (_keep, waiting) = silent(bystander, &server).await;
    let mut strangers = Vec::new();
    for number in 0..FLOOD {
        strangers.push(silent(flood(number), &server).await);
    }
    let keying = within(server.statistics()).await.keying;
    let gone = u64::from(FLOOD) + 1 - PLACES as u64;
    assert_eq!((keying.pending, keying.failed), (PLACES as u64, gone));
    assert!(!waiting.is_closed(), "the oldest handshake is of another source");
    let client = protected(client, credentials(1, &[2]), false);
    let (ours, theirs) = tokio::join!(
        connect(&client, &server, Config::new("cmt").expect("a scheme")),
        within(server.accept())
    );
    assert_eq!(theirs.expect("accepted").peer_identity(), Some(identity(1)));
    assert!(ours.is_open());
}

#[tokio::test]
async fn flood_from_one_address_ends_no_handshake_of_another() {
    let node = |last: u8| IpAddr::from([127, 0, 40, last]);
    flood_leaves_others_alone(node(1), node(2), node(3), |_| node(9)).await;
}

/// Runs a test, which is ignored otherwise, in its own network namespace, whose loopback interface has any address.
#[cfg(target_os = "linux")]
#[test]
fn flood_from_one_ipv6_network_counts_as_one_source() {
    let networks =
        ["1", "2", "3"].map(|network| format!("ip addr add fd00:0:0:{network}::1/64 dev lo nodad"));
    let hosts = (0..FLOOD).map(|host| format!("ip addr add fd00:0:0:9::{:x}/64 dev lo nodad", host + 1));
    let prepare: Vec<String> = networks.into_iter().chain(hosts).collect();
    crate::namespace::in_namespace("flood::ipv6_flood", &prepare);
}

#[tokio::test]
#[ignore = "runs in a namespace only"]
async fn ipv6_flood() {
    let at = |network: u16, host: u16| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, network, 0, 0, 0, host));
    flood_leaves_others_alone(at(1, 1), at(2, 1), at(3, 1), |number| at(9, number + 1)).await;
}

/// Returns common header and INIT of a client that negotiates protection, as sent over UDP.
async fn init_template() -> Vec<u8> {
    let target = tokio::net::UdpSocket::bind("127.0.40.30:0").await.expect("a socket");
    let config = Config::new("cmt").expect("a scheme").with_core(|core| core.protection = Some(wanted()));
    let client = endpoint("127.0.40.31".parse().expect("an address"), Protection::Insecure, false);
    let path = PathAddress::over_udp(client.local_addresses()[0].ip(), target.local_addr().expect("bound"));
    let connecting = client.connect(Peer::new([path]).sctp_port(5000), config);
    let mut init = vec![0; 2000];
    tokio::select! {
        received = target.recv(&mut init) => init.truncate(received.expect("an INIT")),
        _ = connecting => unreachable!("there is no answer"),
    }
    init
}

/// Returns the COOKIE ECHO that answers a packet with an INIT ACK.
fn cookie_echo(packet: &[u8]) -> Option<Vec<u8>> {
    const COOKIE: [u8; 2] = [0, 7];
    let (header, chunk) = (packet.get(..12)?, packet.get(12..).filter(|chunk| chunk.first() == Some(&2))?);
    let mut rest = chunk.get(20..)?;
    let cookie = loop {
        let length = usize::from(u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?])).max(4);
        if rest[..2] == COOKIE {
            break rest.get(4..length)?;
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    };
    let mut echo = [&header[2..4], &header[..2], &chunk[4..8], &[0; 4], &[10, 0]].concat();
    echo.extend((cookie.len() as u16 + 4).to_be_bytes());
    echo.extend(cookie);
    echo.resize(echo.len().next_multiple_of(4), 0);
    fix_checksum(&mut echo);
    Some(echo)
}

/// Completes this many cookie exchanges per second from one address and stays silent afterwards, until it is stopped. Returns the
/// number of exchanges.
fn flood_at(per_second: u32, server: SocketAddr, init: &[u8], stop: &AtomicBool) -> u32 {
    let socket = std::net::UdpSocket::bind("127.0.40.9:0").expect("a socket");
    socket.connect(server).expect("connected");
    socket.set_nonblocking(true).expect("set");
    let (began, mut sent, mut echoed, mut buffer) = (Instant::now(), 0_u32, 0, [0; 2000]);
    while !stop.load(Ordering::Relaxed) {
        while f64::from(sent) < began.elapsed().as_secs_f64() * f64::from(per_second) {
            let mut init = init.to_vec();
            init[..2].copy_from_slice(&(1024 + (sent % 60_000) as u16).to_be_bytes());
            init[16..20].copy_from_slice(&(sent + 1).to_be_bytes());
            fix_checksum(&mut init);
            let _ = socket.send(&init);
            sent += 1;
        }
        while let Ok(length) = socket.recv(&mut buffer) {
            if let Some(echo) = cookie_echo(&buffer[..length]) {
                let _ = socket.send(&echo);
                echoed += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    echoed
}

/// Prints the time that a client of another address takes to connect, for each flood and round-trip time: `cargo test -p
/// anabranch-net --test net -- --ignored --nocapture flood::measured`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute and prints figures"]
async fn measured_flood_delays_no_client_of_another_address() {
    let init = init_template().await;
    for (per_second, rtt_ms) in [(0, 100), (400, 100), (400, 300), (1200, 100), (1200, 300)] {
        let server = Endpoint::builder(Protection::dtls(credentials(2, &[1])))
            .local("127.0.40.1:0".parse().expect("an address"))
            .accept(Config::new("cmt").expect("a scheme"))
            .bind()
            .expect("an endpoint");
        let at = server.local_addresses()[0];
        let link = |name: &str| {
            let delay = Span::from_millis(rtt_ms / 2);
            LinkConfig::new(name, Rate::from_bps(100_000_000), delay, QueueConfig::packets(1000))
        };
        let listen = "127.0.40.20:0".parse().expect("an address");
        let mut relayed = RelayConfig::new(listen, at, link("there"), link("back"));
        relayed.from = Some("127.0.40.21".parse().expect("an address"));
        let relay = Relay::start(relayed).expect("a relay");
        let stop = Arc::new(AtomicBool::new(false));
        let (ending, template) = (Arc::clone(&stop), init.clone());
        let mut with_port = template;
        with_port[2..4].copy_from_slice(&server.sctp_port().to_be_bytes());
        let flood = std::thread::spawn(move || match per_second {
            0 => 0,
            _ => flood_at(per_second, at, &with_port, &ending),
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut times = Vec::new();
        for _ in 0..5 {
            let client = protected("127.0.40.22".parse().expect("an address"), credentials(1, &[2]), false);
            let path = PathAddress::over_udp(client.local_addresses()[0].ip(), relay.local_addr());
            let peer = Peer::new([path]).sctp_port(server.sctp_port());
            let began = Instant::now();
            let connected = within(client.connect(peer, Config::new("cmt").expect("a scheme"))).await;
            times.push(began.elapsed());
            connected.expect("connected at the first attempt").abort();
        }
        stop.store(true, Ordering::Relaxed);
        let echoed = flood.join().expect("no panic");
        times.sort();
        let keying = within(server.statistics()).await.keying;
        println!(
            "{per_second} per second, {rtt_ms} ms: 5 of 5 connected, median {:.2} s, most {:.2} s; {echoed} silent handshakes, \
             {} of them pending",
            times[2].as_secs_f64(),
            times[4].as_secs_f64(),
            keying.pending
        );
    }
}
