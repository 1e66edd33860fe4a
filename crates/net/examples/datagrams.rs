//! Datagrams with deadlines: each message is sent at once, in any order, and abandoned when it would come too late.
//!
//! ```text
//! cargo build -p anabranch-net --example datagrams && cd target/debug/examples
//! ./datagrams key receiver.pem
//! ./datagrams key sender.pem
//! ./datagrams receive receiver.pem SENDER_KEY [::]:9899
//! ./datagrams send sender.pem RECEIVER_KEY HOST 500
//! ```
//!
//! `send` sends 50 messages a second, as a voice call does, and prints how many were abandoned. `receive` prints how many arrived.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{AssociationEvent, Config, Endpoint, Protection, SendOptions};

const USAGE: &str = "usage: datagrams key FILE | datagrams receive FILE PEER_KEY ADDRESS:PORT \
                     | datagrams send FILE PEER_KEY HOST[:PORT] COUNT";

const INTERVAL: Duration = Duration::from_millis(20);

/// Time after which a message is of no use to the receiver.
const DEADLINE: Duration = Duration::from_millis(150);

/// User bytes of a message, those of 20 ms of speech at 64 kbit/s.
const BYTES: usize = 160;

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
        ["receive", file, peer, address] => receive(protection(file, peer)?, address).await,
        ["send", file, peer, target, count] => send(protection(file, peer)?, target, count.parse()?).await,
        _ => Err(USAGE.into()),
    }
}

/// Returns a protection that proves the key of a file, and accepts the owner of one other key.
fn protection(file: &str, peer: &str) -> Result<Protection, Failure> {
    let key = KeyPair::load_or_create(Path::new(file))?;
    let admission = Admission::Only(Arc::new([peer.parse()?].into_iter().collect()));
    Ok(Protection::dtls(key.credentials(admission)?))
}

async fn receive(protection: Protection, address: &str) -> Result<(), Failure> {
    let endpoint = Endpoint::server(protection, Config::default(), vec![address.parse()?])?;
    println!("listening on {:?}", endpoint.local_addresses());
    let association = endpoint.accept().await?;
    let (mut arrived, mut overtaken, mut latest) = (0_u32, 0_u32, 0_u32);
    while let Some(message) = association.recv().await? {
        let number = u32::from_be_bytes(*message.payload.first_chunk().ok_or("a short message")?);
        arrived += 1;
        overtaken += u32::from(number < latest);
        latest = latest.max(number);
    }
    println!("{arrived} arrived, {overtaken} of them after a later one");
    Ok(())
}

async fn send(protection: Protection, target: &str, count: u32) -> Result<(), Failure> {
    let association = Endpoint::client(protection)?.connect_to(target, Config::default()).await?;
    let mut events = association.events();
    let abandoned = tokio::spawn(async move {
        let mut abandoned = 0_u64;
        while let Some(event) = events.next().await {
            match event {
                Ok(AssociationEvent::Abandoned { .. }) => abandoned += 1,
                Ok(_) => {}
                Err(missed) => abandoned += missed.0,
            }
        }
        abandoned
    });
    let mut ticks = tokio::time::interval(INTERVAL);
    for number in 0..count {
        ticks.tick().await;
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(BYTES, 0);
        association.send(payload, SendOptions::default().unordered().expires_after(DEADLINE)).await?;
    }
    association.shutdown().await?;
    println!("{count} sent, {} abandoned", abandoned.await?);
    Ok(())
}
