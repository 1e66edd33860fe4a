//! TCP links that aggligator aggregates, with one link to each address of the server.

use std::time::Duration;

use aggligator::alc::Stream;
use aggligator::transport::{Acceptor, Connector};
use aggligator_transport_tcp::{TcpAcceptor, TcpConnector, TcpLinkFilter};
use anyhow::Context;
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::clock::Clock;
use crate::{Arguments, Channel, Role, Served, channel, print};

/// Maximum length of a read, in bytes.
const READ_BYTES: usize = 1 << 16;

/// Opens a connection with the library's default settings.
pub(crate) async fn open(arguments: &Arguments, clock: &Clock) -> anyhow::Result<Channel> {
    let (own, served) = channel();
    match arguments.role {
        Role::Send => {
            print("ready")?;
            clock.until(Duration::ZERO).await;
            let mut transport =
                TcpConnector::new(arguments.remote.iter().map(ToString::to_string), 0).await?;
            transport.set_multi_interface(false);
            transport.set_link_filter(TcpLinkFilter::None);
            let mut connector = Connector::new();
            connector.add(transport);
            let connected = connector.channel().context("the connector is used up")?.await?;
            tokio::task::spawn_local(async move {
                serve(connected.into_stream(), served).await;
                drop(connector);
            });
        }
        Role::Receive => {
            let acceptor = Acceptor::new();
            acceptor.add(TcpAcceptor::new(arguments.local.iter().copied()).await?);
            print("ready")?;
            let (accepted, _control) = acceptor.accept().await?;
            tokio::task::spawn_local(async move {
                serve(accepted.into_stream(), served).await;
                drop(acceptor);
            });
        }
    }
    Ok(own)
}

/// Passes data between a stream and a channel until both directions have ended.
async fn serve(stream: Stream, served: Served) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let Served { mut outgoing, incoming } = served;
    let sending = async {
        while let Some(data) = outgoing.recv().await {
            // A message leaves at once, as with TCP_NODELAY.
            if writer.write_all(&data).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    };
    let receiving = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ_BYTES);
            match reader.read_buf(&mut buffer).await {
                Ok(1..) if incoming.send(buffer.split().freeze()).await.is_ok() => {}
                _ => return,
            }
        }
    };
    tokio::join!(sending, receiving);
}
