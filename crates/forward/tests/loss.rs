//! Loss of the gateway.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_forward::{Event, Failure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{
    Client, Server, any, connect, connected, echo, exchange, local_options, refused, until, within,
};

fn was_lost(client: &Client) -> bool {
    client.events().iter().any(|event| matches!(event, Event::Lost { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_gateway_resets_connections_and_serves_new_ones_after_it_returns() {
    let (server, gateway) = Server::gateway(any(), local_options(), 1);
    let client = Client::start(server.address, &[]).await;
    let address = client.forward(echo().await);
    let mut open = connect(address).await;
    open.write_all(b"x").await.expect("a byte");
    assert_eq!(within(open.read_u8()).await.expect("a byte"), b'x');
    drop(gateway);
    let at = server.address;
    tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
    let (_server, _gateway) = Server::gateway(at, local_options(), 2);
    assert_eq!(exchange(&mut connect(address).await, b"a").await.expect("an answer"), b"a");
    let error = within(open.read_u8()).await.expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(was_lost(&client));
    until("the return is reported", || client.events().contains(&Event::Restored)).await;
}

/// Number of attempts, of which a busy machine may delay all but one.
const ATTEMPTS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_that_returned_serves_new_connections_within_3_s() {
    let mut taken = Vec::new();
    for instance in 1..=ATTEMPTS as u64 {
        let (server, _gateway) = Server::gateway(any(), local_options(), instance);
        let client = Client::start(server.address, &[]).await;
        let address = client.forward(echo().await);
        let at = server.address;
        tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
        let (_server, _gateway) = Server::gateway(at, local_options(), instance + 10);
        let returned = Instant::now();
        assert_eq!(exchange(&mut connect(address).await, b"a").await.expect("an answer"), b"a");
        taken.push(returned.elapsed());
        if returned.elapsed() < Duration::from_secs(3) {
            return;
        }
    }
    panic!("{taken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connection_without_data_is_reset_after_the_gateway_was_restarted() {
    let (server, gateway) = Server::gateway(any(), local_options(), 1);
    let client = Client::start(server.address, &[]).await;
    let mut open = connect(client.forward(echo().await)).await;
    until("it is open", || gateway.tally().totals().open == 1).await;
    let at = server.address;
    tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
    let (_server, _gateway) = Server::gateway(at, local_options(), 2);
    within(open.read_u8()).await.expect_err("a reset");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_without_a_gateway_fails_with_its_reason() {
    let is_first = Arc::new(AtomicBool::new(true));
    let server = Server::start(any(), move |association| {
        let is_first = is_first.swap(false, Ordering::Relaxed);
        async move {
            if !is_first {
                return association.abort();
            }
            let reply = anabranch_forward::message::Notice::ProbeReply { instance: 1 };
            let options = anabranch_net::SendOptions { unordered: true, ..Default::default() };
            let _ = association.recv().await;
            let _ = association.send(reply.encode(), options).await;
            let _ = association.shutdown().await;
        }
    });
    let client = Client::start(server.address, &[]).await;
    until("the loss is reported", || was_lost(&client)).await;
    tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
    refused(client.forward("example.org:80")).await;
    assert_eq!(client.totals().failures().collect::<Vec<_>>(), [(Failure::NoGateway, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_no_gateway_is_refused() {
    for reply in [&b"garbage"[..], b"\x02ANBF\x02"] {
        let server = Server::start(any(), move |association| async move {
            let options = anabranch_net::SendOptions { unordered: true, ..Default::default() };
            let _ = association.send(reply, options).await;
            let _ = association.closed().await;
        });
        let refused = within(connected(server.address)).await.expect_err("no gateway");
        let expected = if reply[0] == 2 { "different versions" } else { "`anabranch gateway`" };
        assert!(refused.message.contains(expected), "{}", refused.message);
    }
}
