//! Cost of protection for a transfer over loopback: plain and protected transfers alternate for several rounds. The result is the
//! median ratio of the protected rate to the plain rate of the same round.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_net::{Config, Endpoint, EndpointBuilder, PathAddress, Peer, Protection, SendOptions};
use anabranch_tests::credentials::credentials;

const ROUNDS: usize = 9;
const MESSAGE_BYTES: usize = 64 << 10;
// Half a gigabyte: in shorter transfers the first round trips, in which packets and windows grow, dominate.
const MESSAGES: usize = 8192;

fn any_port(builder: EndpointBuilder, nodes: [u8; 2]) -> EndpointBuilder {
    let local = |node| SocketAddr::new(IpAddr::from([127, 0, 6, node]), 0);
    nodes.into_iter().fold(builder, |builder, node| builder.local(local(node)))
}

/// Returns the time for opening an association, and the time for sending all messages one way and closing.
async fn transfer(protected: bool) -> (Duration, Duration) {
    let scheme = Config::new("cmt").expect("a scheme");
    let protection = |own, peer| match protected {
        true => Protection::dtls(credentials(own, &[peer])),
        false => Protection::Insecure,
    };
    let server = any_port(Endpoint::builder(protection(2, 1)), [1, 2]).accept(scheme.clone());
    let server = server.bind().expect("a server");
    let client = any_port(Endpoint::builder(protection(1, 2)), [3, 4]).bind().expect("a client");
    let pairs = client.local_addresses().iter().zip(server.local_addresses());
    let peer = Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote)));
    let begun = Instant::now();
    let association = client.connect(peer, scheme).await.expect("connected");
    let connected = begun.elapsed();
    let theirs = server.accept().await.expect("accepted");
    assert_eq!(theirs.peer_identity().is_some(), protected);
    let receiving = tokio::spawn(async move { while let Ok(Some(_)) = theirs.recv().await {} });
    let begun = Instant::now();
    for _ in 0..MESSAGES {
        association.send(vec![1; MESSAGE_BYTES], SendOptions::default()).await.expect("accepted");
    }
    association.shutdown().await.expect("a good end");
    let took = begun.elapsed();
    receiving.await.expect("no panic");
    (connected, took)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (mut plain, mut protected) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(runtime.block_on(transfer(false)));
        protected.push(runtime.block_on(transfer(true)));
    }
    println!("{ROUNDS} rounds of {} MiB over two loopback paths", (MESSAGES * MESSAGE_BYTES) >> 20);
    for (name, rounds) in [("plain", &plain), ("protected", &protected)] {
        let ratio = median(
            rounds.iter().zip(&plain).map(|(round, plain)| plain.1.as_secs_f64() / round.1.as_secs_f64()),
        );
        let took = median(rounds.iter().map(|round| round.1.as_secs_f64()));
        let connected = median(rounds.iter().map(|round| round.0.as_secs_f64() * 1e3));
        let rate = (MESSAGES * MESSAGE_BYTES) as f64 * 8.0 / took / 1e6;
        println!(
            "{name:10} {ratio:5.2} of the plain rate, {rate:6.0} Mbit/s, connected after {connected:.1} ms"
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
