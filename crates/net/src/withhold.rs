//! Local addresses that are taken out of use and back on a running endpoint.

use std::net::IpAddr;

use anabranch_core::{AssociationId, LocalEnd, PathAddress, PathState};
use tokio::sync::oneshot;

use crate::driver::Driver;
use crate::endpoint::Monitor;
use crate::error::LocalError;
use crate::pairing::path_addresses;
use crate::shared::Command;
use crate::socket::Socket;
use crate::withheld::Withholder;

impl Monitor {
    /// Takes a local address out of use: every association retires the paths that begin there, and reports this to its peer, so
    /// that neither side sends data on them. The socket stays bound. Associations that are opened later leave the address out, and an
    /// endpoint that accepts associations accepts none there.
    ///
    /// The order precedes later ones to the endpoint; the future waits for its result. Cancel-safe: dropping the future does not
    /// withdraw the order.
    ///
    /// # Errors
    /// Returns [`LocalError::LastUsable`] if an association has no other active path, or if an endpoint that accepts associations has
    /// no other address in use, [`LocalError::Unknown`] and [`LocalError::EndpointGone`].
    pub fn withhold_local(
        &self,
        end: LocalEnd,
    ) -> impl Future<Output = Result<(), LocalError>> + Send + use<> {
        self.order_local(end, Command::WithholdLocal)
    }

    /// Puts a withheld local address into use again. Its paths carry data once the peer has answered on them. Has no effect on
    /// another address of the endpoint, and on one of a [barred](crate::LinkUse::Barred) link until the link is permitted.
    ///
    /// The order precedes later ones to the endpoint; the future waits for its result. Cancel-safe: dropping the future does not
    /// withdraw the order.
    ///
    /// # Errors
    /// Returns [`LocalError::Unknown`] and [`LocalError::EndpointGone`].
    pub fn restore_local(
        &self,
        end: LocalEnd,
    ) -> impl Future<Output = Result<(), LocalError>> + Send + use<> {
        self.order_local(end, Command::RestoreLocal)
    }

    fn order_local(
        &self,
        end: LocalEnd,
        command: fn(LocalEnd, oneshot::Sender<Result<(), LocalError>>) -> Command,
    ) -> impl Future<Output = Result<(), LocalError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        // Without a task, the command is dropped together with its reply.
        self.order(command(end, reply));
        async move { answer.await.unwrap_or(Err(LocalError::EndpointGone)) }
    }
}

impl Driver {
    pub(crate) fn withhold_local(&mut self, end: LocalEnd) -> Result<(), LocalError> {
        self.check_local(end)?;
        if self.withheld.hold(end, Withholder::User) {
            return Ok(());
        }
        if self.endpoint.is_accepting() && !self.used_ends().any(|used| used != end) {
            return Err(LocalError::LastUsable(end.address));
        }
        let paths = self.dispensable_paths(end)?;
        self.take_out(end, Withholder::User, paths);
        Ok(())
    }

    /// Takes an end out of use, with these paths that begin there.
    pub(crate) fn take_out(
        &mut self,
        end: LocalEnd,
        by: Withholder,
        paths: Vec<(AssociationId, PathAddress)>,
    ) {
        self.withheld.add(self.clock.now(), end, by, paths);
        self.list_addresses();
        self.for_each_association(|association, now| {
            // An association may have no path from this address.
            let _ = association.remove_local_address(now, end);
        });
    }

    /// Returns the paths that begin at this end, if each of their associations has another active path.
    fn dispensable_paths(&self, end: LocalEnd) -> Result<Vec<(AssociationId, PathAddress)>, LocalError> {
        let mut paths = Vec::new();
        for id in self.entries.keys() {
            let Some(association) = self.endpoint.association(*id) else { continue };
            let here: Vec<PathAddress> =
                path_addresses(association).filter(|path| path.local_end() == end).collect();
            let has_another = association.paths().iter().any(|facts| {
                let path = association.path_address(facts.id);
                facts.state == PathState::Active && path.is_some_and(|path| path.local_end() != end)
            });
            if !here.is_empty() && !has_another {
                return Err(LocalError::LastUsable(end.address));
            }
            paths.extend(here.into_iter().map(|path| (*id, path)));
        }
        Ok(paths)
    }

    pub(crate) fn restore_local(&mut self, end: LocalEnd) -> Result<(), LocalError> {
        self.check_local(end)?;
        self.put_back(end, Withholder::User);
        Ok(())
    }

    /// Removes a holder of a withheld end, whose paths are restored if it was the last one.
    pub(crate) fn put_back(&mut self, end: LocalEnd, by: Withholder) {
        let Some(paths) = self.withheld.release(end, by) else { return };
        self.list_addresses();
        let now = self.clock.now();
        for (id, path) in paths {
            if let Some(association) = self.endpoint.association_mut(id) {
                // The association may have got as many paths as it can have in the meantime.
                let _ = association.restore_path(now, path);
                self.watch.touch(id);
            }
        }
        self.pair_again();
    }

    fn check_local(&self, end: LocalEnd) -> Result<(), LocalError> {
        if self.sockets.iter().any(|socket| socket.end() == end) {
            return Ok(());
        }
        let known: Vec<IpAddr> = self.sockets.iter().map(|socket| socket.local().ip()).collect();
        Err(LocalError::Unknown { address: end.address, known })
    }

    /// Returns the local ends that are in use.
    pub(crate) fn used_ends(&self) -> impl Iterator<Item = LocalEnd> + '_ {
        self.sockets.iter().map(Socket::end).filter(|end| !self.withheld.contains(*end))
    }
}
