//! The handle of an association.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_net::{RecvError, SendOptions, Snapshot};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use tokio::sync::Mutex as Turn;

use super::failure::Failure;
use super::handle::{Handle, Keeper};
use super::limit::Limit;
use super::operation::Operation;
use super::paths::{add_path, path_address};
use super::protection::peer_key;
use super::runtime::Background;
use super::settings::within;
use super::shapes::{EventShape, MessagePart, PathShape, StatisticsShape};

/// How long a peer may ask again whose SHUTDOWN ACK goes unanswered because the answer was lost: twice, if it has only received and
/// so has a time-out of 1 s, which doubles.
const LINGER: Duration = Duration::from_secs(5);

/// An association, which is aborted when this is dropped unless it has been shut down.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Association {
    /// None once it was left: then nothing of it is held any more.
    handle: Mutex<Option<Arc<Handle>>>,
    /// How it stood when it was left.
    last: Arc<Mutex<Snapshot>>,
    /// Whom messages name.
    peer: Arc<str>,
    /// What the peer has proved to hold, if it was asked.
    peer_key: Option<String>,
    streams: u16,
}

/// Aborts what is not over when it is dropped.
struct Leaving(Arc<Handle>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.association.abort();
    }
}

impl Association {
    pub(super) fn new(
        background: &Background,
        association: anabranch_net::Association,
        keeper: Keeper,
        peer: &str,
    ) -> Self {
        let streams = association.streams();
        let peer_key = peer_key(&association).map(|key| key.to_string());
        let handle = Arc::new(Handle { association, keeper });
        background.look_after(&handle);
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

    /// Does something with it, unless it was left.
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

    /// How it stands, or how it stood when it was left.
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
    /// Whom messages name: as it was asked for, or the address that the peer came from.
    #[getter]
    fn peer(&self) -> &str {
        &self.peer
    }

    /// The key that the peer has proved to hold, as `authorized_keys` and `known_hosts` have it.
    #[getter]
    fn peer_key(&self) -> Option<String> {
        self.peer_key.clone()
    }

    /// Streams that messages may be sent on.
    #[getter]
    fn streams(&self) -> u16 {
        self.streams
    }

    /// Whether messages may be sent with a limit.
    #[getter]
    fn supports_partial_reliability(&self) -> bool {
        self.handle().is_some_and(|handle| handle.association.supports_partial_reliability())
    }

    /// Whether messages are taken.
    #[getter]
    fn is_open(&self) -> bool {
        self.handle().is_some_and(|handle| handle.association.is_open())
    }

    /// Hands a message over, and waits while the send buffer is full. The payload is not copied.
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

    /// The next message, or a part of one, as a tuple; `None` after a graceful shutdown.
    fn recv(&self) -> Operation {
        self.operate(|handle, peer| async move {
            let received = handle.association.recv().await;
            Ok(received.map_err(|error| Failure::not_received(&peer, error))?.map(MessagePart::from))
        })
    }

    /// Shuts it down gracefully. What the peer sent meanwhile is to be received.
    fn shutdown(&self) -> Operation {
        self.operate(|handle, peer| async move {
            handle.association.shutdown().await.map_err(|ended| Failure::ended(&peer, ended))
        })
    }

    /// Waits until it is over.
    fn closed(&self) -> Operation {
        self.operate(|handle, peer| async move {
            handle.association.closed().await.map_err(|ended| Failure::ended(&peer, ended))
        })
    }

    /// Ends it at once.
    fn abort(&self) {
        if let Some(handle) = self.handle() {
            handle.association.abort();
        }
    }

    /// Ends it, gracefully or at once, and gives back all that it holds. What the peer sent meanwhile is thrown away. If this is
    /// given up, the association is aborted.
    fn leave(&self, gracefully: bool) -> Operation {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (last, peer) = (Arc::clone(&self.last), Arc::clone(&self.peer));
        Operation::new(async move {
            let Some(handle) = handle else { return Ok(()) };
            let leaving = Leaving(handle);
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

    /// Its paths as dictionaries.
    fn paths(&self) -> Operation {
        self.snapshot(|now| now.paths.into_iter().map(PathShape::from).collect::<Vec<_>>())
    }

    /// Its counters as a dictionary.
    fn statistics(&self) -> Operation {
        self.snapshot(StatisticsShape::from)
    }

    /// What happens from now on.
    fn events(&self) -> Events {
        Events { events: Arc::new(Turn::new(self.handle().map(|handle| handle.association.events()))) }
    }

    /// Adds a path from an address of this machine to one of the peer's, and gives its id. A local address that is not in use yet
    /// is taken into use, if no other association has the host.
    fn add_path(&self, local: &str, remote: &str) -> PyResult<Operation> {
        let path = path_address(local, remote)?;
        Ok(self.operate(move |handle, peer| async move { add_path(&handle, &peer, path).await }))
    }

    /// Takes the path with this id out of service.
    fn remove_path(&self, path: i64) -> Operation {
        self.operate(move |handle, peer| async move {
            let paths = handle.association.paths().await;
            let Some(known) = paths.iter().find(|known| known.id.index() as i64 == path) else {
                let ids: Vec<String> = paths.iter().map(|known| known.id.index().to_string()).collect();
                let ids = ids.join(", ");
                return Err(Failure::Argument(format!("{peer}: there is no path {path}; there are {ids}")));
            };
            let removed = handle.association.remove_path(known.id).await;
            removed.map_err(|error| Failure::no_path(&peer, &error))
        })
    }
}

/// Receives to the end: a peer that has more to send cannot agree to one otherwise.
async fn drain(association: &anabranch_net::Association) {
    while !matches!(association.recv().await, Ok(None) | Err(RecvError::Closed(_))) {}
}

/// Drops an association that is over. Its own host goes with it; after a graceful end it stays for a while.
async fn release(leaving: Leaving, gracefully: bool) {
    let (host, runtime) = match &leaving.0.keeper {
        Keeper::Own(host, runtime) => (host.clone(), runtime.clone()),
        Keeper::Listener { .. } => return,
    };
    drop(leaving);
    if gracefully {
        runtime.spawn(async move {
            tokio::time::sleep(LINGER).await;
            drop(host);
        });
        return;
    }
    let monitor = host.monitor();
    drop(host);
    monitor.gone().await;
}

/// What happens to an association.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Events {
    events: Arc<Turn<Option<anabranch_net::Events>>>,
}

#[pymethods]
impl Events {
    /// The next event as a dictionary, or `None` once the association is over and all have been told.
    fn next(&self) -> Operation {
        let events = Arc::clone(&self.events);
        Operation::new(async move {
            let mut events = events.lock().await;
            let Some(events) = events.as_mut() else { return Ok(None) };
            Ok(events.next().await.map(EventShape::from))
        })
    }
}
