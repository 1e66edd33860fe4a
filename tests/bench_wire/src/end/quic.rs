//! One connection and one stream of quinn, with its defaults.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_tests::credentials::credentials;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig};

use super::{LARGE_MESSAGE, Options, Pace, Received, message, report_listening};
use crate::Failure;

pub(super) async fn receive(options: &Options) -> Result<(), Failure> {
    let crypto = QuicServerConfig::try_from(Arc::clone(credentials(2, &[1]).server()))?;
    let endpoint = Endpoint::server(ServerConfig::with_crypto(Arc::new(crypto)), options.to[0])?;
    report_listening();
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = Received::default();
    while let Some(chunk) = stream.read_chunk(LARGE_MESSAGE, true).await? {
        received.add(chunk.bytes.len());
    }
    received.report();
    // The sender closes after the acknowledgement of its last byte.
    connection.closed().await;
    Ok(())
}

pub(super) async fn send(options: &Options) -> Result<(), Failure> {
    let crypto = QuicClientConfig::try_from(Arc::clone(credentials(1, &[2]).client()))?;
    let endpoint = Endpoint::client(SocketAddr::new(options.from[0], 0))?;
    let config = ClientConfig::new(Arc::new(crypto));
    let connection = endpoint.connect_with(config, options.to[0], "peer.invalid")?.await?;
    let mut stream = connection.open_uni().await?;
    let message = message(options.message_bytes)?;
    let mut pace = Pace::new(options);
    for _ in 0..options.messages {
        pace.wait(message.len()).await;
        stream.write_chunk(message.clone()).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    connection.close(0_u8.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
