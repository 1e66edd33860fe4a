//! Paths that come and go while an association is up.

use anabranch_core::{AssociationId, PathAddress, PathId};
use tokio::sync::oneshot;

use crate::association::Association;
use crate::driver::Driver;
use crate::error::RouteError;
use crate::peer::Route;
use crate::shared::Command;

impl Association {
    /// Adds a path. It carries data once the peer has answered a HEARTBEAT on it, which also makes it known to the peer.
    ///
    /// Cancel-safe: a future that is dropped leaves the path added, or not.
    ///
    /// # Errors
    /// [`RouteError`], with what to do about it.
    pub async fn add_path(&self, route: Route) -> Result<PathId, RouteError> {
        self.ask(|id, reply| Command::AddPath(id, route, reply)).await.unwrap_or(Err(RouteError::Closed))
    }

    /// Takes a path out of service. What was in flight on it counts as lost and goes over others; the peer's packets that
    /// still come that way are taken, and do not make a path of it again.
    ///
    /// Cancel-safe: a future that is dropped leaves the path removed, or not.
    ///
    /// # Errors
    /// [`RouteError::Refused`] if there is no such path or no other one; [`RouteError::Closed`].
    pub async fn remove_path(&self, path: PathId) -> Result<(), RouteError> {
        self.ask(|id, reply| Command::RemovePath(id, path, reply)).await.unwrap_or(Err(RouteError::Closed))
    }

    async fn ask<T>(&self, command: impl FnOnce(AssociationId, oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.order(|id| command(id, reply));
        answer.await.ok()
    }
}

impl Driver {
    pub(crate) fn add_path(&mut self, id: AssociationId, route: Route) -> Result<PathId, RouteError> {
        self.check_route(route)?;
        let Route { local, remote } = route;
        let sctp_port = self.endpoint.association(id).ok_or(RouteError::Closed)?.peer_port();
        let holder = self.endpoint.association_with(remote.ip(), Some(remote.port()), sctp_port);
        if holder.is_some_and(|holder| holder != id) {
            return Err(RouteError::Taken(remote));
        }
        let now = self.clock.now();
        let association = self.endpoint.association_mut(id).ok_or(RouteError::Closed)?;
        Ok(association.add_path(now, PathAddress::over_udp(local, remote))?)
    }

    pub(crate) fn remove_path(&mut self, id: AssociationId, path: PathId) -> Result<(), RouteError> {
        let now = self.clock.now();
        let association = self.endpoint.association_mut(id).ok_or(RouteError::Closed)?;
        Ok(association.remove_path(now, path)?)
    }
}
