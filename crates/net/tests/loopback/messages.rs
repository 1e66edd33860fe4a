//! Sending and receiving: echo, back-pressure, dropped futures.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_net::{BufferGrowth, Endpoint, PathState, Protection, SendError, SendOptions};
use bytes::Bytes;

use crate::loopback::rig::{Duo, any_port, echo, expect, next, on, peer, quick, send, within};

/// Buffer of few messages, which does not grow.
const SMALL: u64 = 64 << 10;

#[tokio::test]
async fn messages_go_both_ways() {
    let duo = Duo::connected(2, quick()).await;
    send(&duo.ours, "from the client").await;
    expect(&duo.theirs, "from the client").await;
    send(&duo.theirs, "from the server").await;
    expect(&duo.ours, "from the server").await;
}

/// Requires IPv6 on the machine.
#[tokio::test]
async fn one_association_may_have_paths_of_both_ip_versions() {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    if UdpSocket::bind(v6).is_err() {
        return;
    }
    let builder = |node| Endpoint::builder(Protection::Insecure).local(any_port(node)).local(v6);
    let server = builder(1).accept(quick()).bind().expect("a server");
    let client = builder(11).bind().expect("a client");
    let ours = within(client.connect(peer(&client, &server), quick())).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    within(async {
        while !ours.paths().await.iter().all(|path| path.state == PathState::Active && path.sent_bytes > 0) {
            ours.send(vec![6; 100_000], on(0)).await.expect("accepted");
            assert_eq!(next(&theirs).await.payload.len(), 100_000);
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_comes_back_as_it_was_sent() {
    let duo = Duo::connected(1, quick()).await;
    let (ours, theirs) = (duo.ours, duo.theirs);
    let echoing = tokio::spawn(async move { echo(&theirs).await });
    for length in [1, 1000, 1180, 1181, 10_000, 300_000] {
        let payload = Bytes::from(vec![length as u8; length]);
        let options = SendOptions {
            stream: 3,
            ppid: 77,
            unordered: length % 2 == 0,
            immediate: true,
            ..SendOptions::default()
        };
        within(ours.send(payload.clone(), options)).await.expect("accepted");
        let message = next(&ours).await;
        assert_eq!(message.payload, payload);
        assert_eq!((message.stream, message.ppid, message.unordered), (3, 77, length % 2 == 0));
        assert!(message.beginning && message.ending);
    }
    within(ours.shutdown()).await.expect("a good end");
    assert_eq!(within(echoing).await.expect("an echo"), 6);
}

#[tokio::test]
async fn a_message_larger_than_the_receive_buffer_comes_in_pieces() {
    let config = quick().with_core(|core| core.recv_buffer_bytes = 64 << 10);
    let duo = Duo::connected(1, config).await;
    let payload = Bytes::from((0..400_000).map(|n| (n % 251) as u8).collect::<Vec<_>>());
    within(duo.ours.send(payload.clone(), on(0))).await.expect("accepted");
    let mut got = Vec::new();
    loop {
        let piece = next(&duo.theirs).await;
        assert_eq!(piece.beginning, got.is_empty());
        got.extend_from_slice(&piece.payload);
        if piece.ending {
            break;
        }
    }
    assert_eq!(got, payload);
}

//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# A DATA chunk with a User Data field of length L will have the Length field set to (16 + L) (indicating 16 + L bytes)
//# where L MUST be greater than 0.
//= docs/rfc9260.txt#section-6.2
//= type=test
//# An endpoint SHOULD NOT send a DATA chunk with no user data part.
#[tokio::test]
async fn invalid_message_is_refused_with_the_reason() {
    let duo = Duo::connected(1, quick()).await;
    let refused = |error: SendError| error.to_string();
    let empty = within(duo.ours.send("", on(0))).await.map_err(refused);
    assert_eq!(empty, Err("a message must have at least one byte".to_owned()));
    let stream = within(duo.ours.send("x", on(16))).await.map_err(refused);
    assert_eq!(stream, Err("stream 16 does not exist; the association has 16, numbered from 0".to_owned()));
    assert_eq!(duo.ours.streams(), 16);
    within(duo.ours.shutdown()).await.expect("a good end");
    assert!(within(duo.ours.send("x", on(0))).await.is_err());
}

//= docs/rfc9260.txt#section-5.1.1
//= type=test
//# After receiving the stream configuration information from the other side, each endpoint MUST perform the following
//# check: If the peer's MIS is less than the endpoint's OS, meaning that the peer is incapable of supporting all the
//# outbound streams the endpoint wants to configure, the endpoint MUST use MIS outbound streams and MAY report any
//# shortage to the upper layer.
//= docs/rfc9260.txt#section-5.1.1
//= type=test
//# After the association is initialized, the valid outbound stream identifier range for either endpoint MUST be 0 to
//# min(local OS, remote MIS) - 1.
#[tokio::test]
async fn both_ends_use_as_many_streams_as_the_one_that_has_fewer() {
    let (many, few) = (quick().streams(10), quick().streams(3));
    let server = crate::loopback::rig::server(&[1], few);
    let client = crate::loopback::rig::client(&[11]);
    let ours =
        within(client.connect(crate::loopback::rig::peer(&client, &server), many)).await.expect("connected");
    let theirs = within(server.accept()).await.expect("accepted");
    assert_eq!((ours.streams(), theirs.streams()), (3, 3));
}

#[tokio::test]
async fn a_receiver_that_does_not_read_stops_the_sender_within_bounds() {
    stops_within(None, 256 << 10).await;
}

#[tokio::test]
async fn buffers_that_may_grow_stop_the_sender_where_they_may_not_grow_further() {
    let largest = 512 << 10;
    let growth = BufferGrowth { largest_recv_bytes: largest, largest_send_bytes: largest };
    stops_within(Some(growth), 512 << 10).await;
}

/// Checks that a sender stops with buffers of 256 KiB that grow this way, to at most `largest` bytes.
async fn stops_within(growth: Option<BufferGrowth>, largest: usize) {
    const MESSAGE: usize = 32 << 10;
    let config = quick().with_core(|core| {
        core.send_buffer_bytes = Some(256 << 10);
        core.recv_buffer_bytes = 256 << 10;
        core.buffer_growth = growth;
    });
    let duo = Duo::connected(2, config).await;
    let mut accepted = 0;
    // A slow machine may stop early, which only makes the bound easier to meet.
    let limit = Duration::from_millis(500);
    while tokio::time::timeout(limit, duo.ours.send(vec![5; MESSAGE], on(0))).await.is_ok() {
        accepted += 1;
        assert!(accepted < 1000, "nothing stops the sender");
    }
    // Outbox and inbox of 256 KiB each, send buffer and receive buffer, and a message that exceeds each of them.
    assert!(accepted * MESSAGE <= 2 * (256 << 10) + 2 * largest + 4 * MESSAGE, "{accepted}");
    let state = duo.ours.snapshot().await;
    assert!(state.send_buffered_bytes <= largest as u64, "{state:?}");
    for _ in 0..accepted {
        assert_eq!(next(&duo.theirs).await.payload.len(), MESSAGE);
    }
    send(&duo.ours, "and on it goes").await;
    expect(&duo.theirs, "and on it goes").await;
}

#[tokio::test]
async fn futures_that_are_dropped_neither_lose_nor_double_a_message() {
    const MESSAGES: u32 = 3000;
    let config = quick().send_buffer_bytes(SMALL..=SMALL).recv_buffer_bytes(SMALL..=SMALL);
    let duo = Duo::connected(2, config).await;
    let sender = async {
        let mut random = fastrand::Rng::with_seed(3);
        for number in 0..MESSAGES {
            let mut payload = vec![0; 1000];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            let payload = Bytes::from(payload);
            loop {
                let limit = Duration::from_micros(random.u64(0..300));
                match tokio::time::timeout(limit, duo.ours.send(payload.clone(), on(0))).await {
                    Ok(sent) => break sent.expect("accepted"),
                    Err(_) => continue,
                }
            }
        }
        duo.ours.shutdown().await.expect("a good end");
    };
    let receiver = async {
        let mut random = fastrand::Rng::with_seed(4);
        let mut expected = 0;
        loop {
            let limit = Duration::from_micros(random.u64(0..300));
            tokio::select! {
                message = duo.theirs.recv() => match message.expect("no error") {
                    Some(message) => {
                        assert_eq!(message.payload[..4], u32::to_be_bytes(expected));
                        expected += 1;
                    }
                    None => break expected,
                },
                () = tokio::time::sleep(limit) => {}
            }
        }
    };
    let ((), received) = within(async { tokio::join!(sender, receiver) }).await;
    assert_eq!(received, MESSAGES);
}

#[tokio::test]
async fn cancelled_waiting_send_sends_no_data() {
    let config = quick().send_buffer_bytes(SMALL..=SMALL).recv_buffer_bytes(SMALL..=SMALL);
    let duo = Duo::connected(1, config).await;
    let limit = Duration::from_millis(300);
    let mut accepted = 0;
    while tokio::time::timeout(limit, duo.ours.send(vec![1; 10_000], on(0))).await.is_ok() {
        accepted += 1;
    }
    let receiver = async {
        let mut received = 0;
        while let Some(message) = duo.theirs.recv().await.expect("no error") {
            received += message.payload.len();
        }
        received
    };
    let (received, ended) = within(async { tokio::join!(receiver, duo.ours.shutdown()) }).await;
    ended.expect("a good end");
    assert_eq!(received, accepted * 10_000);
}
