//! Peers and paths that are dead, fail, or recover.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_net::{
    AbortReason, Association, AssociationEvent, CloseReason, ConnectError, Endpoint, PathAddress, PathState,
    Peer, RecvError,
};
use tokio::runtime::Runtime;

use crate::loopback::rig::{
    any_port, client, client_in, expect, in_both_modes, ip, on, peer, protection, quick, send, server,
    server_in, within,
};
use anabranch_tests::credentials::Mode;

#[tokio::test]
async fn missing_peer_is_reported() {
    let silent = UdpSocket::bind(any_port(9)).expect("a socket");
    let remote = silent.local_addr().expect("bound");
    let client = client(&[11]);
    let config = quick().with_core(|core| core.profile.max_init_retransmits = 1);
    let peer = Peer::new([PathAddress::over_udp(ip(11), remote)]);
    let silence = within(client.connect(peer.clone(), config.clone())).await;
    assert_eq!(silence.err(), Some(ConnectError::NoAnswer));
    drop(silent);
    let refused = within(client.connect(peer, config)).await;
    assert!(matches!(refused.err(), Some(ConnectError::Unreachable(_))));
}

#[tokio::test]
async fn a_host_that_does_not_accept_says_so() {
    let (us, them) = (client(&[11]), client(&[1]));
    let refused = within(us.connect(peer(&us, &them), quick())).await;
    assert_eq!(refused.err(), Some(ConnectError::RefusedByPeer));
}

#[tokio::test]
async fn a_dead_first_path_does_not_prevent_connecting() {
    in_both_modes(async |mode| {
        let silent = UdpSocket::bind(any_port(9)).expect("a socket");
        let server = server_in(mode, &[1], quick());
        let client = client_in(mode, &[11, 12]);
        let routes = [
            PathAddress::over_udp(ip(11), silent.local_addr().expect("bound")),
            PathAddress::over_udp(ip(12), server.local_addresses()[0]),
        ];
        let ours = within(client.connect(Peer::new(routes), quick())).await.expect("connected");
        let theirs = within(server.accept()).await.expect("accepted");
        send(&ours, "the other way").await;
        expect(&theirs, "the other way").await;
        let states: Vec<PathState> = ours.paths().await.iter().map(|path| path.state).collect();
        assert_ne!(states[0], PathState::Active);
        assert_eq!(states[1], PathState::Active);
    })
    .await;
}

/// Creates an association from an endpoint that can be killed: dropping its runtime sends no packets.
async fn mortal(
    runtime: &Runtime,
    mode: Mode,
    local: SocketAddr,
    to: Peer,
    config: anabranch_net::Config,
) -> (Endpoint, Association) {
    let life = runtime.spawn(async move {
        let endpoint = loop {
            // The system may not have released the ports of a previous incarnation.
            match Endpoint::builder(protection(mode.of_client())).local(local).sctp_port(40_001).bind() {
                Ok(endpoint) => break endpoint,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let association = endpoint.connect(to, config).await.expect("connected");
        (endpoint, association)
    });
    within(life).await.expect("a life")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[tokio::test]
async fn killed_peer_is_detected() {
    in_both_modes(async |mode| {
        let config = quick().peer_silence_limit(Duration::from_secs(2));
        let server = server_in(mode, &[1], config.clone());
        let life = runtime();
        let peer = Peer::new([PathAddress::over_udp(ip(11), server.local_addresses()[0])]);
        let (_host, ours) = mortal(&life, mode, any_port(11), peer, config).await;
        let theirs = within(server.accept()).await.expect("accepted");
        send(&ours, "alive").await;
        expect(&theirs, "alive").await;
        let mut events = theirs.events();
        life.shutdown_background();
        assert_eq!(within(ours.closed()).await, Err(CloseReason::EndpointGone));
        send(&theirs, "are you there?").await;
        let gone = CloseReason::Aborted(AbortReason::PeerUnreachable);
        assert_eq!(within(theirs.recv()).await, Err(RecvError::Closed(gone)));
        let mut all = Vec::new();
        while let Some(event) = within(events.next()).await {
            all.push(event);
        }
        assert_eq!(all.last(), Some(&Ok(AssociationEvent::Aborted(AbortReason::PeerUnreachable))));
    })
    .await;
}

#[tokio::test]
async fn restarted_peer_is_distinguished_from_its_predecessor() {
    let server = server(&[1], quick());
    let peer = || Peer::new([PathAddress::over_udp(ip(11), server.local_addresses()[0])]);
    let first = runtime();
    let (endpoint, ours) = mortal(&first, Mode::Plain, any_port(11), peer(), quick()).await;
    let local = endpoint.local_addresses()[0];
    let theirs = within(server.accept()).await.expect("accepted");
    send(&ours, "first life").await;
    expect(&theirs, "first life").await;
    let mut events = theirs.events();
    first.shutdown_background();
    within(ours.closed()).await.expect_err("killed");

    let second = runtime();
    let (_host, ours) = mortal(&second, Mode::Plain, local, peer(), quick()).await;
    send(&ours, "second life").await;
    assert_eq!(within(theirs.recv()).await, Err(RecvError::Restarted));
    expect(&theirs, "second life").await;
    send(&theirs, "welcome back").await;
    expect(&ours, "welcome back").await;
    within(async { while events.next().await != Some(Ok(AssociationEvent::Restarted)) {} }).await;
    within(ours.shutdown()).await.expect("a good end");
    assert_eq!(within(theirs.recv()).await, Ok(None));
    second.shutdown_background();
}

#[tokio::test]
async fn failed_path_is_reported_and_the_other_continues() {
    in_both_modes(async |mode| {
        let config = quick().with_core(|core| {
            core.profile.path_max_retrans = 1;
            core.profile.heartbeat_interval = Span::from_millis(200);
        });
        let server = server_in(mode, &[1, 2], config.clone());
        let client = client_in(mode, &[11, 12]);
        // The first path leads through a socket that forwards packets until it is dropped.
        let inside = tokio::net::UdpSocket::bind(any_port(31)).await.expect("a socket");
        let routes = [
            PathAddress::over_udp(ip(11), inside.local_addr().expect("bound")),
            PathAddress::over_udp(ip(12), server.local_addresses()[1]),
        ];
        let to = server.local_addresses()[0];
        let relay = tokio::spawn(async move {
            let (mut bytes, mut client) = ([0; 2048], None);
            loop {
                let (length, from) = inside.recv_from(&mut bytes).await.expect("received");
                let target = if from == to { client } else { Some(to) };
                if from != to {
                    client = Some(from);
                }
                if let Some(target) = target {
                    let _ = inside.send_to(&bytes[..length], target).await;
                }
            }
        });
        let ours = within(client.connect(Peer::new(routes), config)).await.expect("connected");
        let theirs = within(server.accept()).await.expect("accepted");
        let mut events = ours.events();
        let first = ours.paths().await[0].id;
        relay.abort();
        within(async {
            while events.next().await
                != Some(Ok(AssociationEvent::PathState { path: first, state: PathState::Inactive }))
            {
            }
        })
        .await;
        for _ in 0..20 {
            within(ours.send(vec![1; 10_000], on(0))).await.expect("accepted");
        }
        let reading = async {
            let mut bytes = 0;
            while let Some(message) = theirs.recv().await.expect("a good end") {
                bytes += message.payload.len();
            }
            bytes
        };
        let (ended, bytes) = within(async { tokio::join!(ours.shutdown(), reading) }).await;
        assert_eq!((ended, bytes), (Ok(()), 200_000));
    })
    .await;
}

#[tokio::test]
async fn delayed_host_reads_received_packets_before_timeouts() {
    in_both_modes(async |mode| {
        let life = runtime();
        let server =
            within(life.spawn(async move { server_in(mode, &[1], quick()) })).await.expect("a server");
        let client = client_in(mode, &[11]);
        let ours = within(client.connect(peer(&client, &server), quick())).await.expect("connected");
        let theirs = within(server.accept()).await.expect("accepted");
        send(&ours, "before").await;
        expect(&theirs, "before").await;
        for _ in 0..3 {
            send(&ours, "held up").await;
            // The endpoint's task has had its turn when it answers.
            client.statistics().await;
            // Ten times a time-out; the acknowledgement waits in the socket.
            std::thread::sleep(Duration::from_secs(2));
            expect(&theirs, "held up").await;
        }
        let statistics = ours.snapshot().await.statistics;
        assert_eq!((statistics.timeouts, statistics.retransmissions), (0, 0), "{statistics:?}");
        within(ours.shutdown()).await.expect("a good end");
        life.shutdown_background();
    })
    .await;
}
