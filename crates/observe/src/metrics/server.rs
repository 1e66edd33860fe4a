//! HTTP server with bounded memory and time per client. It runs apart from the transport.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anabranch_core::{FairPool, Source};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::{Endpoints, authority};

/// Maximum number of clients. An additional client evicts the oldest client of the source with the most clients.
const MOST_CLIENTS: usize = 16;
/// Maximum time for sending a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// Maximum duration of a connection.
const CONNECTION_LIMIT: Duration = Duration::from_secs(60);
/// Pause after a failed accept, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const MISDIRECTED: &str = "this host goes by another name: scrape by its address, by localhost, or by the machine's own host name\n";

/// Connected clients.
struct Clients {
    places: FairPool<u64>,
    tasks: JoinSet<u64>,
    /// Handles that end the tasks of clients.
    handles: BTreeMap<u64, AbortHandle>,
    next: u64,
}

impl Clients {
    fn new() -> Self {
        let (places, handles) = (FairPool::new(MOST_CLIENTS), BTreeMap::new());
        Clients { places, tasks: JoinSet::new(), handles, next: 0 }
    }

    /// Serves a client. Evicts another one if there are too many.
    fn enter(&mut self, source: Source, talk: impl Future<Output = ()> + Send + 'static) {
        let number = self.next;
        self.next += 1;
        if let Some(evicted) = self.places.insert(number, source)
            && let Some(handle) = self.handles.remove(&evicted)
        {
            handle.abort();
        }
        let task = async move {
            talk.await;
            number
        };
        self.handles.insert(number, self.tasks.spawn(task));
    }

    /// Removes clients that have disconnected.
    fn forget_finished(&mut self) {
        while let Some(finished) = self.tasks.try_join_next() {
            // An evicted client has already lost its place.
            let Ok(number) = finished else { continue };
            self.places.remove(&number);
            self.handles.remove(&number);
        }
    }
}

/// Accepts clients until it is dropped, which closes all connections.
pub(super) async fn serve(listener: TcpListener, shown: Arc<Endpoints>) {
    let mut clients = Clients::new();
    loop {
        clients.forget_finished();
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let shown = Arc::clone(&shown);
        clients.enter(from.ip().into(), async move {
            // A client that is too slow or disconnects gets no answer.
            let _ = tokio::time::timeout(CONNECTION_LIMIT, serve_connection(stream, shown)).await;
        });
    }
}

async fn serve_connection(stream: TcpStream, shown: Arc<Endpoints>) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let shown = Arc::clone(&shown);
        async move { Ok::<_, Infallible>(answer(&request, &shown).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_LIMIT)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: &Request<Incoming>, shown: &Endpoints) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        _ if !authority::admits(request, shown.machine()) => {
            (StatusCode::MISDIRECTED_REQUEST, "text/plain", MISDIRECTED.to_owned())
        }
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, OPENMETRICS, shown.page().await),
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, "text/plain", "metrics are at /metrics\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(kind) = kind.parse() {
        headers.insert(CONTENT_TYPE, kind);
    }
    if status == StatusCode::METHOD_NOT_ALLOWED
        && let Ok(allowed) = "GET, HEAD".parse()
    {
        headers.insert(ALLOW, allowed);
    }
    response
}
