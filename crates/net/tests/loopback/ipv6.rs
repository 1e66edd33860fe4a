//! IPv6, alone and together with IPv4.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_net::{Association, Endpoint, PathAddress, PathState, Peer, Protection};

use crate::loopback::rig::{any_port, client, expect, in_both_modes, peer, protection, quick, send, within};
use crate::loopback::transfer::transfer;
use anabranch_tests::credentials::Mode;

const LENGTH: usize = 2 << 20;

const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn any_v6_port() -> SocketAddr {
    SocketAddr::new(V6, 0)
}

/// Returns an endpoint on an IPv4 address and on ::1.
fn on_both(mode: Mode, node: u8, accepts: bool) -> Endpoint {
    let builder = Endpoint::builder(protection(if accepts { mode.of_server() } else { mode.of_client() }));
    let builder = builder.local(any_port(node)).local(any_v6_port());
    let builder = if accepts { builder.accept(quick()) } else { builder };
    builder.bind().expect("an endpoint on both")
}

async fn connected(client: &Endpoint, server: &Endpoint, to: Peer) -> (Association, Association) {
    let (ours, theirs) = within(async { tokio::join!(client.connect(to, quick()), server.accept()) }).await;
    (ours.expect("connected"), theirs.expect("accepted"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_over_ipv6_arrives_whole() {
    let server = Endpoint::builder(Protection::Insecure)
        .local(any_v6_port())
        .accept(quick())
        .bind()
        .expect("a server");
    let client = Endpoint::builder(Protection::Insecure).local(any_v6_port()).bind().expect("a client");
    let (ours, theirs) = connected(&client, &server, peer(&client, &server)).await;
    transfer(&ours, &theirs, LENGTH, false, &AtomicU64::new(0)).await;
    assert!(ours.paths().await.iter().all(|path| path.remote.ip() == V6 && path.local == V6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_of_each_family_carries_data() {
    let (server, client) = (on_both(Mode::Plain, 1, true), on_both(Mode::Plain, 11, false));
    let (ours, theirs) = connected(&client, &server, peer(&client, &server)).await;
    transfer(&ours, &theirs, LENGTH, true, &AtomicU64::new(0)).await;
    let paths = ours.paths().await;
    assert_eq!(paths.iter().map(|path| path.remote.is_ipv6()).collect::<Vec<_>>(), [false, true]);
    assert!(paths.iter().all(|path| path.delivered_bytes > LENGTH as u64 / 50), "{paths:?}");
}

#[tokio::test]
async fn a_host_on_both_families_accepts_from_each() {
    let server = on_both(Mode::Plain, 1, true);
    let v6 = Endpoint::builder(Protection::Insecure).local(any_v6_port()).bind().expect("a client");
    let v4 = client(&[11]);
    for (from, local, index) in [(&v4, any_port(11).ip(), 0), (&v6, V6, 1)] {
        let route = PathAddress::over_udp(local, server.local_addresses()[index]);
        let (ours, theirs) = connected(from, &server, Peer::new([route]).sctp_port(server.sctp_port())).await;
        send(&ours, "hello").await;
        expect(&theirs, "hello").await;
    }
}

/// Forwards datagrams between one client and one server, until it is dropped.
async fn forward(inside: tokio::net::UdpSocket, server: SocketAddr) {
    let outside = tokio::net::UdpSocket::bind(any_v6_port()).await.expect("a socket");
    let (mut client, mut inward, mut outward) = (None, [0; 2048], [0; 2048]);
    loop {
        tokio::select! {
            received = inside.recv_from(&mut inward) => {
                let (length, from) = received.expect("received");
                client = Some(from);
                let _ = outside.send_to(&inward[..length], server).await;
            }
            received = outside.recv_from(&mut outward) => {
                if let (Ok((length, _)), Some(client)) = (received, client) {
                    let _ = inside.send_to(&outward[..length], client).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfer_continues_over_ipv4_when_the_ipv6_path_fails() {
    in_both_modes(async |mode| {
        let (server, client) = (on_both(mode, 1, true), on_both(mode, 11, false));
        let inside = tokio::net::UdpSocket::bind(any_v6_port()).await.expect("a socket");
        let routes = [
            PathAddress::over_udp(V6, inside.local_addr().expect("bound")),
            PathAddress::over_udp(any_port(11).ip(), server.local_addresses()[0]),
        ];
        let path = tokio::spawn(forward(inside, server.local_addresses()[1]));
        let (ours, theirs) =
            connected(&client, &server, Peer::new(routes).sctp_port(server.sctp_port())).await;
        let sent = AtomicU64::new(0);
        let failing = async {
            while sent.load(Ordering::Relaxed) < LENGTH as u64 / 4 {
                tokio::task::yield_now().await;
            }
            path.abort();
        };
        within(async { tokio::join!(transfer(&ours, &theirs, LENGTH, true, &sent), failing) }).await;
    })
    .await;
}

#[tokio::test]
async fn a_failed_ipv6_path_is_noticed_and_comes_back() {
    in_both_modes(async |mode| {
        let (server, client) = (on_both(mode, 1, true), on_both(mode, 11, false));
        let inside = tokio::net::UdpSocket::bind(any_v6_port()).await.expect("a socket");
        let place = inside.local_addr().expect("bound");
        let routes = [
            PathAddress::over_udp(any_port(11).ip(), server.local_addresses()[0]),
            PathAddress::over_udp(V6, place),
        ];
        let path = tokio::spawn(forward(inside, server.local_addresses()[1]));
        let (ours, _theirs) =
            connected(&client, &server, Peer::new(routes).sctp_port(server.sctp_port())).await;
        let state = async |wanted: fn(PathState) -> bool| {
            within(async {
                while !wanted(ours.paths().await[1].state) {
                    // Data detects a failure sooner than HEARTBEATs do.
                    let _ = ours.send(vec![1; 2_000], Default::default()).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
        };
        state(|state| state == PathState::Active).await;
        path.abort();
        assert!(path.await.is_err(), "it has ended");
        state(|state| state != PathState::Active).await;
        let inside = tokio::net::UdpSocket::bind(place).await.expect("the same socket");
        let path = tokio::spawn(forward(inside, server.local_addresses()[1]));
        state(|state| state == PathState::Active).await;
        path.abort();
    })
    .await;
}
