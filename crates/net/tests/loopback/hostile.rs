//! The hostile peer of anabranch-tests against endpoints on real sockets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use anabranch_core::Discard;
use anabranch_core::time::Span;
use anabranch_net::{Endpoint, Protection};
use anabranch_tests::hostile::random::Attack;
use anabranch_tests::hostile::udp::Socket;
use anabranch_tests::hostile::{HandshakeError, Peer, craft};

use crate::loopback::rig::{any_port, client, expect, peer, quick, send, server, within};

const MESSAGES: usize = 2_000;

fn hostile(endpoint: &Endpoint, from: SocketAddr, seed: u64) -> Peer<Socket> {
    let socket = Socket::new(from, endpoint.local_addresses()[0]).expect("a socket");
    let mut peer = Peer::new(socket, seed);
    peer.ports = [40_007, endpoint.sctp_port()];
    peer
}

/// Sends every chunk type in many consecutive associations, from its own thread.
fn attack(mut peer: Peer<Socket>, seed: u64) -> u64 {
    let mut attack = Attack::new(seed);
    let mut associations = 0;
    for message in 0..MESSAGES {
        if message % 100 == 0 {
            peer.renew();
            match peer.call() {
                Ok(()) => associations += 1,
                // Its last message left an association that does not answer further attempts, so it uses another port.
                Err(HandshakeError::NoAnswer(_)) => peer.ports[0] += 1,
                Err(_) => {}
            }
        }
        let bytes = attack.message(&mut peer);
        peer.send(&bytes);
        if message % 10 == 0 {
            for came in peer.pass(Span::from_millis(1)) {
                peer.answer_heartbeat(&came);
            }
        }
    }
    associations
}

/// Checks that a client's messages arrive while a hostile peer attacks the same endpoint.
async fn undisturbed(endpoint: &Endpoint, from: SocketAddr, us: &Endpoint) {
    let bad = hostile(endpoint, from, 7);
    let thread = std::thread::spawn(move || attack(bad, 7));
    let ours = within(us.connect(peer(us, endpoint), quick())).await.expect("connected");
    let theirs = loop {
        // The hostile peer is accepted as well.
        let theirs = within(endpoint.accept()).await.expect("accepted");
        if theirs.paths().await.iter().any(|path| path.remote == us.local_addresses()[0]) {
            break theirs;
        }
    };
    for _ in 0..50 {
        send(&ours, "undisturbed").await;
        expect(&theirs, "undisturbed").await;
    }
    let associations = thread.join().expect("it attacks");
    assert!(associations > 0, "it was accepted");
    send(&ours, "undisturbed").await;
    expect(&theirs, "undisturbed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misbehaving_peer_does_not_disturb_another() {
    undisturbed(&server(&[1], quick()), any_port(66), &client(&[11])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misbehaving_ipv6_peer_does_not_disturb_another() {
    let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);
    let endpoint =
        Endpoint::builder(Protection::Insecure).local(v6).accept(quick()).bind().expect("a server");
    let us = Endpoint::builder(Protection::Insecure).local(v6).bind().expect("a client");
    undisturbed(&endpoint, v6, &us).await;
}

#[tokio::test]
async fn forged_cookies_do_not_keep_a_client_at_the_same_address_out() {
    let endpoint = server(&[1], quick());
    let mut bad = hostile(&endpoint, any_port(11), 3);
    for _ in 0..500 {
        let forged = craft::packet_between(bad.ports, 9, |w| w.cookie_echo(&[7; 80]));
        bad.send(&forged);
    }
    let us = client(&[11]);
    let ours = within(us.connect(peer(&us, &endpoint), quick())).await.expect("connected");
    let theirs = within(endpoint.accept()).await.expect("accepted");
    send(&ours, "here I am").await;
    expect(&theirs, "here I am").await;
    let discards = endpoint.statistics().await.discards;
    assert!(discards.of(Discard::CookieForged) > 0 && discards.of(Discard::Flood) == 0, "{discards:?}");
}

#[tokio::test]
async fn replayed_handshake_opens_no_association_on_a_socket() {
    let endpoint = server(&[1], quick());
    let mut bad = hostile(&endpoint, any_port(66), 5);
    let calling = std::thread::spawn(move || {
        let called = bad.call();
        (bad, called)
    });
    let theirs = within(endpoint.accept()).await.expect("accepted");
    let (mut bad, called) = calling.join().expect("it calls");
    called.expect("a handshake");
    theirs.abort();
    drop(theirs);
    within(async {
        while endpoint.statistics().await.associations > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let echo = bad.sent_of(craft::COOKIE_ECHO).next().expect("it was sent").clone();
    let came = std::thread::spawn(move || {
        bad.send(&echo);
        bad.pass(Span::from_millis(300))
    });
    let came = came.join().expect("it asks");
    assert!(came.iter().any(|bytes| craft::kinds(bytes) == [craft::ABORT]), "{came:?}");
    assert_eq!(endpoint.statistics().await.associations, 0);
}
