//! Echo over several paths.
//!
//! ```text
//! cargo run -p anabranch-net --example echo -- serve 127.0.0.1:9899 127.0.0.2:9899
//! cargo run -p anabranch-net --example echo -- send 127.0.0.3=127.0.0.1:9899 127.0.0.4=127.0.0.2:9899
//! ```
//!
//! The client sends each line of its standard input, prints what comes back, and says at the end how much each path carried.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use anabranch_net::{Association, Host, PathAddress, Peer, Protection, SendOptions, config};

const USAGE: &str = "usage: echo serve ADDRESS:PORT... | echo send LOCAL=ADDRESS:PORT...";

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((verb, addresses)) if verb == "serve" => serve(addresses).await,
        Some((verb, routes)) if verb == "send" => send(routes).await,
        _ => Err(USAGE.into()),
    }
}

async fn serve(addresses: &[String]) -> Outcome {
    let mut builder = Host::builder(Protection::Insecure).accept(config("cmt")?);
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

async fn send(routes: &[String]) -> Outcome {
    let routes: Vec<PathAddress> = routes.iter().map(|text| route(text)).collect::<Result<_, _>>()?;
    let mut locals: Vec<IpAddr> = routes.iter().map(|route| route.local).collect();
    locals.dedup();
    let builder = locals
        .into_iter()
        .fold(Host::builder(Protection::Insecure), |builder, local| builder.local(SocketAddr::new(local, 0)));
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
