//! Metrics of endpoints, in the OpenMetrics text format over HTTP.
//!
//! The values are those at the time of the scrape. The exporter queries each endpoint once per scrape, between two packets of the
//! endpoint, and costs nothing otherwise. Closed associations are omitted.

mod authority;
mod page;
mod server;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_net::{Endpoint, Monitor};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::link_cost::LinkCostSource;

pub(crate) use page::discard_word;
#[cfg(unix)]
pub(crate) use page::write as metrics_page;

/// Exported endpoints.
#[derive(Default)]
pub(crate) struct Endpoints {
    endpoints: Mutex<Vec<Monitor>>,
    links: Mutex<Option<LinkCostSource>>,
    /// Name of this machine, which requests may address.
    machine: Option<String>,
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Endpoints {
    fn new() -> Self {
        Endpoints { endpoints: Mutex::default(), links: Mutex::default(), machine: machine_name() }
    }

    /// Returns the name of this machine, if the system has one.
    fn machine(&self) -> Option<&str> {
        self.machine.as_deref()
    }

    /// Returns the text of a scrape, and removes endpoints that have ended.
    pub(crate) async fn page(&self) -> String {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reports = Vec::new();
        let mut gone = Vec::new();
        for endpoint in endpoints {
            match endpoint.report().await {
                Some(report) => reports.push((endpoint.sctp_port(), report)),
                None => gone.push(endpoint.sctp_port()),
            }
        }
        if !gone.is_empty() {
            let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            endpoints.retain(|endpoint| !gone.contains(&endpoint.sctp_port()));
        }
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page::write(reports, links.map(|links| links()).unwrap_or_default())
    }
}

#[cfg(unix)]
fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn machine_name() -> Option<String> {
    None
}

/// HTTP server that answers `GET /metrics` until it is dropped. The host that a request names must be an IP address, `localhost`
/// or the name of this machine. Therefore a web page whose domain name resolves to an address of this machine cannot read the
/// metrics.
///
/// ```
/// use anabranch_net::{Endpoint, Protection};
/// use anabranch_observe::metrics::Exporter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let exporter = Exporter::bind("127.0.0.1:0".parse()?)?;
/// let endpoint = Endpoint::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).bind()?;
/// exporter.show(&endpoint);
/// println!("scrape http://{}/metrics", exporter.local_address());
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug)]
pub struct Exporter {
    shown: Arc<Endpoints>,
    local: SocketAddr,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Listens on a TCP port; port 0 selects a free one. Prefer loopback: every client that reaches the port can read the metrics.
    ///
    /// # Errors
    /// Fails if the system refuses the address.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let local = listener.local_addr()?;
        let shown = Arc::new(Endpoints::new());
        let task = tokio::spawn(server::serve(listener, Arc::clone(&shown)));
        Ok(Exporter { shown, local, task })
    }

    /// Adds an endpoint to the metrics until the endpoint ends. The exporter does not keep the endpoint alive.
    pub fn show(&self, endpoint: &Endpoint) {
        self.shown.endpoints.lock().unwrap_or_else(PoisonError::into_inner).push(endpoint.monitor());
    }

    /// Adds the links with a cost or limit to the metrics.
    pub fn show_links(&self, links: LinkCostSource) {
        *self.shown.links.lock().unwrap_or_else(PoisonError::into_inner) = Some(links);
    }

    /// Returns the address on which the exporter listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}
