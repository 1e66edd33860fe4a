//! Chat over streams: a server that passes the lines of each member to all others.
//!
//! ```text
//! cargo build -p anabranch-net --example chat && cd target/debug/examples
//! ./chat key server.pem
//! ./chat key anna.pem
//! ./chat serve server.pem [::]:9899 ANNAS_KEY BERTAS_KEY
//! ./chat join anna.pem SERVER_KEY HOST Anna
//! ```
//!
//! `key` prints a public key, and generates the key pair unless the file exists. `serve` admits the owners of the keys that follow
//! its address. `join` sends each line of its standard input as a message, and prints those of the others.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{Association, Config, Endpoint, Protection, RecvStream, SendStream};
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::broadcast;

const USAGE: &str =
    "usage: chat key FILE | chat serve FILE ADDRESS:PORT KEY... | chat join FILE SERVER_KEY HOST[:PORT] NAME";

/// Lines that wait for a slow member. It misses older ones.
const KEPT_LINES: usize = 64;

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
        ["serve", file, address, keys @ ..] => serve(protection(file, keys)?, address).await,
        ["join", file, key, target, name] => join(protection(file, &[key])?, target, name).await,
        _ => Err(USAGE.into()),
    }
}

/// Returns a protection that proves the key of a file, and accepts the owners of these keys.
fn protection(file: &str, keys: &[&str]) -> Result<Protection, Failure> {
    let keys = keys.iter().map(|key| key.parse()).collect::<Result<_, _>>()?;
    Ok(Protection::dtls(
        KeyPair::load_or_create(Path::new(file))?.credentials(Admission::Only(Arc::new(keys)))?,
    ))
}

async fn serve(protection: Protection, address: &str) -> Result<(), Failure> {
    let endpoint = Endpoint::server(protection, Config::default().stream_control(), vec![address.parse()?])?;
    println!("listening on {:?}", endpoint.local_addresses());
    let (lines, _) = broadcast::channel(KEPT_LINES);
    for member in 0_u64.. {
        let association = endpoint.accept().await?;
        let lines = lines.clone();
        tokio::spawn(async move {
            if let Err(error) = attend(&association, member, &lines).await {
                eprintln!("member {member}: {error}");
            }
        });
    }
    Ok(())
}

/// Passes lines from and to a member until it leaves.
async fn attend(
    association: &Association,
    member: u64,
    lines: &broadcast::Sender<(u64, Bytes)>,
) -> Result<(), Failure> {
    let Some((mut sender, mut receiver)) = association.accept_stream().await? else { return Ok(()) };
    let mut others = lines.subscribe();
    sender.send(format!("welcome, members here: {}", lines.receiver_count())).await?;
    loop {
        tokio::select! {
            line = receiver.recv() => match line? {
                // At least this member subscribes.
                Some(message) => drop(lines.send((member, message.payload))),
                None => break,
            },
            line = others.recv() => match line {
                Ok((from, line)) if from != member => sender.send(line).await?,
                Ok(_) => {}
                Err(missed) => sender.send(format!("(too slow: {missed})")).await?,
            },
        }
    }
    sender.finish()?;
    Ok(association.closed().await?)
}

async fn join(protection: Protection, target: &str, name: &str) -> Result<(), Failure> {
    let config = Config::default().stream_control();
    let association = Endpoint::client(protection)?.connect_to(target, config).await?;
    let (sender, receiver) = association.open_stream().await?;
    let (spoken, heard) = tokio::join!(speak(sender, name), listen(receiver));
    spoken?;
    heard?;
    Ok(association.shutdown().await?)
}

async fn speak(mut sender: SendStream, name: &str) -> Result<(), Failure> {
    sender.send(format!("{name} has joined")).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        sender.send(format!("{name}: {line}")).await?;
    }
    sender.send(format!("{name} has left")).await?;
    Ok(sender.finish()?)
}

async fn listen(mut receiver: RecvStream) -> Result<(), Failure> {
    while let Some(message) = receiver.recv().await? {
        println!("{}", String::from_utf8_lossy(&message.payload));
    }
    Ok(())
}
