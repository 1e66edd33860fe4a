//! Figures of hosts, for those who scrape them: the OpenMetrics text format over HTTP.
//!
//! What is shown is how things stand at the moment of the scrape: the host is asked once, between two of its packets. Nobody asks
//! between scrapes, so an exporter that nobody scrapes costs nothing. An association that is over is not shown any more.

mod authority;
mod page;
mod server;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_net::{Host, Monitor};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) use page::discard_word;

/// The hosts that are shown.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    hosts: Mutex<Vec<Monitor>>,
    /// The name of this machine.
    machine: Option<String>,
}

impl Hosts {
    fn new() -> Self {
        Hosts { hosts: Mutex::default(), machine: machine_name() }
    }

    /// Returns the name of this machine, if the system has one.
    fn machine(&self) -> Option<&str> {
        self.machine.as_deref()
    }

    /// The page as it is now.
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

/// Answers `GET /metrics` until it is dropped. A request has to name an address, `localhost` or this machine as its host, so that web
/// pages whose names are resolved to addresses of this machine read nothing.
///
/// ```
/// use anabranch_net::{Host, Protection};
/// use anabranch_observe::metrics::Exporter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let exporter = Exporter::bind("127.0.0.1:0".parse()?)?;
/// let host = Host::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).bind()?;
/// exporter.show(&host);
/// println!("scrape http://{}/metrics", exporter.local_address());
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug)]
pub struct Exporter {
    shown: Arc<Hosts>,
    local: SocketAddr,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Listens on a TCP port; 0 takes one that is free. Whoever reaches it can read the figures, so loopback is the place for it.
    ///
    /// # Errors
    /// If the system refuses the address.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let local = listener.local_addr()?;
        let shown = Arc::new(Hosts::new());
        let task = tokio::spawn(server::serve(listener, Arc::clone(&shown)));
        Ok(Exporter { shown, local, task })
    }

    /// Shows a host too, as long as it runs. It is not kept running by that.
    pub fn show(&self, host: &Host) {
        self.shown.hosts.lock().unwrap_or_else(PoisonError::into_inner).push(host.monitor());
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}
