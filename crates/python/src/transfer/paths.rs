//! Addition of paths by Python.

use std::net::IpAddr;

use anabranch_net::route_selection::{add_local, read_address};
use anabranch_net::{Association, PathAddress, PathId, udp_address};

use super::failure::Failure;
use super::handle::{Handle, SocketOwner};

/// Converts a pair of addresses from Python.
pub(super) fn path_address(local: &str, remote: &str) -> Result<PathAddress, Failure> {
    let local: IpAddr = local.parse().map_err(|_| {
        Failure::Argument(format!("local {local:?}: expected an address of this machine, such as 192.0.2.1"))
    })?;
    let remote =
        read_address(remote).map_err(|error| Failure::Argument(format!("remote {remote:?}: {error}")))?;
    Ok(PathAddress::over_udp(local, remote))
}

/// Adds a path, and returns its id. Binds the local address before, if that is necessary and possible.
pub(super) async fn add_path(handle: &Handle, peer: &str, path: PathAddress) -> Result<usize, Failure> {
    let Handle { association, keeper } = handle;
    let unbound = match keeper {
        SocketOwner::Own(endpoint, _)
            if !endpoint.locals().await.iter().any(|bound| bound.ip() == path.local) =>
        {
            endpoint
        }
        _ => return Ok(add(association, peer, path).await?.index()),
    };
    add_local(unbound, path).await.map_err(|error| Failure::Argument(format!("{peer}: {error}")))?;
    // The association has a path from there already, perhaps to another address of the peer.
    let mut offered = association.paths().await;
    offered.retain(|offer| offer.local == path.local);
    if let Some(offer) = offered.iter().find(|offer| offer.remote == udp_address(path)) {
        return Ok(offer.id.index());
    }
    let added = add(association, peer, path).await;
    // A path that cannot be removed was removed before.
    match added {
        Ok(_) => {
            for offer in offered {
                let _ = association.remove_path(offer.id).await;
            }
        }
        Err(_) => drop(unbound.remove_local(path.local).await),
    }
    Ok(added?.index())
}

async fn add(association: &Association, peer: &str, path: PathAddress) -> Result<PathId, Failure> {
    association.add_path(path).await.map_err(|error| Failure::no_path(peer, &error))
}
