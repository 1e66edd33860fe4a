//! One association of this project over loopback addresses, with both ends in this process.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_net::{
    Association, Config, Endpoint, EndpointBuilder, PathAddress, Peer, Protection, SendOptions,
};
use anabranch_tests::credentials::credentials;
use clap::Args;

use crate::subject::{Amount, Paced, message};
use crate::{Failure, process};

/// Time by which a paced transfer falls behind its rate before it sends the data that is due.
const TICK: Duration = Duration::from_millis(1);

/// Load of an association.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct Flow {
    #[command(flatten)]
    pub(crate) amount: Amount,
    #[arg(long)]
    pub(crate) scheme: String,
    /// Pairs of loopback addresses.
    #[arg(long, default_value_t = 1)]
    pub(crate) paths: u8,
    /// Protection by the DTLS chunk.
    #[arg(long)]
    pub(crate) protected: bool,
}

/// Both ends. The hosts run while they exist.
struct Pair {
    sending: Association,
    receiving: Association,
    _endpoints: [Endpoint; 2],
}

pub(crate) async fn rate(flow: &Flow) -> Result<f64, Failure> {
    let Pair { sending, receiving, _endpoints } = connect(flow).await?;
    let received = tokio::spawn(receive(receiving));
    let begun = Instant::now();
    let message = message(flow.amount.message_bytes)?;
    for _ in 0..flow.amount.messages {
        sending.send(message.clone(), SendOptions::default()).await?;
    }
    sending.shutdown().await?;
    check(flow.amount, received.await??)?;
    Ok(flow.amount.mbit_per_s(begun.elapsed().as_secs_f64()))
}

/// Returns the processor seconds of a transfer at a fixed rate. A stack that does not keep up takes longer.
pub(crate) async fn cpu_seconds(paced: Paced) -> Result<f64, Failure> {
    let Paced { amount, mbit_per_s } = paced;
    let flow = Flow { amount, scheme: "bonded".to_owned(), paths: 1, protected: false };
    let Pair { sending, receiving, _endpoints } = connect(&flow).await?;
    let received = tokio::spawn(receive(receiving));
    let before = process::cpu_seconds()?;
    let bytes_per_s = f64::from(mbit_per_s) * 1e6 / 8.0;
    let begun = Instant::now();
    let message = message(amount.message_bytes)?;
    let mut sent: u32 = 0;
    while sent < amount.messages {
        let due = begun.elapsed().as_secs_f64() * bytes_per_s / amount.message_bytes as f64;
        while sent < amount.messages.min(due as u32) {
            sending.send(message.clone(), SendOptions::default()).await?;
            sent += 1;
        }
        tokio::time::sleep(TICK).await;
    }
    sending.shutdown().await?;
    check(amount, received.await??)?;
    Ok(process::cpu_seconds()? - before)
}

fn check(amount: Amount, received: u64) -> Result<(), Failure> {
    if received == amount.bytes() { Ok(()) } else { Err("the association lost data".into()) }
}

async fn receive(association: Association) -> Result<u64, Failure> {
    let mut bytes = 0;
    while let Some(message) = association.recv().await? {
        bytes += message.payload.len() as u64;
    }
    Ok(bytes)
}

async fn connect(flow: &Flow) -> Result<Pair, Failure> {
    let scheme = Config::new(&flow.scheme)?;
    let protection = |own, peer| match flow.protected {
        true => Protection::dtls(credentials(own, &[peer])),
        false => Protection::Insecure,
    };
    let server = bound(Endpoint::builder(protection(2, 1)), flow.paths, 1).accept(scheme.clone());
    let server = server.bind()?;
    let client = bound(Endpoint::builder(protection(1, 2)), flow.paths, 2).bind()?;
    let pairs = client.local_addresses().iter().zip(server.local_addresses());
    let peer = Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote)));
    let sending = client.connect(peer, scheme).await?;
    let receiving = server.accept().await?;
    Ok(Pair { sending, receiving, _endpoints: [server, client] })
}

/// Binds a separate address for each path.
fn bound(builder: EndpointBuilder, paths: u8, host: u8) -> EndpointBuilder {
    let local = |path| SocketAddr::new(IpAddr::from([127, 0, 10 + path, host]), 0);
    (0..paths).map(local).fold(builder, EndpointBuilder::local)
}
