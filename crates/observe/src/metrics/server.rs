//! The HTTP side. What clients do costs a bounded amount of memory and time, and never the transport's.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Hosts;

/// Clients at a time; further ones are hung up on.
const MOST_CLIENTS: usize = 16;
/// How long a client may take for its request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection lasts at most.
const CONNECTION_LIMIT: Duration = Duration::from_secs(60);
/// Pause after the system would give no connection, for lack of descriptors for example.
const PAUSE: Duration = Duration::from_millis(100);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers until it is dropped, and with it all of its connections.
pub(super) async fn serve(listener: TcpListener, shown: Arc<Hosts>) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    let mut clients = JoinSet::new();
    loop {
        while clients.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let shown = Arc::clone(&shown);
        clients.spawn(async move {
            // A client that takes too long, or breaks off, is none of anybody's business.
            let _ = tokio::time::timeout(CONNECTION_LIMIT, talk(stream, shown)).await;
            drop(place);
        });
    }
}

async fn talk(stream: TcpStream, shown: Arc<Hosts>) -> hyper::Result<()> {
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

async fn answer(request: &Request<Incoming>, shown: &Hosts) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
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
