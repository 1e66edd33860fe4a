//! From what a user names, such as a host and an interface, to the addresses of paths and of sockets that listen.

mod listen;
mod local;
mod option_names;
mod pairing;
mod target;

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_core::PathAddress;

pub use self::listen::ListenAddresses;
use self::local::follow_filter;
pub use self::local::{LocalAddresses, is_usable};
pub use self::option_names::OptionNames;
pub use self::pairing::RemoteChoice;
use self::pairing::pair;
pub use self::target::{Target, read_address, read_destination, with_port};
use crate::error::{ConnectError, LocalError};
use crate::host::{Host, HostBuilder};
use crate::interface::Watcher;
use crate::locals::Binding;
use crate::peer::udp_address;
use crate::protection::Protection;

/// What a user named for the paths to a peer. Which addresses that means is asked of the system each time.
#[derive(Clone, Debug)]
pub struct RouteSelection {
    locals: Vec<String>,
    remotes: RemoteChoice,
    options: OptionNames,
}

impl RouteSelection {
    /// Paths from these local addresses or interfaces, or from every usable one with a route to the peer if none is named.
    pub fn new(locals: Vec<String>, remotes: RemoteChoice, options: OptionNames) -> Self {
        RouteSelection { locals, remotes, options }
    }

    /// The paths, the first being the primary one.
    ///
    /// # Errors
    /// Which local and remote addresses do not fit, and what to do about it.
    pub fn paths(&self) -> Result<Vec<PathAddress>, String> {
        let locals = LocalAddresses::read().choose(&self.locals, &self.remotes, self.options)?;
        pair(&locals, &self.remotes, self.options)
    }

    /// Lets the paths of a host follow the machine's addresses as these come and go, unless addresses were named only.
    pub fn follow(&self, host: &Host, paths: &[PathAddress]) {
        let to_interface = !leads_to_this_machine(paths, &LocalAddresses::read());
        if let Some(filter) = follow_filter(&self.locals, &self.remotes) {
            host.follow(Watcher::new(filter), Binding { port: 0, to_interface });
        }
    }
}

/// A builder of a host with a socket at each of the local addresses, bound to its interface too, so that a path leaves where it begins.
pub fn host_for(paths: &[PathAddress], protection: Protection) -> HostBuilder {
    let locals = LocalAddresses::read();
    let here = leads_to_this_machine(paths, &locals);
    let mut ends: Vec<_> = paths.iter().map(|path| path.local).collect();
    let mut builder = Host::builder(protection);
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
pub async fn add_local(host: &Host, path: PathAddress) -> Result<SocketAddr, LocalError> {
    let locals = LocalAddresses::read();
    let address = SocketAddr::new(path.local, 0);
    match locals.interface_of(path.local).filter(|_| !leads_to_this_machine(&[path], &locals)) {
        Some(interface) => host.add_local_on(address, interface).await,
        None => host.add_local(address).await,
    }
}

/// What is sent to this machine's own addresses leaves through no interface, so no path may be bound to one.
fn leads_to_this_machine(paths: &[PathAddress], locals: &LocalAddresses) -> bool {
    paths.iter().any(|path| locals.has(path.remote))
}

/// The message for an attempt to connect that failed.
pub fn connect_failure_message(
    target: &str,
    paths: &[PathAddress],
    error: &ConnectError,
    within: Duration,
) -> String {
    let one = |path: &PathAddress| format!("{} to {}", path.local, udp_address(*path));
    let tried = paths.iter().map(one).collect::<Vec<_>>().join(", ");
    match error {
        ConnectError::NoAnswer => format!(
            "{target}: nobody answered within {} s ({tried}); check that the peer is listening and accepts this machine, its port, and firewalls",
            within.as_secs_f64()
        ),
        error => format!("{target}: {error} ({tried})"),
    }
}

#[cfg(test)]
const OPTIONS: OptionNames = OptionNames { path: "--path", to: "--to", listen: "--listen" };
