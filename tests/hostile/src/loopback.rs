//! Hosts on loopback addresses, and a server on one of them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_net::{Association, Config, ConnectError, Endpoint, Guard, PathAddress, Peer, Protection};
use anabranch_transfer::{Report, Server, ServerOptions, Store};

/// Address of every endpoint here. Each has its own UDP and SCTP port.
const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Returns an endpoint that accepts, without a limit on handshakes: a test opens thousands of associations from one address.
///
/// # Panics
/// Panics if no address can be bound.
pub fn accepting() -> Endpoint {
    let rate = any_rate();
    Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::new(ADDRESS, 0))
        .guard(Guard { per_source: rate, in_all: rate })
        .accept(Config::new("sctp").expect("a scheme"))
        .bind()
        .expect("a loopback address can be bound")
}

fn any_rate() -> anabranch_net::RateLimit {
    anabranch_net::RateLimit { per_second: 1_000_000, burst: 1_000_000 }
}

/// Returns an endpoint to connect from.
///
/// # Panics
/// Panics if no address can be bound.
pub fn client() -> Endpoint {
    Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::new(ADDRESS, 0))
        .bind()
        .expect("a loopback address can be bound")
}

/// Opens an association with an accepting endpoint, from an endpoint of its own.
///
/// # Errors
/// Returns the errors of [`Endpoint::connect`].
pub async fn connect(server: &Endpoint) -> Result<Association, ConnectError> {
    connect_from(&client(), server).await
}

/// Opens an association from an endpoint without one to the same server.
pub(crate) async fn connect_from(client: &Endpoint, server: &Endpoint) -> Result<Association, ConnectError> {
    let remote = server.local_addresses()[0];
    let to = Peer::new([PathAddress::over_udp(ADDRESS, remote)]).sctp_port(server.sctp_port());
    client.connect(to, Config::new("sctp").expect("a scheme")).await
}

/// A server for all peers, until it is dropped.
#[derive(Debug)]
pub struct Serving {
    /// Endpoint on which it listens.
    pub endpoint: Endpoint,
    /// The server itself.
    pub server: Server,
    ended: Arc<AtomicU64>,
    begun: Arc<AtomicU64>,
}

impl Serving {
    /// Starts a server on an endpoint of its own. Call it in a tokio runtime.
    pub fn start(store: Store, options: ServerOptions) -> Self {
        let (endpoint, server) = (accepting(), Server::new(store, options));
        let (begun, ended) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (accept, serve) = (endpoint.clone(), server.clone());
        let (counted, done) = (Arc::clone(&begun), Arc::clone(&ended));
        tokio::spawn(async move {
            while let Ok(association) = accept.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (server, done) = (serve.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    let _ = server.serve(association, &Report::default()).await;
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Serving { endpoint, server, ended, begun }
    }

    /// Returns the number of accepted associations whose service has not ended.
    pub fn running(&self) -> u64 {
        let ended = self.ended.load(Ordering::SeqCst);
        self.begun.load(Ordering::SeqCst).saturating_sub(ended)
    }

    /// Waits until no association is served.
    pub async fn idle(&self) {
        while self.running() > 0 || self.server.running() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.endpoint.stop_accepting();
    }
}
