//! Endpoints for tests.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_net::Credentials;
use anabranch_net::{
    Association, Config, Endpoint, EndpointBuilder, Message, PathAddress, Peer, Protection, SendOptions,
};
use anabranch_tests::credentials::Mode;

/// Time after which a test counts as hanging, generous even for a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

/// Returns 127.0.0.`node`, with any port.
pub(crate) fn any_port(node: u8) -> SocketAddr {
    SocketAddr::new(ip(node), 0)
}

pub(crate) fn ip(node: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, node])
}

/// Returns a configuration of scheme `cmt` with time-outs for loopback, so that tests of failures end soon.
pub(crate) fn quick() -> Config {
    Config::new("cmt").expect("a scheme").with_core(|core| {
        core.profile.rto_initial = Span::from_millis(200);
        core.profile.rto_min = Span::from_millis(200);
        core.profile.rto_max = Span::from_millis(1000);
    })
}

/// Returns the protection of an endpoint with the credentials of a [`Mode`].
pub(crate) fn protection(credentials: Option<Credentials>) -> Protection {
    credentials.map_or(Protection::Insecure, Protection::dtls)
}

fn at(nodes: &[u8], credentials: Option<Credentials>) -> EndpointBuilder {
    let builder = Endpoint::builder(protection(credentials));
    nodes.iter().fold(builder, |builder, node| builder.local(any_port(*node)))
}

pub(crate) fn server_in(mode: Mode, nodes: &[u8], config: Config) -> Endpoint {
    at(nodes, mode.of_server()).accept(config).bind().expect("a server")
}

pub(crate) fn client_in(mode: Mode, nodes: &[u8]) -> Endpoint {
    at(nodes, mode.of_client()).bind().expect("a client")
}

/// Runs a test without protection, and then with it.
pub(crate) async fn in_both_modes(test: impl AsyncFn(Mode)) {
    for mode in Mode::ALL {
        println!("{mode:?}:");
        test(mode).await;
    }
}

pub(crate) fn server(nodes: &[u8], config: Config) -> Endpoint {
    server_in(Mode::Plain, nodes, config)
}

pub(crate) fn client(nodes: &[u8]) -> Endpoint {
    client_in(Mode::Plain, nodes)
}

/// Returns the peer at an endpoint, over pairs of addresses by position.
pub(crate) fn peer(from: &Endpoint, to: &Endpoint) -> Peer {
    let pairs = from.local_addresses().iter().zip(to.local_addresses());
    Peer::new(pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote)))
        .sctp_port(to.sctp_port())
}

/// Both ends of an association over pairs of loopback addresses.
pub(crate) struct Duo {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) ours: Association,
    pub(crate) theirs: Association,
}

impl Duo {
    pub(crate) async fn connected(paths: u8, config: Config) -> Self {
        Self::connected_in(Mode::Plain, paths, config).await
    }

    pub(crate) async fn connected_in(mode: Mode, paths: u8, config: Config) -> Self {
        let servers: Vec<u8> = (1..=paths).collect();
        let clients: Vec<u8> = (11..=10 + paths).collect();
        let server = server_in(mode, &servers, config.clone());
        let client = client_in(mode, &clients);
        let (ours, theirs) =
            tokio::join!(within(client.connect(peer(&client, &server), config)), within(server.accept()));
        Duo { ours: ours.expect("connected"), theirs: theirs.expect("accepted"), client, server }
    }
}

pub(crate) fn on(stream: u16) -> SendOptions {
    SendOptions { stream, ..SendOptions::default() }
}

pub(crate) async fn send(association: &Association, text: &'static str) {
    within(association.send(text, SendOptions::default())).await.expect("accepted");
}

/// Returns the next message, which must exist.
pub(crate) async fn next(association: &Association) -> Message {
    within(association.recv()).await.expect("no error").expect("a message")
}

pub(crate) async fn expect(association: &Association, text: &str) {
    let message = next(association).await;
    assert_eq!(String::from_utf8_lossy(&message.payload), text);
}

/// Echoes messages until the end. Returns their number.
pub(crate) async fn echo(association: &Association) -> usize {
    let mut count = 0;
    while let Ok(Some(message)) = association.recv().await {
        let Message { stream, ppid, unordered, payload, .. } = message;
        let options = SendOptions { stream, ppid, unordered, ..SendOptions::default() };
        association.send(payload, options).await.expect("accepted");
        count += 1;
    }
    count
}
