//! Paths that Python adds.

use std::net::IpAddr;

use anabranch_cli::endpoint::{add_local, read_address};
use anabranch_net::Route;

use super::association::{Handle, Keeper};
use super::failure::Failure;

/// What Python writes as a pair of addresses.
pub(super) fn route(local: &str, remote: &str) -> Result<Route, Failure> {
    let local: IpAddr = local.parse().map_err(|_| {
        Failure::Argument(format!("local {local:?}: expected an address of this machine, such as 192.0.2.1"))
    })?;
    let remote =
        read_address(remote).map_err(|error| Failure::Argument(format!("remote {remote:?}: {error}")))?;
    Ok(Route { local, remote })
}

/// Adds a path, and gives its id. Its local address is taken into use first where that is needed and possible.
pub(super) async fn add_path(handle: &Handle, peer: &str, route: Route) -> Result<usize, Failure> {
    let Handle { association, keeper } = handle;
    let mut offered = Vec::new();
    if let Keeper::Own(host) = keeper
        && !host.locals().await.iter().any(|bound| bound.ip() == route.local)
    {
        add_local(host, route).await.map_err(|error| Failure::Argument(format!("{peer}: {error}")))?;
        // The association has got a path from there already, perhaps to another of the peer's addresses.
        offered = association.paths().await;
        offered.retain(|path| path.local == route.local);
    }
    if let Some(path) = offered.iter().find(|path| path.remote == route.remote) {
        return Ok(path.id.index());
    }
    let added = association.add_path(route).await.map_err(|error| Failure::no_path(peer, &error))?;
    for path in offered {
        // It may be gone already.
        let _ = association.remove_path(path.id).await;
    }
    Ok(added.index())
}
