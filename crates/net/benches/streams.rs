//! Throughput of one and of 1,000 streams of an association, with and without a stream that is not read, and of messages without
//! streams.
//!
//! ```text
//! cargo bench -p anabranch-net --bench streams
//! ```

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a bench prints and reads the clock"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch_net::{
    Association, Config, Endpoint, PathAddress, Peer, Protection, RecvStream, SendOptions, SendStream,
};
use bytes::Bytes;

const STREAMS: usize = 1000;
const ROUNDS: usize = 5;
const MESSAGE: usize = 16 << 10;
const MESSAGES: usize = 20_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn pair(stream_control: bool) -> Result<(Association, Association, [Endpoint; 2]), Failure> {
    let config = Config::default().streams(2048);
    let config = if stream_control { config.stream_control() } else { config };
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = || Endpoint::builder(Protection::Insecure).local(local);
    let (server, client) = (endpoint().accept(config.clone()).bind()?, endpoint().bind()?);
    let path = PathAddress::over_udp(local.ip(), server.local_addresses()[0]);
    let ours = client.connect(Peer::new([path]), config).await?;
    Ok((ours, server.accept().await?, [client, server]))
}

async fn fill(mut stream: SendStream, messages: usize) -> Result<SendStream, Failure> {
    let message = Bytes::from(vec![5; MESSAGE]);
    for _ in 0..messages {
        stream.send(message.clone()).await?;
    }
    Ok(stream)
}

async fn drain(mut stream: RecvStream, messages: usize) -> Result<RecvStream, Failure> {
    let mut left = MESSAGE * messages;
    while left > 0 {
        left -= stream.recv().await?.ok_or("it ended")?.payload.len();
    }
    Ok(stream)
}

/// Returns the time in which all streams but the first carry all messages. Without `reads_all`, the first is full and not read.
async fn streams(count: usize, reads_all: bool) -> Result<Duration, Failure> {
    let (ours, theirs, _hosts) = pair(true).await?;
    let (mut senders, mut receivers, mut unused) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let (mut sender, reply) = ours.open_stream().await?;
        sender.send("hello").await?;
        let (back, mut receiver) = theirs.accept_stream().await?.ok_or("it ended")?;
        receiver.recv().await?;
        senders.push(sender);
        receivers.push(receiver);
        unused.push((reply, back));
    }
    if !reads_all {
        let mut stalled = senders.remove(0);
        let _unread = receivers.remove(0);
        let filling = tokio::spawn(async move { while stalled.send(vec![1; MESSAGE]).await.is_ok() {} });
        let began = Instant::now();
        let done = run(senders, receivers).await;
        filling.abort();
        return done.map(|()| began.elapsed());
    }
    let began = Instant::now();
    run(senders, receivers).await?;
    Ok(began.elapsed())
}

async fn run(senders: Vec<SendStream>, receivers: Vec<RecvStream>) -> Result<(), Failure> {
    let messages = MESSAGES / senders.len();
    let tasks: Vec<_> = senders.into_iter().map(|stream| tokio::spawn(fill(stream, messages))).collect();
    let readers: Vec<_> = receivers.into_iter().map(|stream| tokio::spawn(drain(stream, messages))).collect();
    for reader in readers {
        reader.await??;
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Returns the time in which messages of the same number and size arrive without stream handles.
async fn messages() -> Result<Duration, Failure> {
    let (ours, theirs, _hosts) = pair(false).await?;
    let began = Instant::now();
    let sending = tokio::spawn(async move {
        let message = Bytes::from(vec![5; MESSAGE]);
        for number in 0..MESSAGES {
            let options = SendOptions { stream: (number % STREAMS) as u16, ..SendOptions::default() };
            ours.send(message.clone(), options).await?;
        }
        Ok::<_, Failure>(ours)
    });
    for _ in 0..MESSAGES {
        theirs.recv().await?.ok_or("it ended")?;
    }
    let took = began.elapsed();
    sending.await??;
    Ok(took)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let (mut one, mut all, mut stalled, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(streams(1, true).await?);
        all.push(streams(STREAMS, true).await?);
        stalled.push(streams(STREAMS, false).await?);
        plain.push(messages().await?);
    }
    let [one, all, stalled, plain] = [one, all, stalled, plain].map(median);
    println!("1,000 streams, one stalled / none stalled: {:.2}", all / stalled);
    println!("one stream / messages without handles: {:.2}", plain / one);
    println!("1,000 streams / messages without handles: {:.2}", plain / all);
    Ok(())
}
