//! quinn over loopback: one connection and one stream with its defaults.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anabranch_tests::credentials::credentials;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig};

use crate::Failure;
use crate::subject::{Amount, message};

/// Maximum number of bytes that one call reads from the stream.
const READ_BYTES: usize = 64 << 10;

pub(crate) async fn rate(amount: Amount) -> Result<f64, Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let theirs = QuicServerConfig::try_from(Arc::clone(credentials(2, &[1]).server()))?;
    let server = Endpoint::server(ServerConfig::with_crypto(Arc::new(theirs)), any)?;
    let ours = QuicClientConfig::try_from(Arc::clone(credentials(1, &[2]).client()))?;
    let client = Endpoint::client(any)?;
    let to = server.local_addr()?;
    let connecting = client.connect_with(ClientConfig::new(Arc::new(ours)), to, "peer.invalid")?;
    let receiving = tokio::spawn(receive(server));
    let connection = connecting.await?;
    let begun = Instant::now();
    let mut stream = connection.open_uni().await?;
    let message = message(amount.message_bytes)?;
    for _ in 0..amount.messages {
        stream.write_chunk(message.clone()).await?;
    }
    stream.finish()?;
    if receiving.await?? != amount.bytes() {
        return Err("quinn lost data".into());
    }
    Ok(amount.mbit_per_s(begun.elapsed().as_secs_f64()))
}

async fn receive(server: Endpoint) -> Result<u64, Failure> {
    let connection = server.accept().await.ok_or("nobody connected")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(READ_BYTES, true).await? {
        bytes += chunk.bytes.len() as u64;
    }
    Ok(bytes)
}
