//! Metrics of hosts, in the OpenMetrics text format over HTTP.
//!
//! The values are those at the time of the scrape. The exporter queries each host once per scrape, between two packets of the host, and
//! costs nothing otherwise. Closed associations are omitted.

mod authority;
mod page;
mod server;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_net::{Endpoint, Monitor};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use page::discard_word;

/// Exported hosts.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    hosts: Mutex<Vec<Monitor>>,
    /// Name of this machine, which requests may address.
    machine: Option<String>,
}

impl Endpoints {
    fn new() -> Self {
        Endpoints { hosts: Mutex::default(), machine: machine_name() }
    }

    /// Returns the name of this machine, if the system has one.
    fn machine(&self) -> Option<&str> {
        self.machine.as_deref()
    }

    /// Returns the text of a scrape, and removes hosts that have ended.
    pub(crate) async fn page(&self) -> String {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reports = Vec::new();
        let mut gone = Vec::new();
        for host in hosts {
            match host.report().await {
                Some(report) => reports.push((host.sctp_port(), report)),
                None => gone.push(host.sctp_port()),
            }
        }
        if !gone.is_empty() {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.retain(|host| !gone.contains(&host.sctp_port()));
        }
        page::write(reports)
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

/// HTTP server that answers `GET /metrics` until it is dropped. The host that a request names must be an IP address, `localhost` or the
/// name of this machine. Therefore a web page whose domain name resolves to an address of this machine cannot read the metrics.
///
/// ```
/// use anabranch_net::{Endpoint, Protection};
/// use anabranch_observe::metrics::Exporter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let exporter = Exporter::bind("127.0.0.1:0".parse()?)?;
/// let host = Endpoint::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).bind()?;
/// exporter.show(&host);
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

    /// Adds a host to the metrics until the host ends. The exporter does not keep the host alive.
    pub fn show(&self, host: &Endpoint) {
        self.shown.hosts.lock().unwrap_or_else(PoisonError::into_inner).push(host.monitor());
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
