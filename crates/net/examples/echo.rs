//! Echo over several paths, between two hosts that know each other's keys.
//!
//! ```text
//! cargo run -p anabranch-net --example echo -- key server.pem
//! cargo run -p anabranch-net --example echo -- key client.pem
//! cargo run -p anabranch-net --example echo -- serve server.pem CLIENT_KEY 127.0.0.1:9899 127.0.0.2:9899
//! cargo run -p anabranch-net --example echo -- send client.pem SERVER_KEY 127.0.0.3=127.0.0.1:9899 127.0.0.4=127.0.0.2:9899
//! ```
//!
//! `key` generates a key pair unless the file exists, and prints its public key. The client sends each line of its standard input,
//! prints the answers, and at the end reports the bytes that each path carried.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{Association, Host, PathAddress, Peer, Protection, SendOptions, config};

const USAGE: &str = "usage: echo key FILE | echo serve FILE PEER_KEY ADDRESS:PORT... | echo send FILE PEER_KEY LOCAL=ADDRESS:PORT...";

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["key", file] => {
            println!("{}", KeyPair::load_or_create(Path::new(file))?.public());
            Ok(())
        }
        ["serve", file, peer, addresses @ ..] => serve(protection(file, peer)?, addresses).await,
        ["send", file, peer, routes @ ..] => send(protection(file, peer)?, routes).await,
        _ => Err(USAGE.into()),
    }
}

/// Returns a protection that proves the key of a file, and accepts the owner of one other key.
fn protection(file: &str, peer: &str) -> Result<Protection, Box<dyn Error + Send + Sync>> {
    let key = KeyPair::load_or_create(Path::new(file))?;
    let admission = Admission::Only(Arc::new([peer.parse()?].into_iter().collect()));
    Ok(Protection::dtls(key.credentials(admission)?))
}

async fn serve(protection: Protection, addresses: &[&str]) -> Outcome {
    let mut builder = Host::builder(protection).accept(config("cmt")?);
    for address in addresses {
        builder = builder.local(address.parse()?);
    }
    let host = builder.bind()?;
    println!("listening on {:?}, SCTP port {}", host.local_addresses(), host.sctp_port());
    loop {
        let association = host.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = echo(&association).await {
                eprintln!("{error}");
            }
        });
    }
}

async fn echo(association: &Association) -> Outcome {
    while let Some(message) = association.recv().await? {
        let options = SendOptions { stream: message.stream, ..SendOptions::default() };
        association.send(message.payload, options).await?;
    }
    Ok(())
}

fn route(text: &str) -> Result<PathAddress, Box<dyn Error + Send + Sync>> {
    let (local, remote) = text.split_once('=').ok_or(USAGE)?;
    Ok(PathAddress::over_udp(local.parse()?, remote.parse()?))
}

async fn send(protection: Protection, routes: &[&str]) -> Outcome {
    let routes: Vec<PathAddress> = routes.iter().map(|text| route(text)).collect::<Result<_, _>>()?;
    let mut locals: Vec<IpAddr> = routes.iter().map(|route| route.local).collect();
    locals.dedup();
    let builder = locals
        .into_iter()
        .fold(Host::builder(protection), |builder, local| builder.local(SocketAddr::new(local, 0)));
    let association = builder.bind()?.connect(Peer::new(routes), config("cmt")?).await?;
    for line in std::io::stdin().lines() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        association.send(line, SendOptions::default()).await?;
        let Some(echo) = association.recv().await? else { break };
        println!("{}", String::from_utf8_lossy(&echo.payload));
    }
    for path in association.paths().await {
        let rtt = path.srtt.map_or("no RTT yet".to_owned(), |rtt| format!("RTT {rtt:.1?}"));
        println!("{} - {}: {:?}, {rtt}, {} B sent", path.local, path.remote, path.state, path.sent_bytes);
    }
    association.shutdown().await?;
    Ok(())
}
