//! Identities of peers, sets of paths, and the time until an unanswered attempt fails.

use std::time::{Duration, Instant};

use anabranch_core::Discard;
use anabranch_core::time::Span;
use anabranch_net::{
    AcceptError, AcceptFrom, AssociationEvent, ConnectError, Endpoint, ListedAddresses, Network, Networks,
    PathAddress, PathError, PathState, Peer, Protection,
};

use crate::loopback::rig::{any_port, client, expect, ip, peer, quick, send, server, within};

#[tokio::test]
async fn two_clients_at_one_address_with_one_sctp_port_are_two() {
    let server = server(&[1], quick());
    let client = || {
        Endpoint::builder(Protection::Insecure).local(any_port(11)).sctp_port(7000).bind().expect("a client")
    };
    let (first, second) = (client(), client());
    let one = within(first.connect(peer(&first, &server), quick())).await.expect("connected");
    let at_one = within(server.accept()).await.expect("accepted");
    let two = within(second.connect(peer(&second, &server), quick())).await.expect("connected");
    let at_two = within(server.accept()).await.expect("accepted");
    for (from, to, text) in
        [(&one, &at_one, "one"), (&two, &at_two, "two"), (&at_one, &one, "to one"), (&at_two, &two, "to two")]
    {
        send(from, text).await;
        expect(to, text).await;
    }
}

#[tokio::test]
async fn dead_first_route_does_not_delay_connecting() {
    let silent = std::net::UdpSocket::bind(any_port(9)).expect("a socket");
    let server = server(&[2], quick());
    let client = client(&[11, 12]);
    let routes = [
        PathAddress::over_udp(ip(11), silent.local_addr().expect("bound")),
        PathAddress::over_udp(ip(12), server.local_addresses()[0]),
    ];
    // One time-out would exceed the time of the test.
    let config = quick().with_core(|core| {
        core.profile.rto_initial = Span::from_secs(200);
        core.connect_timeout = None;
    });
    let began = Instant::now();
    let association = within(client.connect(Peer::new(routes), config)).await.expect("connected");
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    let states: Vec<_> = association.paths().await.iter().map(|path| path.state).collect();
    assert_eq!(states, [PathState::Unconfirmed, PathState::Active]);
}

#[tokio::test]
async fn silent_peer_is_abandoned_after_the_configured_time() {
    let silent = std::net::UdpSocket::bind(any_port(9)).expect("a socket");
    let client = client(&[11]);
    let peer = Peer::new([PathAddress::over_udp(ip(11), silent.local_addr().expect("bound"))]);
    let config = quick().connect_timeout(Duration::from_millis(400));
    let began = Instant::now();
    assert_eq!(within(client.connect(peer, config)).await.err(), Some(ConnectError::NoAnswer));
    assert!(began.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn addresses_listed_by_the_peer_are_used_on_request_only() {
    for (listed, paths) in [(ListedAddresses::Ignore, 1), (ListedAddresses::Use, 2)] {
        let config = quick().listed_addresses(listed);
        let server = server(&[1, 2], config.clone());
        let client = client(&[11, 12]);
        let route = PathAddress::over_udp(ip(11), server.local_addresses()[0]);
        let ours = within(client.connect(Peer::new([route]), config)).await.expect("connected");
        let theirs = within(server.accept()).await.expect("accepted");
        send(&ours, "over one path").await;
        expect(&theirs, "over one path").await;
        assert_eq!(theirs.paths().await.len(), paths, "{listed:?}");
    }
}

#[tokio::test]
async fn added_path_is_announced_and_removed_path_disappears() {
    let server = server(&[1], quick());
    let client = client(&[11, 12]);
    let remote = server.local_addresses()[0];
    let first = PathAddress::over_udp(ip(11), remote);
    let ours = within(client.connect(Peer::new([first]), quick())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    let (mut events, mut at_server) = (ours.events(), theirs.events());
    let added = within(ours.add_path(PathAddress::over_udp(ip(12), remote))).await.expect("it can be added");
    assert_eq!(within(events.next()).await, Some(Ok(AssociationEvent::PathAdded { path: added })));
    assert_eq!(
        within(events.next()).await,
        Some(Ok(AssociationEvent::PathState { path: added, state: PathState::Active }))
    );
    // The path of the handshake has to answer a HEARTBEAT as well, before or after.
    let new = async {
        loop {
            match at_server.next().await {
                Some(Ok(AssociationEvent::PathState { state: PathState::Active, .. })) => {}
                event => break event,
            }
        }
    };
    assert!(matches!(within(new).await, Some(Ok(AssociationEvent::PathAdded { .. }))));
    let twice = within(ours.add_path(PathAddress::over_udp(ip(12), remote))).await;
    assert!(matches!(twice, Err(PathError::Refused(_))), "{twice:?}");
    let unknown = within(ours.add_path(PathAddress::over_udp(ip(13), remote))).await;
    assert!(matches!(unknown, Err(PathError::NoSuchLocal { .. })), "{unknown:?}");
    within(ours.remove_path(added)).await.expect("it can be removed");
    assert_eq!(ours.paths().await.len(), 1);
    ours.abort();
    assert!(within(ours.closed()).await.is_err());
    within(async {
        // Forgotten once its last packet was sent.
        while within(ours.remove_path(added)).await != Err(PathError::Closed) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_host_that_stops_accepting_keeps_what_it_has() {
    let server = server(&[1], quick());
    let (first, second) = (client(&[11]), client(&[12]));
    let ours = within(first.connect(peer(&first, &server), quick())).await.expect("connected");
    send(&ours, "before").await;
    server.stop_accepting();
    let theirs = within(server.accept()).await.expect("it waits already");
    assert_eq!(within(server.accept()).await.err(), Some(AcceptError::NotAccepting));
    let refused = within(second.connect(peer(&second, &server), quick())).await;
    assert_eq!(refused.err(), Some(ConnectError::RefusedByPeer));
    expect(&theirs, "before").await;
}

/// Returns a server at 127.0.0.1 that accepts only peers at 127.0.0.81.
fn choosy() -> Endpoint {
    let networks = Networks::new([Network::new(ip(81), 32).expect("a network")]).expect("a list");
    let builder = Endpoint::builder(Protection::Insecure).local(any_port(1)).accept(quick());
    builder.accept_from(AcceptFrom::Networks(networks)).bind().expect("a server")
}

#[tokio::test]
async fn only_peers_from_named_networks_are_admitted() {
    let server = choosy();
    let (admitted, other) = (client(&[81]), client(&[82]));
    let config = quick().connect_timeout(Duration::from_millis(400));
    let ignored = within(other.connect(peer(&other, &server), config)).await;
    assert_eq!(ignored.err(), Some(ConnectError::NoAnswer));
    assert!(server.statistics().await.discards.of(Discard::NotAdmitted) > 0);
    assert_eq!(server.statistics().await.datagrams_sent, 0);
    let ours = within(admitted.connect(peer(&admitted, &server), quick())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    send(&ours, "from an admitted address").await;
    expect(&theirs, "from an admitted address").await;
}

#[tokio::test]
async fn further_addresses_of_a_peer_that_was_admitted_become_paths() {
    let server = choosy();
    let client = client(&[81, 83]);
    let remote = server.local_addresses()[0];
    let first = PathAddress::over_udp(ip(81), remote);
    let ours = within(client.connect(Peer::new([first]), quick())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    within(ours.add_path(PathAddress::over_udp(ip(83), remote))).await.expect("it can be added");
    let active = async || {
        let paths = theirs.paths().await;
        let active = paths.iter().filter(|path| path.state == PathState::Active);
        let mut remotes: Vec<_> = active.map(|path| path.remote.ip()).collect();
        remotes.sort();
        remotes
    };
    // Each is active once it has answered a HEARTBEAT, including the first one.
    within(async {
        while active().await != [ip(81), ip(83)] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
