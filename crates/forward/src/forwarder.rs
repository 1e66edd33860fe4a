//! Forwarder: listens for connections of programs, and forwards each on a stream.

use anabranch_net::{Association, Endpoint};
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::event::Reporter;
#[cfg(target_os = "linux")]
use crate::failure::Failure;
use crate::listen_spec::Forwarding;
use crate::listeners::Listeners;
use crate::priority::Priority;
use crate::proxy;
#[cfg(target_os = "linux")]
use crate::redirected::original_target;
use crate::session::{self, ConnectFailed, Connected};
use crate::splice::{reset, splice};
use crate::tally::Tally;
use crate::target::Target;
use crate::uplink::Uplink;

/// Maximum number of connections of one listener at a time.
const MAX_CONNECTIONS: usize = 4096;

/// Destination of the connections of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// One target.
    Target(Target),
    /// The targets that programs request by SOCKS5 or HTTP CONNECT.
    Proxy,
    /// The target of each connection before the packet filter of the system has redirected it to the listener.
    #[cfg(target_os = "linux")]
    Redirected,
}

/// Side of the programs whose connections are forwarded. Clones share the association and the counters.
#[derive(Clone)]
pub struct Forwarder {
    uplink: Uplink,
}

impl Forwarder {
    /// Returns a forwarder with these listeners at the gateway. Connections to the ports of `priority` come before others.
    pub fn new(remote: Vec<Forwarding>, priority: Priority, report: Reporter) -> Self {
        Forwarder { uplink: Uplink::new(remote, priority, report) }
    }

    /// Returns the counters.
    pub fn tally(&self) -> &Tally {
        self.uplink.tally()
    }

    /// Keeps an association with the gateway: `first`, and those that `connect` opens after it is lost. Connections and datagrams
    /// use `first` from this call on, also before the future runs. The future ends only after an error that makes further attempts
    /// useless.
    pub fn keep_connected<F, C>(
        &self,
        first: Connected,
        connect: C,
    ) -> impl Future<Output = ConnectFailed> + use<F, C>
    where
        F: Future<Output = Result<(Endpoint, Association), ConnectFailed>>,
        C: Fn() -> F,
    {
        let uplink = self.uplink.clone();
        uplink.enter(&first.association);
        async move { session::keep(&uplink, first, connect).await }
    }

    /// Uses this association for new connections from now on. Its caller exchanges other messages on it, and has read the greeting of
    /// the gateway.
    pub fn enter(&self, association: &Association) {
        self.uplink.enter(association);
    }

    /// Lets new connections wait for another association.
    pub fn leave(&self) {
        self.uplink.leave();
    }

    /// Ends the association with the gateway. Open connections are reset.
    pub async fn close(&self) {
        self.uplink.close().await;
    }

    /// Forwards the connections of these listeners. Never returns.
    pub async fn listen(&self, listeners: Listeners, service: Service) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                (connection, _) = listeners.accept(), if connections.len() < MAX_CONNECTIONS => {
                    drop(connections.spawn(serve(self.uplink.clone(), connection, service.clone())));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn serve(uplink: Uplink, connection: TcpStream, service: Service) {
    match service {
        Service::Target(target) => connect(uplink, connection, target).await,
        Service::Proxy => proxy::serve(&uplink, connection).await,
        #[cfg(target_os = "linux")]
        Service::Redirected => match original_target(&connection) {
            Some(target) => connect(uplink, connection, target).await,
            None => {
                uplink.failed(None, Failure::Malformed);
                reset(&connection);
            }
        },
    }
}

async fn connect(uplink: Uplink, connection: TcpStream, target: Target) {
    match uplink.open(&target).await {
        Ok(streams) => {
            let counted = uplink.tally().opened(target.to_string());
            splice(connection, Bytes::new(), streams, counted).await;
        }
        Err(failure) => {
            uplink.failed(Some(target), failure);
            reset(&connection);
        }
    }
}
