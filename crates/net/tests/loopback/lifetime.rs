//! Start and end of endpoints and associations.

use std::time::Duration;

use anabranch_net::{
    AbortReason, AcceptError, AssociationEvent, BindError, CloseReason, ConnectError, Endpoint, PathAddress,
    PathError, Peer, Protection, RecvError, SendOptions,
};

use crate::loopback::rig::{
    Duo, any_port, client, expect, in_both_modes, ip, on, peer, quick, send, server, within,
};

#[tokio::test]
async fn each_side_can_end_it_gracefully() {
    in_both_modes(async |mode| {
        for by_client in [true, false] {
            let duo = Duo::connected_in(mode, 2, quick()).await;
            let (ending, other) = if by_client { (&duo.ours, &duo.theirs) } else { (&duo.theirs, &duo.ours) };
            send(ending, "last words").await;
            within(ending.shutdown()).await.expect("a good end");
            expect(other, "last words").await;
            assert_eq!(within(other.recv()).await, Ok(None));
            assert_eq!(within(other.closed()).await, Ok(()));
            assert!(!other.is_open());
        }
    })
    .await;
}

#[tokio::test]
async fn both_sides_can_end_it_at_once() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        let ends = within(async { tokio::join!(duo.ours.shutdown(), duo.theirs.shutdown()) }).await;
        assert_eq!(ends, (Ok(()), Ok(())));
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_delivers_what_both_sides_had_accepted() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 1, quick()).await;
        for _ in 0..100 {
            within(duo.ours.send(vec![1; 20_000], on(0))).await.expect("accepted");
        }
        send(&duo.theirs, "on its way the other way").await;
        let reading = async {
            let mut bytes = 0;
            while let Some(message) = duo.theirs.recv().await.expect("a good end") {
                bytes += message.payload.len();
            }
            bytes
        };
        let (ended, bytes) = within(async { tokio::join!(duo.ours.shutdown(), reading) }).await;
        assert_eq!((ended, bytes), (Ok(()), 2_000_000));
        expect(&duo.ours, "on its way the other way").await;
        assert_eq!(within(duo.ours.recv()).await, Ok(None));
    })
    .await;
}

#[tokio::test]
async fn abort_is_reported_to_both_sides() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        let mut events = duo.theirs.events();
        duo.ours.abort();
        assert_eq!(within(duo.ours.closed()).await, Err(CloseReason::Aborted(AbortReason::ByApplication)));
        let by_peer = CloseReason::Aborted(AbortReason::ByPeer);
        assert_eq!(within(duo.theirs.recv()).await, Err(RecvError::Closed(by_peer)));
        assert_eq!(within(duo.theirs.closed()).await, Err(by_peer));
        assert!(within(duo.theirs.send("x", SendOptions::default())).await.is_err());
        let mut last = None;
        while let Some(event) = within(events.next()).await {
            last = Some(event);
        }
        assert_eq!(last, Some(Ok(AssociationEvent::Aborted(AbortReason::ByPeer))));
        assert_eq!(within(duo.theirs.events().next()).await, None);
        assert_eq!(duo.theirs.paths().await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn dropped_handle_is_not_reported_as_graceful_end() {
    let Duo { ours, theirs, client, server } = Duo::connected(1, quick()).await;
    send(&ours, "half of it").await;
    let clone = ours.clone();
    drop(ours);
    expect(&theirs, "half of it").await;
    send(&clone, "a clone is as good").await;
    expect(&theirs, "a clone is as good").await;
    drop(clone);
    let ended = within(theirs.recv()).await;
    assert_eq!(ended, Err(RecvError::Closed(CloseReason::Aborted(AbortReason::ByPeer))));
    drop((client, server));
}

#[tokio::test]
async fn shutdown_completes_without_its_future_handles_and_host() {
    let Duo { ours, theirs, client, server } = Duo::connected(2, quick()).await;
    for _ in 0..50 {
        within(ours.send(vec![9; 10_000], on(1))).await.expect("accepted");
    }
    let _ = tokio::time::timeout(Duration::ZERO, ours.shutdown()).await;
    drop((ours, client));
    let mut bytes = 0;
    while let Some(message) = within(theirs.recv()).await.expect("a good end") {
        bytes += message.payload.len();
    }
    assert_eq!(bytes, 500_000);
    drop(server);
}

#[tokio::test]
async fn abandoned_connection_attempt_leaves_no_state() {
    let silent = std::net::UdpSocket::bind(any_port(9)).expect("a socket");
    let client = client(&[11]);
    let peer = Peer::new([PathAddress::over_udp(ip(11), silent.local_addr().expect("bound"))]);
    let limit = Duration::from_millis(100);
    for _ in 0..2 {
        // The second attempt would be refused if the first one still existed.
        let attempt = client.connect(peer.clone(), quick());
        assert!(tokio::time::timeout(limit, attempt).await.is_err());
        within(async {
            while client.statistics().await.associations > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_host_without_handles_gives_its_ports_back() {
    let Duo { ours, theirs, client, server } = Duo::connected(1, quick()).await;
    let address = client.local_addresses()[0];
    drop(client);
    send(&ours, "associations outlive the endpoint's handles").await;
    expect(&theirs, "associations outlive the endpoint's handles").await;
    within(ours.shutdown()).await.expect("a good end");
    drop(ours);
    within(async {
        while Endpoint::builder(Protection::Insecure).local(address).bind().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    drop(server);
}

#[tokio::test]
async fn associations_of_a_host_are_independent() {
    let first = server(&[1], quick());
    let second = server(&[2], quick());
    let clients = [client(&[11]), client(&[12])];
    let route = |to: &Endpoint, from: u8| PathAddress::over_udp(ip(from), to.local_addresses()[0]);
    let one = within(clients[0].connect(Peer::new([route(&first, 11)]), quick())).await.expect("connected");
    let at_one = within(first.accept()).await.expect("accepted");
    // A client with two peers, and a peer with two clients.
    let two = within(clients[0].connect(Peer::new([route(&second, 11)]), quick())).await.expect("connected");
    let at_two = within(second.accept()).await.expect("accepted");
    let three = within(clients[1].connect(Peer::new([route(&first, 12)]), quick())).await.expect("connected");
    let at_three = within(first.accept()).await.expect("accepted");
    for (from, to, text) in [
        (&one, &at_one, "one"),
        (&two, &at_two, "two"),
        (&three, &at_three, "three"),
        (&at_one, &one, "back"),
    ] {
        send(from, text).await;
        expect(to, text).await;
    }
    one.abort();
    assert!(within(at_one.closed()).await.is_err());
    send(&two, "not concerned").await;
    expect(&at_two, "not concerned").await;
    send(&at_three, "nor here").await;
    expect(&three, "nor here").await;
}

//= docs/rfc9260.txt#section-1.3
//= type=test
//# Two SCTP endpoints MUST NOT have more than one SCTP association between them at any given time.
#[tokio::test]
async fn a_second_association_with_the_same_peer_is_refused() {
    let duo = Duo::connected(1, quick()).await;
    let again = within(duo.client.connect(peer(&duo.client, &duo.server), quick())).await;
    assert_eq!(again.err(), Some(ConnectError::Exists(duo.server.local_addresses()[0])));
    let route = PathAddress::over_udp(ip(1), duo.client.local_addresses()[0]);
    let back = Peer::new([route]).sctp_port(duo.client.sctp_port());
    let back = within(duo.server.connect(back, quick())).await;
    assert_eq!(back.err(), Some(ConnectError::Exists(duo.client.local_addresses()[0])));
    within(duo.ours.shutdown()).await.expect("a good end");
    let after = within(duo.client.connect(peer(&duo.client, &duo.server), quick())).await.expect("connected");
    assert!(after.is_open());
}

#[tokio::test]
async fn a_full_backlog_turns_peers_away() {
    let server = Endpoint::builder(Protection::Insecure)
        .local(any_port(1))
        .accept(quick())
        .backlog(1)
        .bind()
        .expect("a server");
    let (first, second) = (client(&[11]), client(&[12]));
    let waiting = within(first.connect(peer(&first, &server), quick())).await.expect("connected");
    let turned_away = within(second.connect(peer(&second, &server), quick())).await;
    match turned_away {
        Ok(association) => {
            let ended = within(association.closed()).await;
            assert_eq!(ended, Err(CloseReason::Aborted(AbortReason::ByPeer)));
        }
        Err(error) => assert_eq!(error, ConnectError::RefusedByPeer),
    }
    send(&waiting, "still there").await;
    expect(&within(server.accept()).await.expect("accepted"), "still there").await;
}

//= docs/rfc9260.txt#section-3.1
//= type=test
//# The Destination Port Number 0 MUST NOT be used.
#[tokio::test]
async fn invalid_arguments_are_reported_before_sending() {
    let bind = |addresses: &[&str]| {
        let parsed = addresses.iter().map(|address| address.parse().expect("an address"));
        parsed.fold(Endpoint::builder(Protection::Insecure), |builder, address| builder.local(address)).bind()
    };
    assert!(matches!(bind(&[]), Err(BindError::NoAddress)));
    assert!(matches!(bind(&["0.0.0.0:0"]), Err(BindError::Unspecified(_))));
    assert!(matches!(bind(&["127.0.0.1:0", "127.0.0.1:1"]), Err(BindError::Twice(_))));
    assert!(matches!(bind(&["192.0.2.1:0"]), Err(BindError::Socket { .. })));
    assert!(matches!(
        Endpoint::builder(Protection::Insecure).local(any_port(1)).sctp_port(0).bind(),
        Err(BindError::PortZero)
    ));
    let client = client(&[11]);
    let connect = |local: &str, remote: &str| {
        let route = PathAddress::over_udp(local.parse().expect("an address"), remote.parse().expect("one"));
        client.connect(Peer::new([route]), quick())
    };
    let unknown = within(connect("127.0.0.99", "127.0.0.1:5")).await;
    assert!(matches!(unknown, Err(ConnectError::Path(PathError::NoSuchLocal { .. }))));
    assert!(matches!(
        within(connect("127.0.0.11", "[::1]:5")).await,
        Err(ConnectError::Path(PathError::Family { .. }))
    ));
    assert!(matches!(
        within(connect("127.0.0.11", "127.0.0.1:0")).await,
        Err(ConnectError::Path(PathError::PortZero))
    ));
    assert!(within(client.connect(Peer::new([]), quick())).await.is_err());
    assert_eq!(within(client.accept()).await.err(), Some(AcceptError::NotAccepting));
}

#[test]
fn a_host_needs_a_runtime() {
    assert!(matches!(
        Endpoint::builder(Protection::Insecure).local(any_port(1)).bind(),
        Err(BindError::NoRuntime)
    ));
}

#[tokio::test]
async fn addresses_whose_port_is_open_get_the_same_one() {
    let endpoint = client(&[11, 12, 13]);
    let ports: Vec<u16> = endpoint.local_addresses().iter().map(|address| address.port()).collect();
    assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

#[tokio::test]
async fn dropping_the_last_handle_frees_ports() {
    let Duo { ours, theirs, client, server } = Duo::connected(1, quick()).await;
    let address = server.local_addresses()[0];
    let monitor = server.monitor();
    drop(server);
    // The association is a handle too.
    assert!(tokio::time::timeout(Duration::from_millis(50), monitor.gone()).await.is_err());
    within(ours.shutdown()).await.expect("a good end");
    drop(theirs);
    within(monitor.gone()).await;
    Endpoint::builder(Protection::Insecure).local(address).bind().expect("a free port");
    drop(client);
}
