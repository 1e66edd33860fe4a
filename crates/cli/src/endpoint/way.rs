//! The paths to a peer, for whoever is told where they begin and lead.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_net::interface::Watcher;
use anabranch_net::{Binding, ConnectError, Host, HostBuilder, LocalError, Route};

use super::local::{Locals, wants};
use super::pairing::{Ends, pair};

/// What a program's users say where paths begin and lead, and where peers are waited for. Messages use these words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Where a path begins.
    pub path: &'static str,
    /// Where a path leads.
    pub to: &'static str,
    /// Where peers are waited for.
    pub listen: &'static str,
}

impl Words {
    /// The options of the command line.
    pub const OPTIONS: Words = Words { path: "--path", to: "--to", listen: "--listen" };
}

/// Where the paths to a peer begin and lead. Which addresses that means is asked of the system each time.
#[derive(Clone, Debug)]
pub struct Way {
    starts: Vec<String>,
    ends: Ends,
    words: Words,
}

impl Way {
    /// Paths that begin at these addresses or interfaces, or else wherever there is a way to the ends.
    pub fn new(starts: Vec<String>, ends: Ends, words: Words) -> Self {
        Way { starts, ends, words }
    }

    /// The paths, the first being the primary one.
    ///
    /// # Errors
    /// Which of the starts and ends do not fit, and what to do about it.
    pub fn routes(&self) -> Result<Vec<Route>, String> {
        let starts = Locals::read().starts(&self.starts, &self.ends, self.words)?;
        pair(&starts, &self.ends, self.words)
    }

    /// Lets the paths of a host follow the machine's addresses as these come and go, unless addresses were named only.
    pub fn follow(&self, host: &Host, routes: &[Route]) {
        let to_interface = !leads_to_this_machine(routes, &Locals::read());
        if let Some(wants) = wants(&self.starts, &self.ends) {
            host.follow(Watcher::new(wants), Binding { port: 0, to_interface });
        }
    }
}

/// A host to be with a socket at each of the local addresses, bound to its interface too, so that a path leaves where it begins.
pub fn host_for(routes: &[Route]) -> HostBuilder {
    let locals = Locals::read();
    let here = leads_to_this_machine(routes, &locals);
    let mut ends: Vec<_> = routes.iter().map(|route| route.local).collect();
    let mut builder = Host::builder();
    while let Some(local) = ends.first().copied() {
        let address = SocketAddr::new(local, 0);
        builder = match locals.interface_of(local).filter(|_| !here) {
            Some(interface) => builder.local_on(address, interface),
            None => builder.local(address),
        };
        ends.retain(|other| *other != local);
    }
    builder
}

/// Takes the local address of a further path into use, as [`host_for`] would have done.
///
/// # Errors
/// What the host says.
pub async fn add_local(host: &Host, route: Route) -> Result<SocketAddr, LocalError> {
    let locals = Locals::read();
    let address = SocketAddr::new(route.local, 0);
    match locals.interface_of(route.local).filter(|_| !leads_to_this_machine(&[route], &locals)) {
        Some(interface) => host.add_local_on(address, interface).await,
        None => host.add_local(address).await,
    }
}

/// What is sent to this machine's own addresses leaves through no interface, so no path may be bound to one.
fn leads_to_this_machine(routes: &[Route], locals: &Locals) -> bool {
    routes.iter().any(|route| locals.has(route.remote.ip()))
}

/// What to say of an attempt to connect that came to nothing.
pub fn not_connected(target: &str, routes: &[Route], error: &ConnectError, within: Duration) -> String {
    let one = |route: &Route| format!("{} to {}", route.local, route.remote);
    let tried = routes.iter().map(one).collect::<Vec<_>>().join(", ");
    match error {
        ConnectError::NoAnswer => format!(
            "{target}: nobody answered within {} s ({tried}); check that the peer is listening and accepts this machine, its port, and firewalls",
            within.as_secs_f64()
        ),
        error => format!("{target}: {error} ({tried})"),
    }
}
