//! Paths added and removed while an association is established.

use anabranch_core::{AssociationId, PathAddress, PathId};
use tokio::sync::oneshot;

use crate::association::Association;
use crate::driver::Driver;
use crate::error::PathError;
use crate::peer::udp_address;
use crate::shared::Command;

impl Association {
    /// Adds a path. The path carries data once the peer has answered a HEARTBEAT on it, which also announces the path to the peer.
    ///
    /// Cancel-safe: dropping the future leaves the path either added or not.
    ///
    /// # Errors
    /// Returns [`PathError`], with a remedy.
    pub async fn add_path(&self, path: PathAddress) -> Result<PathId, PathError> {
        self.ask(|id, reply| Command::AddPath(id, path, reply)).await.unwrap_or(Err(PathError::Closed))
    }

    /// Removes a path. Data in flight on the path counts as lost and is sent on other paths. Packets of the peer that still arrive
    /// on it are accepted, without adding the path again.
    ///
    /// Cancel-safe: dropping the future leaves the path either removed or not.
    ///
    /// # Errors
    /// Returns [`PathError::Refused`] if the path does not exist or is the only one, and [`PathError::Closed`] if the association
    /// is closed.
    pub async fn remove_path(&self, path: PathId) -> Result<(), PathError> {
        self.ask(|id, reply| Command::RemovePath(id, path, reply)).await.unwrap_or(Err(PathError::Closed))
    }

    async fn ask<T>(&self, command: impl FnOnce(AssociationId, oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.order(|id| command(id, reply));
        answer.await.ok()
    }
}

impl Driver {
    pub(crate) fn add_path(&mut self, id: AssociationId, path: PathAddress) -> Result<PathId, PathError> {
        let path = self.check_path(path)?;
        let remote = udp_address(path);
        let sctp_port = self.endpoint.association(id).ok_or(PathError::Closed)?.peer_port();
        let holder = self.endpoint.association_with(remote.ip(), Some(remote.port()), sctp_port);
        if holder.is_some_and(|holder| holder != id) {
            return Err(PathError::Taken(remote));
        }
        let now = self.clock.now();
        let association = self.endpoint.association_mut(id).ok_or(PathError::Closed)?;
        Ok(association.add_path(now, path)?)
    }

    pub(crate) fn remove_path(&mut self, id: AssociationId, path: PathId) -> Result<(), PathError> {
        let now = self.clock.now();
        let association = self.endpoint.association_mut(id).ok_or(PathError::Closed)?;
        Ok(association.remove_path(now, path)?)
    }
}
