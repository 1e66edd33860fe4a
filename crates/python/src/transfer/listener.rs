//! Endpoint with which peers open associations.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_net::route_selection::{ListenAddresses, read_address};
use anabranch_net::{
    AcceptFrom, BindError, DEFAULT_UDP_PORT, Endpoint, EndpointStatistics, Network, Networks, Protection,
};
use pyo3::prelude::*;
use tokio::sync::{Mutex as Queue, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::association::Association;
use super::failure::Failure;
use super::handle::SocketOwner;
use super::opening::KEYWORDS;
use super::operation::Operation;
use super::protection::follow;
use super::runtime::{Background, background};
use super::settings::{Settings, within};
use super::shapes::EndpointShape;

/// Maximum number of associations that wait to be accepted.
const MOST_WAITING: i64 = 65_536;

/// Accepts associations until it is closed or dropped.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Listener {
    /// State; `None` once it is closed.
    open: Mutex<Option<Open>>,
    addresses: Vec<String>,
}

struct Open {
    endpoint: Endpoint,
    accepted: Arc<Queue<mpsc::Receiver<Association>>>,
    /// Cancelled on closing, which aborts associations that were not accepted.
    closed: CancellationToken,
    /// Tokens of the associations that use the endpoint.
    seats: TaskTracker,
    accepting: JoinHandle<()>,
}

/// Binds sockets to these local addresses.
#[pyfunction]
pub fn listen(
    addresses: Vec<String>,
    settings: Settings,
    sctp_port: i64,
    backlog: i64,
    accept_from: Option<Vec<String>>,
) -> PyResult<Listener> {
    let config = settings.config()?;
    let sctp_port = within("sctp_port", sctp_port, 1..=i64::from(u16::MAX))? as u16;
    let backlog = within("backlog", backlog, 1..=MOST_WAITING)? as usize;
    let accept_from = sources(accept_from)?;
    let listen = addresses.iter().map(|text| {
        read_address(text).map_err(|error| Failure::Argument(format!("addresses {text:?}: {error}")))
    });
    let posts = ListenAddresses::new(listen.collect::<Result<_, _>>()?, DEFAULT_UDP_PORT);
    let background = background()?;
    let _inside = background.runtime.enter();
    let keys = settings.keys()?.open().map_err(|error| Failure::Listen(error.to_string()))?;
    let protection = match keys {
        Some(keys) => {
            let (protection, authorized) = keys.to_listen()?;
            background.runtime.spawn(follow(authorized));
            protection
        }
        None => Protection::Insecure,
    };
    let builder =
        posts.endpoint(protection).map_err(|error| Failure::Listen(error.named(KEYWORDS).to_string()))?;
    let builder = builder.sctp_port(sctp_port).backlog(backlog).accept(config).accept_from(accept_from);
    let endpoint = builder.bind().map_err(|error| match error {
        BindError::Twice(_) | BindError::Unspecified(_) => Failure::Argument(format!("addresses: {error}")),
        error => Failure::Listen(error.to_string()),
    })?;
    posts.follow(&endpoint);
    let addresses = endpoint.local_addresses().iter().map(ToString::to_string).collect();
    // Further associations wait in the endpoint's own queue, whose length is the backlog.
    let (sender, receiver) = mpsc::channel(1);
    let (closed, seats) = (CancellationToken::new(), TaskTracker::new());
    let acceptor = Acceptor {
        background: Arc::clone(&background),
        endpoint: endpoint.clone(),
        closed: closed.clone(),
        seats: seats.clone(),
    };
    let accepting = background.tasks.spawn_on(acceptor.run(sender), background.runtime.handle());
    let accepted = Arc::new(Queue::new(receiver));
    let open = Open { endpoint, accepted, closed, seats, accepting };
    Ok(Listener { open: Mutex::new(Some(open)), addresses })
}

/// Returns the accepted sources: all if none are given.
fn sources(accept_from: Option<Vec<String>>) -> Result<AcceptFrom, Failure> {
    let Some(texts) = accept_from else { return Ok(AcceptFrom::Everyone) };
    let network = |text: &String| {
        let network = text.parse::<Network>();
        network.map_err(|error| {
            Failure::Argument(format!("accept_from {text:?}: {error}; None is for everyone"))
        })
    };
    let networks = texts.iter().map(network).collect::<Result<Vec<_>, _>>()?;
    let networks = Networks::new(networks);
    networks
        .map(AcceptFrom::Networks)
        .map_err(|error| Failure::Argument(format!("accept_from: {error}; None is for everyone")))
}

/// Passes associations from the endpoint's queue to the listener.
struct Acceptor {
    background: Arc<Background>,
    endpoint: Endpoint,
    closed: CancellationToken,
    seats: TaskTracker,
}

impl Acceptor {
    /// Accepts associations until there are no more or the listener is closed, and then aborts the remaining ones.
    async fn run(self, sender: mpsc::Sender<Association>) {
        let Acceptor { background, endpoint, closed, .. } = &self;
        loop {
            let next = async {
                let association = endpoint.accept().await.ok()?;
                let paths = association.paths().await;
                let peer =
                    paths.first().map_or_else(|| "the peer".to_owned(), |path| path.remote.to_string());
                sender.send(self.seat(association, &peer)).await.ok()
            };
            tokio::select! {
                next = next => if next.is_none() { return },
                () = closed.cancelled() => break,
                () = background.leaving.cancelled() => break,
            }
        }
        endpoint.stop_accepting();
        while let Ok(association) = endpoint.accept().await {
            drop(self.seat(association, ""));
        }
    }

    fn seat(&self, association: anabranch_net::Association, peer: &str) -> Association {
        let keeper = SocketOwner::Listener { _seat: self.seats.token() };
        Association::new(&self.background, association, keeper, peer)
    }
}

impl Listener {
    /// Calls a function with the state, unless the listener is closed.
    fn with<T>(&self, act: impl FnOnce(&Open) -> T) -> Option<T> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(act)
    }

    fn take(&self) -> Option<Open> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        open.endpoint.stop_accepting();
        open.closed.cancel();
        Some(open)
    }
}

#[pymethods]
impl Listener {
    /// Returns the addresses of the listener, as `ADDRESS:PORT`.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// Returns the next association, or `None` if there will be no more.
    fn accept(&self) -> Operation {
        let open = self.with(|open| (Arc::clone(&open.accepted), open.closed.clone()));
        Operation::new(async move {
            let Some((accepted, closed)) = open else { return Ok(None) };
            tokio::select! {
                association = async { accepted.lock().await.recv().await } => Ok(association),
                () = closed.cancelled() => Ok(None),
            }
        })
    }

    /// Rejects new associations from now on. Waiting ones can still be accepted.
    fn stop(&self) {
        self.with(|open| open.endpoint.stop_accepting());
    }

    /// Rejects new associations, aborts waiting ones, and closes the sockets unless associations use them.
    fn close(&self) -> Operation {
        let open = self.take();
        Operation::new(async move {
            let Some(Open { endpoint, accepted, seats, accepting, .. }) = open else { return Ok(()) };
            let monitor = endpoint.monitor();
            drop((endpoint, accepted));
            accepting.await.map_err(|fault| Failure::Other(format!("accepting broke off: {fault}")))?;
            if seats.is_empty() {
                monitor.gone().await;
            }
            Ok(())
        })
    }

    /// Returns the counters of the endpoint as a dictionary.
    fn statistics(&self) -> Operation {
        let endpoint = self.with(|open| open.endpoint.clone());
        Operation::new(async move {
            let counted = match endpoint {
                Some(endpoint) => endpoint.statistics().await,
                None => EndpointStatistics::default(),
            };
            Ok(EndpointShape::from(counted))
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.take();
    }
}
