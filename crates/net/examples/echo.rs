//! Echo over streams, over every link of both machines, encrypted.
//!
//! ```text
//! cargo build -p anabranch-net --example echo && cd target/debug/examples
//! ./echo key server.pem
//! ./echo key client.pem
//! ./echo serve server.pem CLIENT_KEY
//! ./echo send client.pem SERVER_KEY HOST
//! ```
//!
//! `key` prints a public key, and generates the key pair unless the file exists. `serve` listens on all addresses, or on those that
//! follow. `send` copies its standard input to a stream and the stream to its standard output.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{Association, Config, Endpoint, Protection};

const USAGE: &str =
    "usage: echo key FILE | echo serve FILE PEER_KEY [ADDRESS:PORT...] | echo send FILE PEER_KEY HOST[:PORT]";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["key", file] => {
            println!("{}", KeyPair::load_or_create(Path::new(file))?.public());
            Ok(())
        }
        ["serve", file, peer, addresses @ ..] => serve(protection(file, peer)?, addresses).await,
        ["send", file, peer, target] => send(protection(file, peer)?, target).await,
        _ => Err(USAGE.into()),
    }
}

/// Returns a protection that proves the key of a file, and accepts the owner of one other key.
fn protection(file: &str, peer: &str) -> Result<Protection, Failure> {
    let key = KeyPair::load_or_create(Path::new(file))?;
    let admission = Admission::Only(Arc::new([peer.parse()?].into_iter().collect()));
    Ok(Protection::dtls(key.credentials(admission)?))
}

async fn serve(protection: Protection, addresses: &[&str]) -> Result<(), Failure> {
    let addresses = addresses.iter().map(|address| address.parse()).collect::<Result<Vec<_>, _>>()?;
    let endpoint = Endpoint::server(protection, Config::default().stream_control(), addresses)?;
    println!("listening on {:?}", endpoint.local_addresses());
    loop {
        let association = endpoint.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = echo(&association).await {
                eprintln!("{error}");
            }
        });
    }
}

// ANCHOR: echo
async fn echo(association: &Association) -> Result<(), Failure> {
    while let Some((mut sender, mut receiver)) = association.accept_stream().await? {
        tokio::spawn(async move {
            tokio::io::copy(&mut receiver, &mut sender).await?;
            sender.finish()?;
            Ok::<_, Failure>(())
        });
    }
    Ok(())
}
// ANCHOR_END: echo

// ANCHOR: send
async fn send(protection: Protection, target: &str) -> Result<(), Failure> {
    let config = Config::default().stream_control();
    let association = Endpoint::client(protection)?.connect_to(target, config).await?;
    let (mut sender, mut receiver) = association.open_stream().await?;
    let sending = async {
        tokio::io::copy(&mut tokio::io::stdin(), &mut sender).await?;
        sender.finish()?;
        Ok::<_, Failure>(())
    };
    let mut output = tokio::io::stdout();
    let receiving = tokio::io::copy(&mut receiver, &mut output);
    let (sent, received) = tokio::join!(sending, receiving);
    sent?;
    received?;
    association.shutdown().await?;
    Ok(())
}
// ANCHOR_END: send
