//! Rates that a sender with a rate limit reaches: from memory, over two loopback paths, to a receiver that discards the content.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection};
use anabranch_transfer::{
    Pipe, RateLimit, Report, SendSource, Sender, Server, ServerOptions, Store, Timeouts, TransferError, push,
};

/// Limits in Mbit/s.
const LIMITS: [u64; 8] = [1, 10, 50, 100, 200, 400, 700, 1000];
/// Duration of a transfer at its limit. At the slowest limit a sender sends two segments per second.
const TIME: Duration = Duration::from_secs(5);

fn any_port(node: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 6, node]), 0)
}

async fn connect(server: &Endpoint) -> Association {
    let client = Endpoint::builder(Protection::Insecure)
        .local(any_port(3))
        .local(any_port(4))
        .bind()
        .expect("a client");
    let pairs = client.local_addresses().iter().zip(server.local_addresses());
    let peer = Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote)));
    client.connect(peer, Config::new("cmt").expect("a scheme")).await.expect("connected")
}

/// Returns the user bytes per second of a transfer of `bytes` bytes.
async fn reached(limit: RateLimit, bytes: u64) -> f64 {
    let scheme = Config::new("cmt").expect("a scheme");
    let endpoint = Endpoint::builder(Protection::Insecure)
        .local(any_port(1))
        .local(any_port(2))
        .accept(scheme)
        .bind()
        .expect("a server");
    let server = Server::new(Store::Pipe(Pipe::new(std::io::sink())), ServerOptions::default());
    let accepting = endpoint.clone();
    let serving = tokio::spawn(async move {
        let association = accepting.accept().await.expect("accepted");
        server.serve(association, &Report::default()).await
    });
    let report = Report::default();
    let source = SendSource::stream("bytes", std::io::repeat(7).take(bytes));
    let mut sender = Sender::new(vec![source], Some(limit), report.clone());
    let first = connect(&endpoint).await;
    let begun = Instant::now();
    let again = || async { Ok::<_, TransferError>(connect(&endpoint).await) };
    push(&mut sender, first, again, Timeouts::default(), &report).await.expect("sent");
    let took = begun.elapsed();
    serving.await.expect("no panic").expect("received");
    bytes as f64 / took.as_secs_f64()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    println!("limited sender, two loopback paths, {} s each", TIME.as_secs());
    for megabits in LIMITS {
        let rate = NonZeroU64::new(megabits * 1_000_000 / 8).expect("not zero");
        let bytes = rate.get() * TIME.as_secs();
        let reached = runtime.block_on(reached(RateLimit(rate), bytes));
        println!("{megabits:5} Mbit/s  {:6.1} % of the limit", 100.0 * reached / rate.get() as f64);
    }
}
