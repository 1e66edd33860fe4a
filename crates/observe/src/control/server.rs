//! Server of a control socket, with bounded memory and time for each client.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_net::{Endpoint, LocalEnd, LocalError, Monitor};
use rustix::process::geteuid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::folder::{Folder, FolderError};
use super::message::{
    Answer, Connections, Link, MAX_ASSOCIATIONS, MAX_REQUEST_BYTES, Report, Request, line, parse_request,
};
use super::report::InterfaceNames;
use crate::link_cost::{LinkCost, LinkCostSource};
use crate::metrics::metrics_page;

/// Maximum number of clients. Further ones are refused.
pub const MAX_CLIENTS: usize = 8;
/// Time within which a client has to send its next request, and to read an answer.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);
/// Minimum time between two requests of a client.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(50);
/// Pause after a failed accept, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Function that returns the forwarded connections of a command.
pub type ConnectionSource = Arc<dyn Fn() -> Connections + Send + Sync>;

/// Control socket of a command. It is removed when the value is dropped.
pub struct Control {
    shared: Arc<Shared>,
    socket: PathBuf,
    task: JoinHandle<()>,
}

/// State of the command that clients see.
struct Shared {
    command: String,
    scheme: String,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Endpoints with their numbers.
    endpoints: Vec<(u64, Monitor)>,
    last_endpoint: u64,
    /// Local ends that the user took out. They stay out when the command connects again.
    taken_out: Vec<LocalEnd>,
    connections: Option<ConnectionSource>,
    links: Option<LinkCostSource>,
    names: InterfaceNames,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Control {
    /// Opens the control socket of a command in this process, which uses this scheme.
    ///
    /// # Errors
    /// Returns [`FolderError`], with a remedy.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn open(folder: &Folder, command: &str, scheme: &str) -> Result<Self, FolderError> {
        let (listener, socket) = folder.bind(command)?;
        let shared = Arc::new(Shared {
            command: command.to_owned(),
            scheme: scheme.to_owned(),
            begun: Instant::now(),
            state: Mutex::default(),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Control { shared, socket, task })
    }

    /// Adds an endpoint to the reports until the endpoint ends. Paths that the user took out before are out of use there, too.
    /// The socket does not keep the endpoint alive.
    pub fn show(&self, endpoint: &Endpoint) {
        let monitor = endpoint.monitor();
        let mut state = self.shared.lock();
        for end in &state.taken_out {
            // The order precedes those of the caller. An address that is gone needs none.
            drop(monitor.withhold_local(*end));
        }
        state.last_endpoint += 1;
        let number = state.last_endpoint;
        state.endpoints.push((number, monitor));
    }

    /// Adds the forwarded connections to the reports.
    pub fn show_connections(&self, connections: ConnectionSource) {
        self.shared.lock().connections = Some(connections);
    }

    /// Adds the links with a cost or limit to the reports.
    pub fn show_links(&self, links: LinkCostSource) {
        self.shared.lock().links = Some(links);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Report => Answer::Report(Box::new(self.report().await)),
            Request::Metrics => Answer::Metrics { text: self.metrics().await },
            Request::TakeOut { local, interface_index } => {
                let end = LocalEnd { address: local, interface: interface_index };
                let taken = self.order(|endpoint| endpoint.withhold_local(end)).await;
                let mut state = self.lock();
                if taken.is_ok() && !state.taken_out.contains(&end) {
                    state.taken_out.push(end);
                }
                answer_to_order(taken)
            }
            Request::TakeBack { local, interface_index } => {
                let end = LocalEnd { address: local, interface: interface_index };
                self.lock().taken_out.retain(|taken| *taken != end);
                answer_to_order(self.order(|endpoint| endpoint.restore_local(end)).await)
            }
        }
    }

    /// Executes an order on all endpoints that have the address, of which a command that connects again has two.
    async fn order<F>(&self, order: impl Fn(&Monitor) -> F) -> Result<(), LocalError>
    where
        F: Future<Output = Result<(), LocalError>>,
    {
        let endpoints = self.lock().endpoints.clone();
        let mut outcome = Err(LocalError::EndpointGone);
        for (_, endpoint) in endpoints {
            match order(&endpoint).await {
                Err(LocalError::EndpointGone) => {}
                Err(error) if outcome.is_ok() => drop(error),
                done => outcome = done,
            }
        }
        outcome
    }

    async fn report(&self) -> Report {
        let mut reports = Vec::new();
        for (number, endpoint) in self.endpoints() {
            reports.extend(endpoint.report().await.map(|report| (number, report)));
        }
        let connections = self.lock().connections.clone();
        let connections = connections.map(|connections| connections());
        let links = self.links();
        let State { names, taken_out, .. } = &mut *self.lock();
        let all: usize = reports.iter().map(|(_, report)| report.associations.len()).sum();
        let associations = reports.into_iter().flat_map(|(number, report)| {
            report.associations.into_iter().map(move |association| (number, association))
        });
        let associations =
            associations.take(MAX_ASSOCIATIONS).map(|(number, one)| names.association(number, one));
        Report {
            command: self.command.clone(),
            pid: std::process::id(),
            scheme: self.scheme.clone(),
            time_ms: self.begun.elapsed().as_secs_f64() * 1e3,
            associations: associations.collect(),
            more_associations: all.saturating_sub(MAX_ASSOCIATIONS) as u64,
            taken_out: taken_out.iter().map(|end| names.link(*end)).collect::<Vec<Link>>(),
            links,
            connections,
        }
    }

    async fn metrics(&self) -> String {
        let mut reports = Vec::new();
        for (_, endpoint) in self.endpoints() {
            reports.extend(endpoint.report().await.map(|report| (endpoint.sctp_port(), report)));
        }
        metrics_page(reports, self.links())
    }

    fn links(&self) -> Vec<LinkCost> {
        let links = self.lock().links.clone();
        links.map(|links| links()).unwrap_or_default()
    }

    /// Returns the endpoints, and forgets those that have ended.
    fn endpoints(&self) -> Vec<(u64, Monitor)> {
        let mut state = self.lock();
        state.endpoints.retain(|(_, endpoint)| !endpoint.is_gone());
        state.endpoints.clone()
    }
}

fn answer_to_order(outcome: Result<(), LocalError>) -> Answer {
    match outcome {
        Ok(()) => Answer::Done,
        Err(LocalError::EndpointGone) => Answer::Error {
            why: "the command has no association now; try again once it is connected".to_owned(),
        },
        Err(error) => Answer::Error { why: error.to_string() },
    }
}

/// Returns `true` if a process of this user may use the socket.
fn is_permitted(own: u32, peer: u32) -> bool {
    peer == own || peer == 0
}

/// Accepts clients until it is dropped, which closes all connections.
async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CLIENTS));
    let mut clients = JoinSet::new();
    loop {
        while clients.try_join_next().is_some() {}
        let Ok((mut stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let own = geteuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| is_permitted(own, peer.uid())) {
            continue;
        }
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            let why = format!("{MAX_CLIENTS} clients are connected already; end one of them");
            // A client that does not read at once gets no answer.
            let _ = timeout(Duration::ZERO, stream.write_all(line(&Answer::Error { why }).as_bytes())).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        clients.spawn(async move {
            // A client that is too slow or disconnects gets no answer.
            let _ = serve_client(stream, &shared).await;
            drop(place);
        });
    }
}

/// Answers requests until the client ends, is too slow, or sends a line that is too long.
async fn serve_client(stream: UnixStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::with_capacity(MAX_REQUEST_BYTES, stream);
    let mut request = Vec::new();
    loop {
        request.clear();
        let reading = (&mut stream).take(MAX_REQUEST_BYTES as u64);
        timeout(CLIENT_LIMIT, read_line(reading, &mut request)).await??;
        if request.is_empty() {
            return Ok(());
        }
        if request.last() != Some(&b'\n') {
            let why = format!("a request has at most {MAX_REQUEST_BYTES} bytes and ends with a line feed");
            return stream.get_mut().write_all(line(&Answer::Error { why }).as_bytes()).await;
        }
        let answer = match parse_request(&request) {
            Ok(request) => shared.answer(request).await,
            Err(error) => error,
        };
        timeout(CLIENT_LIMIT, stream.get_mut().write_all(line(&answer).as_bytes())).await??;
        sleep(BETWEEN_REQUESTS).await;
    }
}

async fn read_line(
    mut reading: tokio::io::Take<&mut BufReader<UnixStream>>,
    request: &mut Vec<u8>,
) -> std::io::Result<usize> {
    reading.read_until(b'\n', request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_and_root_may_use_the_socket() {
        assert!(is_permitted(1000, 1000) && is_permitted(1000, 0) && is_permitted(0, 0));
        assert!(!is_permitted(1000, 1001) && !is_permitted(0, 1000));
    }
}
