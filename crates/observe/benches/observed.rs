//! Cost of observing a transfer over loopback: several rounds of each kind, and the median ratio of its time to that of the
//! unobserved transfer of the same round.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_net::{
    Config, Endpoint, EndpointBuilder, Observer, PathAddress, Peer, Protection, SendOptions,
};
use anabranch_observe::{Outputs, Recording, Role};

const ROUNDS: usize = 9;
const MESSAGE_BYTES: usize = 64 << 10;
const MESSAGES: usize = 512;

/// Observer that ignores all events.
struct Idle;

impl Observer for Idle {}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unobserved,
    Idle,
    Pcap,
    Trace,
    Qlog,
    All,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Unobserved, "no observer"),
    (Kind::Idle, "an observer that does nothing"),
    (Kind::Pcap, "--pcap"),
    (Kind::Trace, "--trace"),
    (Kind::Qlog, "--qlog"),
    (Kind::All, "all three"),
];

fn outputs(kind: Kind, folder: &std::path::Path) -> Outputs {
    let wanted = |one: Kind, name: &str| (kind == one || kind == Kind::All).then(|| folder.join(name));
    Outputs {
        pcap: wanted(Kind::Pcap, "c.pcapng"),
        trace: wanted(Kind::Trace, "trace"),
        qlog: wanted(Kind::Qlog, "e.sqlog"),
        ..Outputs::default()
    }
}

fn any_port(builder: EndpointBuilder, nodes: [u8; 2]) -> EndpointBuilder {
    let local = |node| SocketAddr::new(IpAddr::from([127, 0, 5, node]), 0);
    nodes.into_iter().fold(builder, |builder, node| builder.local(local(node)))
}

/// Sends all messages one way and closes. Returns the duration and the number of dropped records.
async fn transfer(kind: Kind) -> (Duration, u64) {
    let scheme = Config::new("cmt").expect("a scheme");
    let folder = tempfile::tempdir().expect("a folder");
    let outputs = outputs(kind, folder.path());
    let recording = (!outputs.is_empty())
        .then(|| Recording::start(&outputs, Role::Client, "cmt", &scheme).expect("a recording"));
    let server = any_port(Endpoint::builder(Protection::Insecure), [1, 2])
        .accept(scheme.clone())
        .bind()
        .expect("a server");
    let mut client = any_port(Endpoint::builder(Protection::Insecure), [3, 4]);
    client = match (&recording, kind) {
        (Some(recording), _) => client.observer(recording.observer()),
        (None, Kind::Idle) => client.observer(Idle),
        (None, _) => client,
    };
    let client = client.bind().expect("a client");
    let pairs = client.local_addresses().iter().zip(server.local_addresses());
    let peer = Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote)));
    let association = client.connect(peer, scheme).await.expect("connected");
    let theirs = server.accept().await.expect("accepted");
    let receiving = tokio::spawn(async move { while let Ok(Some(_)) = theirs.recv().await {} });
    let begun = Instant::now();
    for _ in 0..MESSAGES {
        association.send(vec![1; MESSAGE_BYTES], SendOptions::default()).await.expect("accepted");
    }
    association.shutdown().await.expect("a good end");
    let took = begun.elapsed();
    receiving.await.expect("no panic");
    (took, recording.map_or(0, |recording| recording.finish().records_dropped))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut times = [const { Vec::new() }; KINDS.len()];
    let mut dropped = [0; KINDS.len()];
    for _ in 0..ROUNDS {
        for (place, (kind, _)) in KINDS.into_iter().enumerate() {
            let (took, lost) = runtime.block_on(transfer(kind));
            times[place].push(took.as_secs_f64());
            dropped[place] += lost;
        }
    }
    let bytes = (MESSAGES * MESSAGE_BYTES) as f64;
    println!("{ROUNDS} rounds of {} MiB over two loopback paths", (MESSAGES * MESSAGE_BYTES) >> 20);
    for (place, (_, name)) in KINDS.into_iter().enumerate() {
        let ratios = times[place].iter().zip(&times[0]).map(|(took, alone)| took / alone);
        let (ratio, took) = (median(ratios), median(times[place].iter().copied()));
        let rate = bytes * 8.0 / took / 1e6;
        println!(
            "{name:30} {ratio:5.2} times the time, {rate:6.0} Mbit/s, {} records dropped",
            dropped[place]
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
