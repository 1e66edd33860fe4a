//! Strangers at a protected endpoint: they complete the cookie exchange and then send garbage, half a handshake or nothing. The
//! cost in memory is bounded, and no other peer loses its place.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

use std::alloc::System;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_core::protection::KEY_MANAGEMENT_PPID;
use anabranch_core::time::Span;
use anabranch_keying::{KeyExchanges, Part, TlsExchanges};
use anabranch_net::{
    Config, Credentials, DtlsProtection, Endpoint, KeyPolicy, PathAddress, Peer, Protection,
};
use anabranch_tests::credentials::{credentials, identity, seeded_credentials};
use anabranch_tests::hostile::{self, Wire};
use anabranch_tests::seeded_tls::public_key_operations;
use anabranch_wire::{
    DataFlags, DataRepr, DtlsKeyManagement, KeyManagementMethod, List, Param, Ssn, StreamId,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STRANGERS: u64 = 10_000;

/// Maximum time of a stranger's handshake.
const HANDSHAKE_TIMEOUT: Span = Span::from_secs(2);

/// Default maximum of associations without keys.
const MOST_PENDING: u64 = 256;

/// Maximum memory of one such association, with its received data and half a TLS handshake.
const MOST_BYTES_EACH: usize = 64 << 10;

/// Maximum memory left over by a stranger: a cookie that must not be accepted twice.
const MOST_LEFT_BYTES_EACH: usize = 64;

/// Memory of grown queues, and of the strangers' own sockets and packets.
const SLACK_BYTES: usize = 1 << 20;

/// Number of accepted peers, one after the other.
const FRIENDS: u64 = 5;

/// Public key operations of a client or server in a handshake: its share, and the shared secret.
const OPERATIONS_OF_A_HANDSHAKE: u64 = 2;

/// Returns the number of bytes on the heap.
fn live_bytes() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Socket that delivers datagrams at once.
#[derive(Debug)]
struct Prompt(UdpSocket);

impl Wire for Prompt {
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.send(bytes);
    }

    fn receive(&mut self, wait: Span, packets: &mut Vec<Vec<u8>>) {
        let mut buffer = [0; 2_048];
        let wait = Duration::from(wait).max(Duration::from_millis(1));
        self.0.set_read_timeout(Some(wait)).expect("it is not zero");
        match self.0.recv(&mut buffer) {
            Ok(length) => packets.push(buffer[..length].to_vec()),
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                ),
                "{error}"
            ),
        }
    }

    fn timeout(&self) -> Span {
        Span::from_secs(10)
    }
}

/// Behaviour of a stranger once it has a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Sends garbage in place of TLS.
    Garbage,
    /// Sends a malformed TLS record.
    GarbledRecord,
    /// Begins a handshake and does not continue.
    HalfAHandshake,
    /// Stays silent.
    Silence,
    /// Does not return the cookie.
    NoCookie,
}

impl Manner {
    const ALL: [Manner; 5] =
        [Manner::Garbage, Manner::GarbledRecord, Manner::HalfAHandshake, Manner::Silence, Manner::NoCookie];

    fn of(stranger: u64) -> Self {
        Self::ALL[(stranger % Self::ALL.len() as u64) as usize]
    }

    /// Returns its message to the key management.
    fn message(self, hello: &[u8]) -> Option<Vec<u8>> {
        match self {
            Manner::Garbage => Some(vec![3; 300]),
            Manner::GarbledRecord => Some([&[3, 22, 3, 3, 0, 200], &[0xA5; 200][..]].concat()),
            Manner::HalfAHandshake => Some([&[3], hello].concat()),
            Manner::Silence | Manner::NoCookie => None,
        }
    }
}

/// Returns the address of a stranger, different for each.
fn address_of(stranger: u64) -> IpAddr {
    let [.., high, middle, low] = (stranger as u32).to_be_bytes();
    IpAddr::from([127, 1 + high, middle, low])
}

/// Runs one stranger's visit.
fn visit(stranger: u64, endpoint: SocketAddr, port: u16, hello: &[u8]) {
    let socket = UdpSocket::bind((address_of(stranger), 0)).expect("an address of loopback");
    socket.connect(endpoint).expect("an address of loopback");
    let mut peer = hostile::Peer::new(Prompt(socket), stranger).forgetful();
    peer.ports = [40_007, port];
    peer.params = vec![Param::DtlsKeyManagement(DtlsKeyManagement {
        tie_breaker: 1,
        client: true,
        server: false,
        restart: false,
        methods: List::new(&[KeyManagementMethod::TLS]),
    })];
    let cookie = peer.fetch_cookie().expect("the endpoint answers");
    let manner = Manner::of(stranger);
    if manner == Manner::NoCookie {
        return;
    }
    let data = DataRepr {
        flags: DataFlags::WHOLE,
        tsn: peer.next_tsn,
        stream: StreamId::new(0),
        ssn: Ssn::new(0),
        ppid: KEY_MANAGEMENT_PPID,
    };
    let message = manner.message(hello);
    let echo = peer.packet(|w| {
        w.cookie_echo(&cookie)?;
        message.iter().try_for_each(|message| w.data(&data, message))
    });
    peer.send(&echo);
}

fn endpoint(node: u8, credentials: Credentials, accepts: bool) -> Endpoint {
    let policy = KeyPolicy { handshake_timeout: HANDSHAKE_TIMEOUT, ..KeyPolicy::default() };
    let builder = Endpoint::builder(Protection::Dtls(DtlsProtection { credentials, policy, restart: false }));
    let builder = builder.local((IpAddr::from([127, 0, 0, node]), 0).into());
    let builder = if accepts { builder.accept(Config::new("cmt").expect("a scheme")) } else { builder };
    builder.bind().expect("an endpoint")
}

/// Connects an accepted peer, sends a message and closes.
async fn befriend(client: &Endpoint, server: &Endpoint) {
    let address = PathAddress::over_udp(client.local_addresses()[0].ip(), server.local_addresses()[0]);
    let peer = Peer::new([address]).sctp_port(server.sctp_port());
    let connect = client.connect(peer, Config::new("cmt").expect("a scheme"));
    let (ours, theirs) = tokio::join!(connect, server.accept());
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    assert_eq!(theirs.peer_identity(), Some(identity(1)));
    ours.send("still there", Default::default()).await.expect("it takes the message");
    let came = theirs.recv().await.expect("a message").expect("a message");
    assert_eq!(&came.payload[..], b"still there");
    let (ended, end) = tokio::join!(ours.shutdown(), theirs.recv());
    assert_eq!((ended, end), (Ok(()), Ok(None)));
}

/// All but the strangers run on this thread, so that the counted public key operations are those of the endpoints.
#[tokio::test]
async fn ten_thousand_strangers_use_bounded_memory_and_block_no_peer() {
    let mut hello = Vec::new();
    let mut exchange = TlsExchanges::new(credentials(3, &[2])).start(Part::Client).expect("a client");
    exchange.begin(&mut hello).expect("a ClientHello");
    let server = endpoint(1, seeded_credentials(2, &[1]), true);
    let client = endpoint(11, seeded_credentials(1, &[2]), false);
    befriend(&client, &server).await;
    let (address, port) = (server.local_addresses()[0], server.sctp_port());
    let (before, operations) = (live_bytes(), public_key_operations());
    let visits = std::sync::Arc::new(AtomicU64::new(0));
    let visited = std::sync::Arc::clone(&visits);
    let crowd = std::thread::spawn(move || {
        for stranger in 0..STRANGERS {
            visit(stranger, address, port, &hello);
            visited.store(stranger + 1, Ordering::Relaxed);
        }
    });
    let (mut most_pending, mut most_bytes, mut friends) = (0, 0, 1);
    while !crowd.is_finished() {
        if friends <= FRIENDS && visits.load(Ordering::Relaxed) * (FRIENDS + 1) > friends * STRANGERS {
            befriend(&client, &server).await;
            friends += 1;
        }
        let pending = server.statistics().await.keying.pending;
        most_pending = most_pending.max(pending);
        most_bytes = most_bytes.max(live_bytes().saturating_sub(before));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    crowd.join().expect("every stranger was answered");
    assert!((MOST_PENDING / 2..=MOST_PENDING).contains(&most_pending), "{most_pending} without keys");
    let bound = MOST_PENDING as usize * MOST_BYTES_EACH + SLACK_BYTES;
    assert!(most_bytes < bound, "{most_bytes} bytes for {most_pending} strangers");
    assert_eq!(friends, FRIENDS + 1, "they came while strangers did");

    while server.statistics().await.keying.pending > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let keying = server.statistics().await.keying;
    let without_cookie = STRANGERS / Manner::ALL.len() as u64;
    assert_eq!((keying.established, keying.pending), (friends, 0));
    assert_eq!(keying.failed, STRANGERS - without_cookie, "every stranger that sent its cookie back");
    // Half a handshake costs the server a share and the shared secret.
    let most = STRANGERS / Manner::ALL.len() as u64 * 2 + FRIENDS * 2 * OPERATIONS_OF_A_HANDSHAKE;
    let operations = public_key_operations() - operations;
    assert!(operations <= most, "{operations} operations with public keys, at most {most}");
    let left = live_bytes().saturating_sub(before);
    assert!(left < STRANGERS as usize * MOST_LEFT_BYTES_EACH + SLACK_BYTES, "{left} bytes are left");
    println!(
        "{STRANGERS} strangers: {most_pending} without keys at most, {} KiB at the peak, {} KiB left, {operations} operations",
        most_bytes >> 10,
        left >> 10,
    );
}
