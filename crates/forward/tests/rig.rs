//! A gateway, a forwarder, and the programs at both ends.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_forward::{
    ConnectFailed, Connected, Event, Forwarder, Forwarding, Gateway, GatewayOptions, Limits, Listeners,
    Policy, Priority, RemoteListen, Reporter, Service, Totals, configure, greet,
};
use anabranch_identity::{Admission, KeyPair};
use anabranch_net::{Association, Config, ConnectError, Endpoint, PathAddress, Peer, Protection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// Time in which every step of a test ends on the slowest machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn options(rules: &[&str]) -> GatewayOptions {
    GatewayOptions {
        policy: Policy::new(rules.iter().map(|text| text.parse().expect(text)).collect()),
        limits: Limits::default(),
        connect_timeout: Duration::from_secs(5),
        remote_listen: RemoteListen::Forbidden,
    }
}

/// Options that permit all ports of loopback.
pub(crate) fn local_options() -> GatewayOptions {
    options(&["127.0.0.0/8:*", "[::1]:*"])
}

fn config() -> Config {
    configure(Config::default())
}

fn protection() -> Protection {
    let folder = tempfile::tempdir().expect("a folder");
    let key = KeyPair::load_or_create(&folder.path().join("key.pem")).expect("a key");
    Protection::dtls(key.credentials(Admission::Anyone).expect("credentials"))
}

/// Endpoint that accepts associations, on a runtime of its own, so that it can end like a killed process.
pub(crate) struct Server {
    runtime: Option<Runtime>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Accepts associations, and serves each with `serve`.
    pub(crate) fn start<F>(address: SocketAddr, serve: impl Fn(Association) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let endpoint = {
            let _entered = runtime.enter();
            let builder = Endpoint::builder(protection()).local(address).accept(config());
            builder.bind().expect("an endpoint")
        };
        let address = endpoint.local_addresses()[0];
        runtime.spawn(async move {
            while let Ok(association) = endpoint.accept().await {
                tokio::spawn(serve(association));
            }
        });
        Server { runtime: Some(runtime), address }
    }

    pub(crate) fn gateway(address: SocketAddr, options: GatewayOptions, instance: u64) -> (Self, Gateway) {
        let gateway = Gateway::new(options, instance);
        let serving = gateway.clone();
        let serve = move |association| {
            let gateway = serving.clone();
            async move { gateway.serve(association, None, "user", Arc::new(|_| {})).await }
        };
        (Server::start(address, serve), gateway)
    }

    /// Ends the server without notice to its peers.
    pub(crate) fn kill(mut self) {
        self.runtime.take().expect("a runtime").shutdown_timeout(LIMIT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Opens an association with a server.
pub(crate) async fn associate(
    to: SocketAddr,
    within: Duration,
) -> Result<(Endpoint, Association), ConnectError> {
    let endpoint = Endpoint::builder(protection()).local("127.0.0.1:0".parse().expect("an address")).bind();
    let endpoint = endpoint.expect("an endpoint");
    let path = PathAddress::over_udp("127.0.0.1".parse().expect("an address"), to);
    let association = endpoint.connect(Peer::new([path]), config().connect_timeout(within)).await?;
    Ok((endpoint, association))
}

/// Forwarder with its events.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) forwarder: Forwarder,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl Client {
    /// Connects a forwarder to a server and keeps it connected.
    pub(crate) async fn start(to: SocketAddr, remote: &[&str]) -> Self {
        Self::start_with(to, remote, Priority::default()).await
    }

    /// Connects a forwarder to a server, with priority for some ports, and keeps it connected.
    pub(crate) async fn start_with(to: SocketAddr, remote: &[&str], priority: Priority) -> Self {
        let (client, kept) = Self::connect(to, remote, priority).await;
        tokio::spawn(kept);
        client
    }

    /// Connects a forwarder to a server. The future keeps it connected.
    pub(crate) async fn connect(
        to: SocketAddr,
        remote: &[&str],
        priority: Priority,
    ) -> (Self, impl Future<Output = ConnectFailed> + use<>) {
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let kept = Arc::clone(&events);
        let report: Reporter =
            Arc::new(move |event| kept.lock().unwrap_or_else(PoisonError::into_inner).push(event));
        let remote: Vec<Forwarding> = remote.iter().map(|text| text.parse().expect(text)).collect();
        let forwarder = Forwarder::new(remote, priority, report);
        let first = connected(to).await.expect("a gateway");
        let kept = forwarder.keep_connected(first, move || async move {
            let failed = |error: ConnectError| ConnectFailed { message: error.to_string(), is_final: false };
            associate(to, Duration::from_secs(2)).await.map_err(failed)
        });
        (Client { forwarder, events }, kept)
    }

    /// Listens on a free port for connections to a service, and returns its address.
    pub(crate) fn listen(&self, service: Service) -> SocketAddr {
        let listeners = Listeners::bind("127.0.0.1:0".parse().expect("an address")).expect("a listener");
        let address = listeners.addresses()[0];
        let forwarder = self.forwarder.clone();
        tokio::spawn(async move { forwarder.listen(listeners, service).await });
        address
    }

    /// Listens on a free port for connections to a target, and returns its address.
    pub(crate) fn forward(&self, target: impl ToString) -> SocketAddr {
        self.listen(Service::Target(target.to_string().parse().expect("a target")))
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.forwarder.tally().totals()
    }
}

pub(crate) async fn connected(to: SocketAddr) -> Result<Connected, ConnectFailed> {
    greet(associate(to, LIMIT).await.expect("an association")).await
}

pub(crate) fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// A gateway with these options, and a forwarder connected to it.
pub(crate) async fn pair(options: GatewayOptions) -> (Server, Gateway, Client) {
    let (server, gateway) = Server::gateway(any(), options, 1);
    let client = Client::start(server.address, &[]).await;
    (server, gateway, client)
}

/// Starts a program that serves each connection with `serve`, and returns its address.
pub(crate) async fn program<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(any()).await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection));
        }
    });
    address
}

/// Starts a program that returns all bytes, and closes after the half-close of its peer.
pub(crate) async fn echo() -> SocketAddr {
    program(|mut connection| async move {
        let (mut read, mut write) = connection.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await
}

pub(crate) async fn connect(to: SocketAddr) -> TcpStream {
    within(TcpStream::connect(to)).await.expect("a connection")
}

/// Connects, and waits until the connection is reset, which may be before the call returns it.
pub(crate) async fn refused(to: SocketAddr) {
    let error = match within(TcpStream::connect(to)).await {
        Ok(mut connection) => within(connection.read_u8()).await.expect_err("a reset"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

/// Sends bytes, half-closes, and returns all bytes of the answer.
pub(crate) async fn exchange(connection: &mut TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let (mut read, mut write) = connection.split();
    let mut answer = Vec::new();
    let sending = async {
        write.write_all(bytes).await?;
        write.shutdown().await
    };
    let (sent, received) = within(async { tokio::join!(sending, read.read_to_end(&mut answer)) }).await;
    sent.and(received.map(|_| answer))
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("an end in time")
}

/// Waits until a condition is true.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Returns `size` bytes that depend on the seed.
pub(crate) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}
