//! Connections to one target.

use std::io::ErrorKind;
use std::sync::Arc;

use anabranch_forward::{Event, Failure, Limits};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::rig::{
    Client, Server, any, connect, echo, exchange, local_options, noise, options, pair, program, refused,
    until, within,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_and_half_close_reach_the_other_end() {
    let (_server, gateway, client) = pair(local_options()).await;
    let address = client.forward(echo().await);
    let bytes = noise(3_000_000, 1);
    let answer = exchange(&mut connect(address).await, &bytes).await.expect("an answer");
    assert!(answer == bytes, "{} of {} bytes", answer.len(), bytes.len());
    until("both sides count the end", || {
        client.totals().complete == 1 && gateway.tally().totals().complete == 1
    })
    .await;
    let totals = client.totals();
    assert_eq!((totals.to_peer_bytes, totals.from_peer_bytes), (3_000_000, 3_000_000));
    assert_eq!(gateway.tally().totals().to_peer_bytes, 3_000_000);
}

#[tokio::test]
async fn connection_with_priority_carries_all_bytes_beside_others() {
    let (urgent, bulk) = (echo().await, echo().await);
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let priority = urgent.port().to_string().parse().expect("a port");
    let client = Client::start_with(server.address, &[], priority).await;
    let (urgent, bulk) = (client.forward(urgent), client.forward(bulk));
    let exchanges = [(urgent, 1), (bulk, 2), (bulk, 3)].map(|(to, seed)| async move {
        let bytes = noise(3 << 20, seed);
        exchange(&mut connect(to).await, &bytes).await.is_ok_and(|answer| answer == bytes)
    });
    let [first, second, third] = exchanges;
    assert_eq!(tokio::join!(first, second, third), (true, true, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_continues_after_the_half_close_of_the_request() {
    let target = program(|mut connection| async move {
        let mut request = Vec::new();
        connection.read_to_end(&mut request).await.expect("a request");
        connection.write_all(&noise(1_000_000, request.len() as u64)).await.expect("an answer");
    })
    .await;
    let (_server, _gateway, client) = pair(local_options()).await;
    let answer = exchange(&mut connect(client.forward(target)).await, b"request").await;
    assert!(answer.expect("an answer") == noise(1_000_000, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_by_the_program_resets_the_connection_of_the_target() {
    let ended = Arc::new(Notify::new());
    let noted = Arc::clone(&ended);
    let target = program(move |mut connection| {
        let ended = Arc::clone(&noted);
        async move {
            let mut byte = [0];
            assert_eq!(connection.read(&mut byte).await.expect("a byte"), 1);
            let error = connection.read(&mut byte).await.expect_err("a reset");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            ended.notify_one();
        }
    })
    .await;
    let (_server, gateway, client) = pair(local_options()).await;
    let mut connection = connect(client.forward(target)).await;
    connection.write_all(b"x").await.expect("a byte");
    until("the connection is open", || gateway.tally().totals().from_peer_bytes == 1).await;
    SockRef::from(&connection).set_linger(Some(std::time::Duration::ZERO)).expect("an option");
    drop(connection);
    within(ended.notified()).await;
    until("both sides count the reset", || client.totals().reset == 1 && gateway.tally().totals().reset == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_by_the_target_resets_the_connection_of_the_program() {
    let target = program(|mut connection| async move {
        connection.read_u8().await.expect("a byte");
        SockRef::from(&connection).set_linger(Some(std::time::Duration::ZERO)).expect("an option");
    })
    .await;
    let (_server, _gateway, client) = pair(local_options()).await;
    let mut connection = connect(client.forward(target)).await;
    connection.write_all(b"x").await.expect("a byte");
    let error = within(connection.read_u8()).await.expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_of_a_target_that_reads_no_more_arrives_completely() {
    let target = program(|mut connection| async move {
        connection.read_u8().await.expect("a byte");
        connection.write_all(&noise(300_000, 3)).await.expect("an answer");
        connection.shutdown().await.expect("an end");
        // The system resets the connection if the target closes it while bytes arrive, after the answer was read.
        let _ = tokio::io::copy(&mut connection, &mut tokio::io::sink()).await;
    })
    .await;
    let (_server, _gateway, client) = pair(local_options()).await;
    let mut connection = connect(client.forward(target)).await;
    connection.write_all(b"x").await.expect("a byte");
    let mut answer = Vec::new();
    within(connection.read_to_end(&mut answer)).await.expect("an answer");
    assert!(answer == noise(300_000, 3));
    connection.write_all(b"the program may still send").await.expect("bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_connections_do_not_stop_others() {
    let never = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&never);
    let stalled = program(move |connection| {
        let held = Arc::clone(&held);
        async move {
            let _ = held.acquire().await;
            drop(connection);
        }
    })
    .await;
    let (_server, _gateway, client) = pair(local_options()).await;
    let (slow, fast) = (client.forward(stalled), client.forward(echo().await));
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let mut connection = connect(slow).await;
        writers.spawn(async move { connection.write_all(&noise(32_000_000, 1)).await });
    }
    let bytes = noise(200_000, 2);
    for _ in 0..10 {
        assert!(exchange(&mut connect(fast).await, &bytes).await.expect("an answer") == bytes);
    }
    assert!(writers.try_join_next().is_none(), "writers to a target that does not read wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_targets_are_reported_by_their_reason() {
    let unused =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let cases = [
        (unused.to_string(), Failure::Refused),
        ("10.1.2.3:80".to_owned(), Failure::Forbidden),
        ("localhost.invalid:80".to_owned(), Failure::NotResolved),
    ];
    let (_server, gateway, client) = pair(local_options()).await;
    for (target, expected) in cases {
        refused(client.forward(&target)).await;
        let target = Some(target.parse().expect("a target"));
        assert_eq!(client.events().last(), Some(&Event::NotOpened { target, failure: expected }));
    }
    let both = [client.totals(), gateway.tally().totals()];
    assert!(both.iter().all(|totals| totals.failures().count() == 3), "{both:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_that_does_not_answer_is_given_up() {
    // A full backlog: the system answers no further connection.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&crate::rig::any().into()).expect("a port");
    socket.listen(0).expect("a listener");
    let target = socket.local_addr().expect("an address").as_socket().expect("an address");
    let mut fillers = Vec::new();
    for _ in 0..4 {
        fillers.push(tokio::spawn(tokio::net::TcpStream::connect(target)));
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let mut options = local_options();
    options.connect_timeout = std::time::Duration::from_millis(500);
    let (_server, _gateway, client) = pair(options).await;
    refused(client.forward(target)).await;
    let [Event::NotOpened { failure, .. }] = client.events()[..] else { panic!("{:?}", client.events()) };
    assert_eq!(failure, Failure::TimedOut);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_above_the_limit_of_the_user_are_refused() {
    let mut options = local_options();
    options.limits = Limits { connections: 2, ..Limits::default() };
    let (_server, gateway, client) = pair(options).await;
    let address = client.forward(echo().await);
    let mut open = vec![connect(address).await, connect(address).await];
    until("two are open", || gateway.tally().totals().open == 2).await;
    refused(address).await;
    assert_eq!(client.totals().failures().collect::<Vec<_>>(), [(Failure::Limit, 1)]);
    assert_eq!(exchange(&mut open[0], b"a").await.expect("an answer"), b"a");
    drop(open.remove(0));
    until("one has ended", || gateway.tally().totals().open == 1).await;
    assert_eq!(exchange(&mut connect(address).await, b"b").await.expect("an answer"), b"b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_policy_forbids_this_machine() {
    let (_server, _gateway, client) = pair(options(&[])).await;
    refused(client.forward(echo().await)).await;
    assert_eq!(client.totals().failures().collect::<Vec<_>>(), [(Failure::Forbidden, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_connections_at_once_are_independent() {
    let (_server, gateway, client) = pair(local_options()).await;
    let address = client.forward(echo().await);
    let mut connections = Vec::new();
    for _ in 0..1000 {
        connections.push(connect(address).await);
    }
    until("all are open", || gateway.tally().totals().open == 1000).await;
    let mut exchanges = JoinSet::new();
    for (number, mut connection) in connections.into_iter().enumerate() {
        exchanges.spawn(async move {
            let bytes = noise(500 + number, number as u64);
            exchange(&mut connection, &bytes).await.is_ok_and(|answer| answer == bytes)
        });
    }
    assert!(exchanges.join_all().await.into_iter().all(|equal| equal));
    until("all have ended", || gateway.tally().totals().complete == 1000).await;
}
