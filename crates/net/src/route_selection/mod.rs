//! Conversion of the user's hosts and interfaces to addresses of paths and of listening sockets.

mod listen;
mod local;
mod pairing;
mod target;

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_core::{ListedAddresses, PathAddress};

pub use self::listen::ListenAddresses;
use self::local::FollowFilter;
pub use self::local::{LocalAddresses, is_usable};
pub use self::pairing::RemoteChoice;
use self::pairing::pair;
pub use self::target::{Target, read_address, read_destination, refuse_link_local, with_port};
use crate::config::Config;
use crate::endpoint::{Endpoint, EndpointBuilder};
use crate::error::{ConnectError, LocalError};
use crate::interface::Watcher;
use crate::locals::Binding;
use crate::peer::udp_address;
use crate::protection::Protection;
pub use crate::route_error::{InputNames, RouteError, TargetError};

/// Hosts, addresses and interfaces that a user named for the paths to a peer. Each use queries the system for their current
/// addresses.
#[derive(Clone, Debug)]
pub struct RouteSelection {
    locals: Vec<String>,
    remotes: RemoteChoice,
}

impl RouteSelection {
    /// Creates the selection: paths from these local addresses or interfaces, or from all usable ones with a route to the peer.
    pub fn new(locals: Vec<String>, remotes: RemoteChoice) -> Self {
        RouteSelection { locals, remotes }
    }

    /// Returns the paths, the primary one first.
    ///
    /// # Errors
    /// Names the local and remote addresses that do not fit, with a remedy.
    pub fn paths(&self) -> Result<Vec<PathAddress>, RouteError> {
        let known = LocalAddresses::read();
        let locals = known.choose(&self.locals, &self.remotes)?;
        let paths = pair(&locals, &self.remotes, &|local, remote| known.reach(local, remote))?;
        if leads_to_this_machine(&paths, &known) {
            let unbound = |path: PathAddress| PathAddress { interface: 0, ..path };
            return Ok(paths.into_iter().map(unbound).collect());
        }
        Ok(paths)
    }

    /// Returns `true` if the user named only a host, so that every link of both endpoints is used.
    pub fn is_open(&self) -> bool {
        self.locals.is_empty() && matches!(self.remotes, RemoteChoice::Resolved { .. })
    }

    /// Lets an association use further addresses that a protected peer reports, unless the user named the ends of paths.
    pub fn configure(&self, config: Config) -> Config {
        config.listed_addresses(match self.is_open() {
            true => ListedAddresses::Protected,
            false => ListedAddresses::Ignore,
        })
    }

    /// Returns a builder of an endpoint for these paths, like [`endpoint_for`]. If further paths may be added, the endpoint has a
    /// socket at every usable address.
    pub fn endpoint(&self, paths: &[PathAddress], protection: Protection) -> EndpointBuilder {
        let locals = LocalAddresses::read();
        let builder = endpoint_for(paths, protection);
        if !self.is_open() || leads_to_this_machine(paths, &locals) {
            return builder;
        }
        let further = locals.all.iter().filter(|local| is_usable(local, false));
        let further = further.filter(|local| !paths.iter().any(|path| path.local_end() == local.end()));
        further.fold(builder, |builder, local| {
            builder.local_on(SocketAddr::new(local.address, 0), &local.interface)
        })
    }

    /// Lets the paths of an endpoint follow changes of the machine's addresses, unless only addresses were named. A socket stays open
    /// while its address exists.
    pub fn follow(&self, endpoint: &Endpoint, paths: &[PathAddress]) {
        let to_interface = !leads_to_this_machine(paths, &LocalAddresses::read());
        if let Some(filter) = FollowFilter::new(&self.locals, &self.remotes, self.is_open()) {
            let watcher = Watcher::new(move |local| filter.wants(local)).keeping(|_| true);
            endpoint.follow(watcher, Binding { port: 0, to_interface });
        }
    }
}

/// Returns a builder of an endpoint with a socket at each of the local addresses. Each socket is bound to its interface, so that
/// packets of a path are sent through it.
pub fn endpoint_for(paths: &[PathAddress], protection: Protection) -> EndpointBuilder {
    let locals = LocalAddresses::read();
    let here = leads_to_this_machine(paths, &locals);
    let mut ends: Vec<_> = paths.iter().map(PathAddress::local_end).collect();
    let mut builder = Endpoint::builder(protection);
    while let Some(local) = ends.first().copied() {
        let address = SocketAddr::new(local.address, 0);
        builder = match locals.interface_of(local).filter(|_| !here) {
            Some(interface) => builder.local_on(address, interface),
            None => builder.local(address),
        };
        ends.retain(|other| *other != local);
    }
    builder
}

/// Adds the local address of a further path, as [`endpoint_for`] would.
///
/// # Errors
/// Returns the error of the endpoint.
pub async fn add_local(endpoint: &Endpoint, path: PathAddress) -> Result<SocketAddr, LocalError> {
    let locals = LocalAddresses::read();
    let address = SocketAddr::new(path.local, 0);
    match locals.interface_of(path.local_end()).filter(|_| !leads_to_this_machine(&[path], &locals)) {
        Some(interface) => endpoint.add_local_on(address, interface).await,
        None => endpoint.add_local(address).await,
    }
}

/// Returns `true` if a path leads to this machine. Packets to this machine pass no interface, so no path may be bound to
/// one.
fn leads_to_this_machine(paths: &[PathAddress], locals: &LocalAddresses) -> bool {
    paths.iter().any(|path| locals.has(path.remote))
}

/// Returns the message for a failed attempt to connect.
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
            "{target}: no answer arrived within {} s ({tried}); check that the peer is listening and accepts this machine, its port, and firewalls",
            within.as_secs_f64()
        ),
        error => format!("{target}: {error} ({tried})"),
    }
}
