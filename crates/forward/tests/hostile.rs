//! Hostile clients and gateways.

use std::sync::Arc;

use anabranch_forward::message::{Answer, Notice, Request};
use anabranch_forward::{Failure, Gateway, Limits};
use anabranch_net::SendOptions;

use crate::rig::{
    Client, LIMIT, Server, any, associate, connect, echo, exchange, local_options, noise, options, refused,
    until, within,
};

const UNORDERED: SendOptions = SendOptions {
    duplicate: false,
    stream: 0,
    ppid: 0,
    unordered: true,
    immediate: false,
    reliability: anabranch_net::Reliability::Full,
    context: 0,
};

/// Sends the first message of a stream, and returns the answer.
async fn ask(association: &anabranch_net::Association, request: Vec<u8>) -> Option<Answer> {
    let (mut sender, mut receiver) = association.open_stream().await.expect("a stream");
    sender.send(request).await.expect("a request");
    let answer = within(receiver.recv()).await.ok().flatten()?;
    Some(Answer::decode(&answer.payload).expect("an answer"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_answered_and_serving_continues() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let incoming = Request::Incoming { id: 1, from: any() }.encode();
    for request in [b"\x01".to_vec(), b"\x01\x09".to_vec(), noise(2000, 1), vec![1; 60_000], incoming] {
        let failure = if request[0] == 1 { Failure::Malformed } else { Failure::Version };
        let expected = if request.len() > 1000 { Failure::Malformed } else { failure };
        assert_eq!(ask(&association, request).await, Some(Answer::Failed(expected)));
    }
    assert_eq!(ask(&association, b"\x02\x01".to_vec()).await, Some(Answer::Failed(Failure::Version)));
    let target = Request::Connect(echo().await.into());
    assert!(matches!(ask(&association, target.encode()).await, Some(Answer::Ready { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_is_forbidden_by_default() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let request = Request::Listen { id: 1, listen: "0".parse().expect("a listener") };
    assert_eq!(ask(&association, request.encode()).await, Some(Answer::Failed(Failure::Forbidden)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_notice_ends_the_association_and_no_other() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let client = Client::start(server.address, &[]).await;
    for notice in [b"?".to_vec(), Notice::ProbeReply { instance: 1 }.encode(), noise(10_000, 1)] {
        let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
        association.send(notice, UNORDERED).await.expect("a message");
        within(association.closed()).await.expect_err("an abort");
    }
    let address = client.forward(echo().await);
    assert_eq!(exchange(&mut connect(address).await, b"x").await.expect("an answer"), b"x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_requests_is_limited_and_leaves_other_users_alone() {
    let mut options = local_options();
    options.limits = Limits { connections: 10, per_second: 1, burst: 50 };
    let (server, gateway) = Server::gateway(any(), options.clone(), 1);
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let target = Request::Connect(echo().await.into()).encode();
    let mut streams = Vec::new();
    for _ in 0..500 {
        let (mut sender, receiver) = association.open_stream().await.expect("a stream");
        sender.send(target.clone()).await.expect("a request");
        streams.push((sender, receiver));
    }
    until("the flood is refused", || {
        gateway.tally().totals().failures().collect::<Vec<_>>() == [(Failure::Limit, 490)]
    })
    .await;
    assert_eq!(gateway.tally().totals().open, 10);
    drop(streams);
    until("its connections have ended", || gateway.tally().totals().open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_of_a_gateway_fails_the_connection_and_no_other() {
    let server = Server::start(any(), |association| async move {
        let reply = Notice::ProbeReply { instance: 1 };
        let _ = association.recv().await;
        let _ = association.send(reply.encode(), UNORDERED).await;
        let answers = [b"garbage".to_vec(), vec![1], vec![1, 200], noise(100_000, 1), vec![1, 0, 0, 80]];
        for answer in answers {
            let Ok(Some((mut sender, mut receiver))) = association.accept_stream().await else { return };
            tokio::spawn(async move {
                let _ = receiver.recv().await;
                let _ = sender.send(answer).await;
                let _ = sender.send("data").await;
                let _ = sender.finish();
            });
        }
        let _ = association.closed().await;
    });
    let client = Client::start(server.address, &[]).await;
    let address = client.forward("example.org:80");
    for _ in 0..4 {
        refused(address).await;
    }
    let mut connection = connect(address).await;
    assert_eq!(exchange(&mut connection, b"").await.expect("data"), b"data");
    let failed: u64 = client.totals().failures().map(|(_, number)| number).sum();
    assert_eq!(failed, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_a_gateway_opens_unasked_reach_no_program() {
    let (answers, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(any(), move |association| {
        let answers = answers.clone();
        async move {
            let reply = Notice::ProbeReply { instance: 1 };
            let _ = association.recv().await;
            let _ = association.send(reply.encode(), UNORDERED).await;
            let target = Request::Connect("127.0.0.1:22".parse().expect("a target"));
            for request in [Request::Incoming { id: 9, from: any() }, target] {
                let _ = answers.send(ask(&association, request.encode()).await);
            }
            let _ = association.closed().await;
        }
    });
    let _client = Client::start(server.address, &["0:127.0.0.1:1"]).await;
    let first = within(answered.recv()).await.flatten();
    assert_eq!(first, Some(Answer::Failed(Failure::Forbidden)));
    assert_eq!(within(answered.recv()).await.flatten(), Some(Answer::Failed(Failure::Malformed)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beside_another_protocol_need_a_permitted_address() {
    let (permitted, other) = (echo().await, echo().await);
    let gateway = Gateway::new(options(&["127.0.0.1:*"]), 1);
    let server = Server::start(any(), move |association| {
        let gateway = gateway.clone();
        async move {
            let permits = Arc::new(move |_, port| port != other.port());
            gateway.serve_connections(association, "user", permits, Arc::new(|_| {})).await;
        }
    });
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let name = format!("localhost:{}", permitted.port()).parse().expect("a target");
    let not_in_policy = "127.0.0.2:1".parse().expect("a target");
    for target in [other.into(), name, not_in_policy] {
        let request = Request::Connect(target).encode();
        assert_eq!(ask(&association, request).await, Some(Answer::Failed(Failure::Forbidden)));
    }
    let request = Request::Connect(permitted.into()).encode();
    assert!(matches!(ask(&association, request).await, Some(Answer::Ready { .. })));
}
