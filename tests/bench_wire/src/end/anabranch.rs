//! One association of this project.

use std::net::SocketAddr;

use anabranch_net::{Config, Endpoint, EndpointBuilder, PathAddress, Peer, Protection, SendOptions};
use anabranch_tests::credentials::credentials;

use super::{Options, Pace, Received, message, report_listening};
use crate::Failure;

pub(super) async fn receive(options: &Options) -> Result<(), Failure> {
    let scheme = Config::new(options.scheme.as_deref().unwrap_or_default())?;
    let endpoint = bound(options, [2, 1], options.to.iter().copied()).accept(scheme).bind()?;
    report_listening();
    let association = endpoint.accept().await?;
    let mut received = Received::default();
    while let Some(message) = association.recv().await? {
        received.add(message.payload.len());
    }
    received.report();
    Ok(())
}

pub(super) async fn send(options: &Options, scheme: &str) -> Result<(), Failure> {
    let local = options.from.iter().map(|&address| SocketAddr::new(address, 0));
    let endpoint = bound(options, [1, 2], local).bind()?;
    let pairs = options.from.iter().zip(&options.to);
    let peer = Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(*local, *remote)));
    let association = endpoint.connect(peer, Config::new(scheme)?).await?;
    let message = message(options.message_bytes)?;
    let mut pace = Pace::new(options);
    for _ in 0..options.messages {
        pace.wait(message.len()).await;
        association.send(message.clone(), SendOptions::default()).await?;
    }
    association.shutdown().await?;
    Ok(())
}

/// Returns a builder with the credentials of one of two endpoints, bound to these addresses.
fn bound(
    options: &Options,
    [own, peer]: [u8; 2],
    addresses: impl Iterator<Item = SocketAddr>,
) -> EndpointBuilder {
    let protection = match options.protected {
        true => Protection::dtls(credentials(own, &[peer])),
        false => Protection::Insecure,
    };
    addresses.fold(Endpoint::builder(protection), EndpointBuilder::local)
}
