//! Handle of an association.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_net::{RecvError, SendOptions, Snapshot};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tokio::sync::Mutex as Turn;

use super::failure::Failure;
use super::handle::{Handle, SocketOwner};
use super::limit::Limit;
use super::operation::Operation;
use super::paths::{add_path, path_address};
use super::protection::peer_key;
use super::runtime::Background;
use super::settings::within;
use super::shapes::{EventShape, MessagePart, PathShape, StatisticsShape};

/// Time for which a closed association's endpoint answers a peer whose SHUTDOWN ACK is unanswered because the answer was lost. The
/// peer can repeat it twice if it has only received data and so has a time-out of 1 s, which doubles.
const LINGER: Duration = Duration::from_secs(5);

/// An association, which is aborted when this is dropped unless it has been shut down.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Association {
    /// Association; `None` once it was left and its resources were released.
    handle: Mutex<Option<Arc<Handle>>>,
    /// Snapshot of the time at which it was left.
    last: Arc<Mutex<Snapshot>>,
    /// Name of the peer in messages.
    peer: Arc<str>,
    /// Key that the peer has proved to own, if it was requested.
    peer_key: Option<String>,
    streams: u16,
}

/// Aborts an open association when it is dropped.
struct AbortOnDrop(Arc<Handle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.association.abort();
    }
}

impl Association {
    pub(super) fn new(
        background: &Background,
        association: anabranch_net::Association,
        keeper: SocketOwner,
        peer: &str,
    ) -> Self {
        let streams = association.streams();
        let peer_key = peer_key(&association).map(|key| key.to_string());
        let handle = Arc::new(Handle { association, keeper });
        background.track_association(&handle);
        Association {
            handle: Mutex::new(Some(handle)),
            last: Arc::default(),
            peer: peer.into(),
            peer_key,
            streams,
        }
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts an operation on the association, unless it was left.
    fn operate<T, F>(&self, act: impl FnOnce(Arc<Handle>, Arc<str>) -> F) -> Operation
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        let peer = Arc::clone(&self.peer);
        match self.handle() {
            Some(handle) => Operation::new(act(handle, peer)),
            None => Operation::new(async move { Err::<T, _>(Failure::left(&peer)) }),
        }
    }

    /// Returns a current snapshot, or the one of the time at which the association was left.
    fn snapshot<T>(&self, shape: impl FnOnce(Snapshot) -> T + Send + 'static) -> Operation
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        let (handle, last) = (self.handle(), Arc::clone(&self.last));
        Operation::new(async move {
            Ok(shape(match handle {
                Some(handle) => handle.association.snapshot().await,
                None => last.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            }))
        })
    }
}

#[pymethods]
impl Association {
    /// Returns the peer's name in messages: as requested, or the address from which the peer connected.
    #[getter]
    fn peer(&self) -> &str {
        &self.peer
    }

    /// Returns the key that the peer has proved to own, in the format of `authorized_keys` and `known_hosts`.
    #[getter]
    fn peer_key(&self) -> Option<String> {
        self.peer_key.clone()
    }

    /// Returns the number of outgoing streams.
    #[getter]
    fn streams(&self) -> u16 {
        self.streams
    }

    /// Returns `true` if messages may have a limit.
    #[getter]
    fn supports_partial_reliability(&self) -> bool {
        self.handle().is_some_and(|handle| handle.association.supports_partial_reliability())
    }

    /// Returns `true` if messages can be sent.
    #[getter]
    fn is_open(&self) -> bool {
        self.handle().is_some_and(|handle| handle.association.is_open())
    }

    /// Sends a message, and waits while the send buffer is full. The payload is not copied.
    fn send(
        &self,
        payload: PyBackedBytes,
        stream: i64,
        ordered: bool,
        ppid: i64,
        limit: Limit,
        context: u64,
    ) -> PyResult<Operation> {
        let options = SendOptions {
            stream: within("stream", stream, 0..=i64::from(self.streams) - 1)? as u16,
            ppid: within("ppid", ppid, 0..=i64::from(u32::MAX))? as u32,
            unordered: !ordered,
            reliability: limit.reliability()?,
            context,
            ..SendOptions::default()
        };
        let payload = Bytes::from_owner(payload);
        Ok(self.operate(move |handle, peer| async move {
            let sent = handle.association.send(payload, options).await;
            sent.map_err(|error| Failure::not_sent(&peer, error))
        }))
    }

    /// Receives the next message, or a part of one, as a tuple. Returns `None` after a graceful shutdown.
    fn recv(&self) -> Operation {
        self.operate(|handle, peer| async move {
            let received = handle.association.recv().await;
            Ok(received.map_err(|error| Failure::not_received(&peer, error))?.map(MessagePart::from))
        })
    }

    /// Shuts the association down gracefully. Data that the peer sends meanwhile has to be received.
    fn shutdown(&self) -> Operation {
        self.operate(|handle, peer| async move {
            handle.association.shutdown().await.map_err(|ended| Failure::ended(&peer, ended))
        })
    }

    /// Waits for the end of the association.
    fn closed(&self) -> Operation {
        self.operate(|handle, peer| async move {
            handle.association.closed().await.map_err(|ended| Failure::ended(&peer, ended))
        })
    }

    /// Aborts the association.
    fn abort(&self) {
        if let Some(handle) = self.handle() {
            handle.association.abort();
        }
    }

    /// Ends the association, gracefully or at once, and releases its resources. Data that the peer sends meanwhile is discarded.
    /// Dropping the operation aborts the association.
    fn leave(&self, gracefully: bool) -> Operation {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (last, peer) = (Arc::clone(&self.last), Arc::clone(&self.peer));
        Operation::new(async move {
            let Some(handle) = handle else { return Ok(()) };
            let leaving = AbortOnDrop(handle);
            let association = &leaving.0.association;
            if !gracefully {
                association.abort();
            }
            let (ended, ()) = tokio::join!(association.shutdown(), drain(association));
            *last.lock().unwrap_or_else(PoisonError::into_inner) = association.snapshot().await;
            release(leaving, ended.is_ok()).await;
            ended.map_err(|ended| Failure::ended(&peer, ended))
        })
    }

    /// Returns the paths as dictionaries.
    fn paths(&self) -> Operation {
        self.snapshot(|now| now.paths.into_iter().map(PathShape::from).collect::<Vec<_>>())
    }

    /// Returns the counters as a dictionary.
    fn statistics(&self) -> Operation {
        self.snapshot(StatisticsShape::from)
    }

    /// Returns the events from now on.
    fn events(&self) -> Events {
        Events { events: Arc::new(Turn::new(self.handle().map(|handle| handle.association.events()))) }
    }

    /// Adds a path from a local address to one of the peer's, and returns its id. A local address that is not in use yet is added
    /// to the endpoint, if no other association uses it.
    fn add_path(&self, local: &str, remote: &str) -> PyResult<Operation> {
        let path = path_address(local, remote)?;
        Ok(self.operate(move |handle, peer| async move { add_path(&handle, &peer, path).await }))
    }

    /// Removes the path with this id.
    fn remove_path(&self, path: i64) -> Operation {
        self.operate(move |handle, peer| async move {
            let paths = handle.association.paths().await;
            let Some(known) = paths.iter().find(|known| known.id.index() as i64 == path) else {
                let ids: Vec<String> = paths.iter().map(|known| known.id.index().to_string()).collect();
                let ids = ids.join(", ");
                return Err(Failure::Argument(format!(
                    "{peer}: no path has the id {path}; the paths are {ids}"
                )));
            };
            let removed = handle.association.remove_path(known.id).await;
            removed.map_err(|error| Failure::no_path(&peer, &error))
        })
    }
}

/// Receives to the end, since a peer with more data could not shut down otherwise.
async fn drain(association: &anabranch_net::Association) {
    while !matches!(association.recv().await, Ok(None) | Err(RecvError::Closed(_))) {}
}

/// Drops a closed association and its own endpoint. After a graceful end the endpoint stays for a while.
async fn release(leaving: AbortOnDrop, gracefully: bool) {
    let (endpoint, runtime) = match &leaving.0.keeper {
        SocketOwner::Own(endpoint, runtime) => (endpoint.clone(), runtime.clone()),
        SocketOwner::Listener { .. } => return,
    };
    drop(leaving);
    if gracefully {
        runtime.spawn(async move {
            tokio::time::sleep(LINGER).await;
            drop(endpoint);
        });
        return;
    }
    let monitor = endpoint.monitor();
    drop(endpoint);
    monitor.gone().await;
}

/// Events of an association.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Events {
    events: Arc<Turn<Option<anabranch_net::Events>>>,
}

#[pymethods]
impl Events {
    /// Returns the next event as a dictionary, or `None` after the last event of a closed association.
    fn next(&self) -> Operation {
        let events = Arc::clone(&self.events);
        Operation::new(async move {
            let mut events = events.lock().await;
            let Some(events) = events.as_mut() else { return Ok(None) };
            Ok(events.next().await.map(EventShape::from))
        })
    }
}
