//! Files over streams: a server that sends files of a folder, each on a stream of its own.
//!
//! ```text
//! cargo build -p anabranch-net --example file && cd target/debug/examples
//! ./file key server.pem
//! ./file key client.pem
//! ./file serve server.pem CLIENT_KEY FOLDER [::]:9899
//! ./file get client.pem SERVER_KEY HOST NAME...
//! ```
//!
//! `get` requests all names at once and stores each file in the current folder. The server resets the stream of a file that it
//! does not have. `anabranch send` also resumes, verifies and synchronises.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{Association, Config, Endpoint, Protection, RecvStream, SendStream, StreamRecvError};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

const USAGE: &str = "usage: file key FILE | file serve FILE PEER_KEY FOLDER ADDRESS:PORT | file get FILE SERVER_KEY HOST[:PORT] NAME...";

/// Code of the reset for a file that the server does not have.
const NO_SUCH_FILE: u32 = 1;

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
        ["serve", file, peer, folder, address] => {
            serve(protection(file, peer)?, Arc::from(Path::new(folder)), address).await
        }
        ["get", file, peer, target, names @ ..] => get(protection(file, peer)?, target, names).await,
        _ => Err(USAGE.into()),
    }
}

/// Returns a protection that proves the key of a file, and accepts the owner of one other key.
fn protection(file: &str, peer: &str) -> Result<Protection, Failure> {
    let key = KeyPair::load_or_create(Path::new(file))?;
    let admission = Admission::Only(Arc::new([peer.parse()?].into_iter().collect()));
    Ok(Protection::dtls(key.credentials(admission)?))
}

async fn serve(protection: Protection, folder: Arc<Path>, address: &str) -> Result<(), Failure> {
    let endpoint = Endpoint::server(protection, Config::default().stream_control(), vec![address.parse()?])?;
    println!("listening on {:?}", endpoint.local_addresses());
    loop {
        let association = endpoint.accept().await?;
        let folder = Arc::clone(&folder);
        tokio::spawn(async move {
            while let Ok(Some((sender, receiver))) = association.accept_stream().await {
                let folder = Arc::clone(&folder);
                tokio::spawn(async move {
                    if let Err(error) = answer(&folder, sender, receiver).await {
                        eprintln!("{error}");
                    }
                });
            }
        });
    }
}

/// Sends the file whose name is the first message of the stream.
async fn answer(folder: &Path, mut sender: SendStream, mut receiver: RecvStream) -> Result<(), Failure> {
    let Some(request) = receiver.recv().await? else { return Ok(()) };
    let name = Path::new(std::str::from_utf8(&request.payload)?);
    // A name with a separator or `..` would leave the folder.
    let is_plain = name.file_name() == Some(name.as_os_str());
    let Ok(mut file) = File::open(folder.join(name)).await.and_then(|file| match is_plain {
        true => Ok(file),
        false => Err(std::io::ErrorKind::PermissionDenied.into()),
    }) else {
        return Ok(sender.reset(NO_SUCH_FILE)?);
    };
    tokio::io::copy(&mut file, &mut sender).await?;
    Ok(sender.finish()?)
}

async fn get(protection: Protection, target: &str, names: &[&str]) -> Result<(), Failure> {
    let config = Config::default().stream_control();
    let association = Endpoint::client(protection)?.connect_to(target, config).await?;
    let mut files = JoinSet::new();
    for name in names {
        files.spawn(fetch(association.clone(), (*name).to_owned()));
    }
    while let Some(fetched) = files.join_next().await {
        let (name, bytes) = fetched??;
        println!("{name}: {bytes} bytes");
    }
    Ok(association.shutdown().await?)
}

async fn fetch(association: Association, name: String) -> Result<(String, u64), Failure> {
    let (mut sender, mut receiver) = association.open_stream().await?;
    sender.send(name.clone()).await?;
    sender.finish()?;
    let first = receiver.recv().await.map_err(|error| match error {
        StreamRecvError::Reset { code: NO_SUCH_FILE } => format!("the server has no file {name}"),
        other => format!("{name}: {other}"),
    })?;
    let mut file = File::create_new(&name).await.map_err(|error| format!("{name}: {error}"))?;
    let mut bytes = 0;
    if let Some(part) = first {
        file.write_all(&part.payload).await?;
        bytes = part.payload.len() as u64 + tokio::io::copy(&mut receiver, &mut file).await?;
    }
    file.flush().await?;
    Ok((name, bytes))
}
