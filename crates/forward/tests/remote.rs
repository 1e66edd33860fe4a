//! Listeners at the gateway.

use anabranch_forward::{Event, Failure, RemoteListen};

use crate::rig::{Client, Server, any, connect, echo, exchange, local_options, until};

fn remote_port(client: &Client) -> Option<u16> {
    client.events().iter().rev().find_map(|event| match event {
        Event::RemoteListening { port, .. } => Some(*port),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_gateway_reach_a_target_of_the_user() {
    let mut options = local_options();
    options.remote_listen = RemoteListen::Loopback;
    let (server, _gateway) = Server::gateway(any(), options.clone(), 1);
    let client = Client::start(server.address, &[&format!("127.0.0.1:0:{}", echo().await)]).await;
    until("the gateway listens", || remote_port(&client).is_some()).await;
    let at = ([127, 0, 0, 1], remote_port(&client).expect("a port")).into();
    assert_eq!(exchange(&mut connect(at).await, b"x").await.expect("an answer"), b"x");

    let address = server.address;
    tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
    let (_server, _gateway) = Server::gateway(address, options, 2);
    let listened = |event: &&Event| matches!(event, Event::RemoteListening { .. });
    until("the gateway listens again", || client.events().iter().filter(listened).count() == 2).await;
    let at = ([127, 0, 0, 1], remote_port(&client).expect("a port")).into();
    assert_eq!(exchange(&mut connect(at).await, b"y").await.expect("an answer"), b"y");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_listeners_than_permitted_are_refused() {
    for (permitted, listen) in [
        (RemoteListen::Forbidden, "127.0.0.1:0"),
        (RemoteListen::Loopback, "*:0"),
        (RemoteListen::Loopback, "0.0.0.0:0"),
    ] {
        let mut options = local_options();
        options.remote_listen = permitted;
        let (server, _gateway) = Server::gateway(any(), options, 1);
        let client = Client::start(server.address, &[&format!("{listen}:127.0.0.1:1")]).await;
        let refused = Event::RemoteNotListening { port: 0, failure: Failure::Forbidden };
        until("the refusal is reported", || client.events().contains(&refused)).await;
    }
}
