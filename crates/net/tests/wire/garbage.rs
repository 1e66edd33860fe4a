//! Foreign datagrams at line rate during a transfer. `make wire` runs these.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anabranch_core::Discard;
use anabranch_tests::hostile::craft::fix_checksum;
use fastrand::Rng;

use crate::wire::rig::{Link, Wire, in_both_modes, transfer, usual};

const LINKS: [Link; 2] =
    [Link { mbps: 60, delay_ms: 2, loss: 0.001 }, Link { mbps: 40, delay_ms: 5, loss: 0.001 }];

const LENGTH: usize = 24 << 20;

/// Maximum duration of every sender of garbage, regardless of the transfer.
const LONGEST: Duration = Duration::from_secs(60);

/// Threads that run until they are stopped.
struct Throwers {
    stop: Arc<AtomicBool>,
    thrown: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Throwers {
    fn new() -> Self {
        Throwers { stop: Arc::default(), thrown: Arc::default(), threads: Vec::new() }
    }

    /// Calls `throw` repeatedly, which returns the number of datagrams sent.
    fn add(&mut self, mut throw: impl FnMut() -> u64 + Send + 'static) {
        let (stop, thrown) = (Arc::clone(&self.stop), Arc::clone(&self.thrown));
        let until = Instant::now() + LONGEST;
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) && Instant::now() < until {
                thrown.fetch_add(throw(), Ordering::Relaxed);
            }
        }));
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it throws"));
        self.thrown.load(Ordering::Relaxed)
    }
}

fn any_socket(endpoint: u8) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 1, endpoint], 0))).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    socket
}

/// Returns noise, and noise with the ports of a packet of the association and a valid checksum.
fn noise(random: &mut Rng, ports: [u16; 2]) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(0..1400)];
    random.fill(&mut bytes);
    if random.bool() && bytes.len() >= 16 {
        bytes[..2].copy_from_slice(&ports[0].to_be_bytes());
        bytes[2..4].copy_from_slice(&ports[1].to_be_bytes());
        fix_checksum(&mut bytes);
    }
    bytes
}

/// Returns an invalid mutation of a packet of the association. All but the last two kinds must be dropped whole. The last two are
/// equivalent to packets repeated by the network, or to those of a newer peer with additional chunk types.
fn mutated(random: &mut Rng, packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    match random.u8(0..7) {
        0 => bytes.truncate(random.usize(0..bytes.len())),
        1 => {
            let at = random.usize(0..bytes.len());
            bytes[at] ^= 1 << random.u8(0..8);
        }
        2 => {
            // Another tag.
            bytes[4..8].copy_from_slice(&random.u32(1..).to_be_bytes());
            fix_checksum(&mut bytes);
        }
        3 => {
            // Chunk longer than its packet.
            bytes.truncate(12);
            bytes.extend([random.u8(..), random.u8(..), 0xff, random.u8(..)]);
            fix_checksum(&mut bytes);
        }
        4 => {
            // Chunk shorter than its own header.
            bytes.truncate(12);
            bytes.extend([random.u8(..), random.u8(..), 0, random.u8(0..4)]);
            fix_checksum(&mut bytes);
        }
        5 => {
            // Chunks of undefined types, of all four kinds of action.
            bytes.truncate(12);
            for action in [0x80, 0xc0, 0x00, 0x40] {
                bytes.extend([action | random.u8(0x20..0x3f), 0, 0, 8, 1, 2, 3, 4]);
            }
            fix_checksum(&mut bytes);
        }
        // Unchanged duplicate, possibly much later.
        _ => {}
    }
    bytes
}

/// Forwards packets between a relay and the server, and sends mutations of earlier packets to both ends, with the source of the
/// packets themselves.
fn between(server: SocketAddr, throwers: &mut Throwers) -> SocketAddr {
    let (near, far) = (Arc::new(any_socket(60)), Arc::new(any_socket(61)));
    far.connect(server).expect("an address");
    let inside = near.local_addr().expect("bound");
    let relay: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
    let kept: [Arc<Mutex<Vec<Vec<u8>>>>; 2] = Default::default();
    for forward in [true, false] {
        let (near, far, relay) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&relay));
        let kept = Arc::clone(&kept[usize::from(forward)]);
        let mut random = Rng::with_seed(u64::from(forward));
        let mut buffer = vec![0; 65_535];
        let mut seen = 0;
        throwers.add(move || {
            let read = if forward {
                near.recv_from(&mut buffer)
            } else {
                far.recv(&mut buffer).map(|n| (n, server))
            };
            let Ok((length, from)) = read else { return 0 };
            if forward {
                *relay.lock().expect("not poisoned") = Some(from);
            }
            let client = *relay.lock().expect("not poisoned");
            let pass = |bytes: &[u8]| match (forward, client) {
                (true, _) => drop(far.send(bytes)),
                (false, Some(client)) => drop(near.send_to(bytes, client)),
                (false, None) => {}
            };
            pass(&buffer[..length]);
            let mut kept = kept.lock().expect("not poisoned");
            // Packets of the handshake are kept.
            let at = if seen < 8 { seen } else { 8 + seen % 248 };
            if at < kept.len() {
                kept[at] = buffer[..length].to_vec();
            } else {
                kept.push(buffer[..length].to_vec());
            }
            seen += 1;
            for _ in 0..2 {
                let source = random.usize(0..kept.len());
                pass(&mutated(&mut random, &kept[source]));
            }
            2
        });
    }
    inside
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn noise_at_line_rate_from_strangers_does_not_stop_a_transfer() {
    in_both_modes(async |mode| {
        let wire = Wire::connected(mode, &LINKS, usual()).await;
        wire.all_paths_active().await;
        let targets = [wire.server.local_addresses(), wire.client.local_addresses()].concat();
        let ports = [wire.client.sctp_port(), wire.server.sctp_port()];
        let mut throwers = Throwers::new();
        let (socket, mut random) = (any_socket(62), Rng::with_seed(9));
        throwers.add(move || {
            let _ = socket.send_to(&noise(&mut random, ports), targets[random.usize(0..targets.len())]);
            1
        });
        transfer(&wire, LENGTH, async |_| {}).await;
        let thrown = throwers.end();
        let (client, server) = (wire.client.statistics().await, wire.server.statistics().await);
        let discarded = client.discards.total() + server.discards.total();
        println!("{thrown} thrown, {discarded} arrived and were discarded");
        assert!(discarded > 10_000, "{discarded} of {thrown}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn mutations_of_its_own_packets_do_not_stop_a_transfer() {
    in_both_modes(async |mode| {
        let mut throwers = Throwers::new();
        let wire =
            Wire::connected_before(mode, &LINKS, usual(), |server| between(server, &mut throwers)).await;
        transfer(&wire, LENGTH, async |_| {}).await;
        let thrown = throwers.end();
        let (client, server) = (wire.client.statistics().await, wire.server.statistics().await);
        println!("{thrown} thrown; client {:?}, server {:?}", client.discards, server.discards);
        for reason in [Discard::Checksum, Discard::Malformed] {
            assert!(client.discards.of(reason) > 100, "{:?}", client.discards);
            assert!(server.discards.of(reason) > 100, "{:?}", server.discards);
        }
    })
    .await;
}
