//! Bulk data over several paths and under several disturbances.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_net::{Association, PathAddress, Peer, SendOptions};
use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use crate::loopback::rig::{Duo, any_port, client_in, in_both_modes, ip, quick, server_in, within};

/// Bytes of a transfer; fewer in a build without optimisation.
const TRANSFER: usize = if cfg!(debug_assertions) { 8 << 20 } else { 64 << 20 };

/// Bytes of a transfer that lasts long enough for a disturbance.
const SHORT_TRANSFER: usize = 4 << 20;

const STREAMS: u16 = 8;

fn content(length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(length as u64).fill(&mut bytes);
    bytes.into()
}

/// Sends content in messages of many sizes, each preceded by its offset, on all streams in turn.
async fn send_all(association: &Association, content: &Bytes, unordered: bool, sent: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut offset, mut stream) = (0, 0);
    while offset < content.len() {
        let end = content.len().min(offset + random.usize(1..40_000));
        let mut message = BytesMut::with_capacity(8 + end - offset);
        message.put_u64(offset as u64);
        message.put_slice(&content[offset..end]);
        let options = SendOptions { stream, unordered, ..SendOptions::default() };
        association.send(message, options).await.expect("accepted");
        (offset, stream) = (end, (stream + 1) % STREAMS);
        sent.store(offset as u64, Ordering::Relaxed);
    }
}

/// Places messages at their offsets until the end. Fails on duplicates.
async fn receive_all(association: &Association, length: usize, ordered: bool) -> Vec<u8> {
    let mut content = vec![0; length];
    let mut received = 0;
    let mut latest = [None; STREAMS as usize];
    while let Some(message) = association.recv().await.expect("a good end") {
        assert!(message.beginning && message.ending);
        let (offset, data) = message.payload.split_first_chunk::<8>().expect("an offset");
        let offset = u64::from_be_bytes(*offset) as usize;
        let before = latest[usize::from(message.stream)].replace(offset);
        assert!(!ordered || before.is_none_or(|before| before < offset), "out of order");
        content[offset..offset + data.len()].copy_from_slice(data);
        received += data.len();
    }
    assert_eq!(received, length);
    content
}

/// Runs a whole transfer to its end and compares the hashes.
pub(crate) async fn transfer(
    ours: &Association,
    theirs: &Association,
    length: usize,
    unordered: bool,
    sent: &AtomicU64,
) {
    let content = content(length);
    let sender = async {
        send_all(ours, &content, unordered, sent).await;
        ours.shutdown().await.expect("a good end");
    };
    let (arrived, ()) = within(async { tokio::join!(receive_all(theirs, length, !unordered), sender) }).await;
    assert_eq!(Sha256::digest(&arrived), Sha256::digest(&content));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unordered_messages_on_several_streams_arrive_whole_over_two_paths() {
    let duo = Duo::connected(2, quick()).await;
    transfer(&duo.ours, &duo.theirs, TRANSFER, true, &AtomicU64::new(0)).await;
    let paths = duo.ours.paths().await;
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert!(path.delivered_bytes > TRANSFER as u64 / 20, "{path:?}");
        assert!(path.srtt.is_some());
    }
}

#[tokio::test]
async fn ordered_messages_keep_their_order_in_each_stream() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        transfer(&duo.ours, &duo.theirs, SHORT_TRANSFER, false, &AtomicU64::new(0)).await;
    })
    .await;
}

#[tokio::test]
async fn every_scheme_for_one_path_or_several_carries_data() {
    for scheme in ["sctp", "cmt-pf", "min-rtt", "mptcp-olia", "cmt+rack", "cmt+nr-sack"] {
        let Ok(config) = anabranch_net::Config::new(scheme)
            .or_else(|_| anabranch_net::Config::new(&format!("cmt+{scheme}")))
        else {
            panic!("{scheme} is not a scheme");
        };
        let duo = Duo::connected(2, config).await;
        transfer(&duo.ours, &duo.theirs, 256 << 10, false, &AtomicU64::new(0)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_a_live_socket_does_not_disturb_a_transfer() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        let targets = [duo.server.local_addresses(), duo.client.local_addresses()].concat();
        let stop = Arc::new(AtomicBool::new(false));
        let nuisance = {
            let stop = Arc::clone(&stop);
            let (ours, theirs) = (duo.client.sctp_port(), duo.server.sctp_port());
            std::thread::spawn(move || throw_garbage(&targets, [ours, theirs], &stop))
        };
        transfer(&duo.ours, &duo.theirs, SHORT_TRANSFER, true, &AtomicU64::new(0)).await;
        stop.store(true, Ordering::Relaxed);
        let thrown = nuisance.join().expect("thrown");
        let discarded = duo.server.statistics().await.discards.total();
        assert!(thrown > 0 && discarded > 0, "{discarded} of {thrown}");
    })
    .await;
}

/// Sends noise, and noise with the beginning of a valid packet. Bounded, and slow enough not to overflow the system's queues.
fn throw_garbage(targets: &[SocketAddr], ports: [u16; 2], stop: &AtomicBool) -> usize {
    let socket = UdpSocket::bind(any_port(21)).expect("a socket");
    let mut random = fastrand::Rng::with_seed(1);
    let mut bytes = [0; 1500];
    for thrown in 0..200_000 {
        if stop.load(Ordering::Relaxed) && thrown >= 100 {
            return thrown;
        }
        let length = random.usize(0..bytes.len());
        random.fill(&mut bytes[..length]);
        if random.bool() && length >= 4 {
            bytes[..2].copy_from_slice(&ports[random.usize(0..2)].to_be_bytes());
            bytes[2..4].copy_from_slice(&ports[random.usize(0..2)].to_be_bytes());
        }
        let _ = socket.send_to(&bytes[..length], targets[random.usize(0..targets.len())]);
        if thrown % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    200_000
}

/// Runs an address translator between one client and one server that can change the port seen by the server.
async fn translate(
    inside: tokio::net::UdpSocket,
    server: SocketAddr,
    rebind: tokio::sync::watch::Receiver<bool>,
) {
    let (mut rebind, mut client) = (rebind, None);
    let mut outside = tokio::net::UdpSocket::bind(any_port(31)).await.expect("a socket");
    let (mut inward, mut outward) = ([0; 2048], [0; 2048]);
    loop {
        tokio::select! {
            received = inside.recv_from(&mut inward) => {
                let (length, from) = received.expect("received");
                client = Some(from);
                let _ = outside.send_to(&inward[..length], server).await;
            }
            received = outside.recv_from(&mut outward) => {
                let (length, _) = received.expect("received");
                if let Some(client) = client {
                    let _ = inside.send_to(&outward[..length], client).await;
                }
            }
            changed = rebind.changed() => {
                if changed.is_err() {
                    return;
                }
                outside = tokio::net::UdpSocket::bind(any_port(31)).await.expect("a socket");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn path_continues_after_a_udp_port_change() {
    in_both_modes(async |mode| {
        let server = server_in(mode, &[1, 2], quick());
        let client = client_in(mode, &[11, 12]);
        let inside = tokio::net::UdpSocket::bind(any_port(31)).await.expect("a socket");
        let (rebind, rebound) = tokio::sync::watch::channel(false);
        let routes = [
            PathAddress::over_udp(ip(11), inside.local_addr().expect("bound")),
            PathAddress::over_udp(ip(12), server.local_addresses()[1]),
        ];
        let translator = tokio::spawn(translate(inside, server.local_addresses()[0], rebound));
        let (ours, theirs) =
            within(async { tokio::join!(client.connect(Peer::new(routes), quick()), server.accept()) }).await;
        let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
        let sent = AtomicU64::new(0);
        let ports = || async {
            let paths = theirs.paths().await;
            let translated = paths.iter().filter(|path| path.remote.ip() == ip(31));
            translated.map(|path| path.remote.port()).collect::<Vec<_>>()
        };
        let before = ports().await;
        assert_eq!(before.len(), 1, "a path through the translator");
        let rebinding = async {
            while sent.load(Ordering::Relaxed) < SHORT_TRANSFER as u64 / 4 {
                tokio::task::yield_now().await;
            }
            rebind.send(true).expect("a translator");
            while ports().await == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(async { tokio::join!(transfer(&ours, &theirs, SHORT_TRANSFER, true, &sent), rebinding) })
            .await;
        drop(rebind);
        within(translator).await.expect("a translator");
    })
    .await;
}
