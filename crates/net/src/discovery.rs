//! Clients and servers at all links of this machine, and peers by name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_core::PathAddress;

use crate::association::Association;
use crate::config::{Config, DEFAULT_UDP_PORT};
use crate::endpoint::Endpoint;
use crate::error::{BindError, ConnectError};
use crate::interface::{LocalAddress, Watcher};
use crate::locals::Binding;
use crate::peer::Peer;
use crate::protection::Protection;
use crate::route_selection::{
    ListenAddresses, LocalAddresses, RemoteChoice, RouteSelection, Target, is_usable,
};

impl Endpoint {
    /// Binds an endpoint for associations that this side opens, at every usable address of this machine. Each socket sends through
    /// its own interface. Addresses that come and go are followed.
    ///
    /// # Errors
    /// Returns [`BindError`], with a remedy.
    pub fn client(protection: Protection) -> Result<Endpoint, BindError> {
        let locals = LocalAddresses::read();
        let outside = locals.all.iter().filter(|local| is_usable(local, false));
        let builder = outside.fold(Endpoint::builder(protection), |builder, local| {
            builder.local_on(SocketAddr::new(local.address, 0), &local.interface)
        });
        // Packets to this machine pass no interface.
        let loopback = locals.all.iter().filter(|local| is_usable(local, true));
        let builder =
            loopback.fold(builder, |builder, local| builder.local(SocketAddr::new(local.address, 0)));
        let endpoint = builder.bind()?;
        let usable = |local: &LocalAddress| is_usable(local, false);
        endpoint.follow(Watcher::new(usable).keeping(|_| true), Binding { port: 0, to_interface: true });
        Ok(endpoint)
    }

    /// Binds an endpoint that accepts associations with this configuration at these addresses. An unspecified address stands for all
    /// usable ones of its IP version, and no address for all usable ones with UDP port 9899; those that come and go are followed.
    ///
    /// # Errors
    /// Returns [`BindError`], with a remedy.
    pub fn server(
        protection: Protection,
        config: Config,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Endpoint, BindError> {
        let addresses = addresses.into_iter().collect();
        let listen = ListenAddresses::new(addresses, DEFAULT_UDP_PORT);
        let builder = listen.endpoint(protection).map_err(BindError::NoUsableAddress)?;
        let endpoint = builder.accept(config).bind()?;
        listen.follow(&endpoint);
        Ok(endpoint)
    }

    /// Opens an association with a peer by name or address, such as `example.org`, `192.0.2.1:9899` or `[2001:db8::1]:9899`. The
    /// default UDP port is 9899. Its paths lead from the addresses of this endpoint to those of the name that they can reach. Further
    /// addresses that a protected peer reports become paths once they have answered.
    ///
    /// Cancel-safe: dropping the future cancels the attempt.
    ///
    /// # Errors
    /// Returns [`ConnectError::Target`] for a name that cannot be read or resolved, [`ConnectError::Route`] without a route, or
    /// another [`ConnectError`], each with a remedy.
    pub async fn connect_to(&self, target: &str, config: Config) -> Result<Association, ConnectError> {
        let wanted = Target::read(target).map_err(ConnectError::Target)?;
        let addresses = wanted.resolve().await.map_err(ConnectError::Target)?;
        let remotes = RemoteChoice::Resolved { host: target.to_owned(), addresses };
        let selection = RouteSelection::new(Vec::new(), remotes);
        let config = selection.configure(config);
        let paths = selection.paths().map_err(ConnectError::Route)?;
        let here = LocalAddresses::read();
        let paths =
            paths.into_iter().map(|path| if here.has(path.remote) { from_loopback(path) } else { path });
        self.connect(Peer::new(paths), config).await
    }
}

/// Lets a path to this machine begin at the loopback address, because the sockets of other addresses are bound to interfaces.
fn from_loopback(path: PathAddress) -> PathAddress {
    let local = match path.remote {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    PathAddress { local, interface: 0, ..path }
}
