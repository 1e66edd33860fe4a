//! Changes of the use of links on a running endpoint.

use anabranch_core::{Association, AssociationId, LocalEnd, PathAddress, PathCost, PathState};

use crate::driver::Driver;
use crate::endpoint::Monitor;
use crate::error::ConnectError;
use crate::link_use::{LastLinks, LinkName, LinkReport, LinkUse, LinkUses};
use crate::pairing::path_addresses;
use crate::shared::Command;
use crate::socket::Socket;
use crate::withheld::Withholder;

impl Monitor {
    /// Changes the use of a link that [`EndpointBuilder::link_uses`](crate::EndpointBuilder::link_uses) has named. The order precedes
    /// later ones to the endpoint.
    pub fn set_link_use(&self, name: LinkName, usage: LinkUse) {
        self.order(Command::SetLinkUse(name, usage));
    }

    /// Returns the bytes of the links whose use is set, also after the endpoint has ended.
    ///
    /// Cancel-safe.
    pub async fn links(&self) -> Vec<LinkReport> {
        match self.report().await {
            Some(report) => report.links,
            None => {
                self.gone().await;
                self.last_links().get().cloned().unwrap_or_default()
            }
        }
    }
}

impl Driver {
    pub(crate) fn set_link_use(&mut self, name: &LinkName, usage: LinkUse) {
        if self.links.set(name, usage) {
            for end in self.sockets.iter().map(Socket::end).collect::<Vec<_>>() {
                self.adopt_link_use(end);
            }
        }
    }

    /// Sets the links of a new endpoint.
    pub(crate) fn begin_links(&mut self, uses: Vec<(LinkName, LinkUse)>, ended: LastLinks) {
        if uses.is_empty() {
            return;
        }
        self.links = LinkUses::new(uses, ended);
        for end in self.sockets.iter().map(Socket::end).collect::<Vec<_>>() {
            self.adopt_link_use(end);
        }
    }

    /// Adopts the use of the link to which a socket belongs.
    pub(crate) fn adopt_link_use(&mut self, end: LocalEnd) {
        let socket = self.sockets.iter().find(|socket| socket.end() == end);
        match socket.map(|socket| self.links.use_of(socket)) {
            Some(LinkUse::At(cost)) => {
                self.for_each_association(|association, now| {
                    if association.local_cost(end) != cost {
                        association.set_local_cost(now, end, cost);
                    }
                });
                self.put_back(end, Withholder::Limit);
            }
            Some(LinkUse::Barred) => self.bar_local(end),
            None => {}
        }
    }

    /// Takes a local end out of use, although associations may have no other path.
    fn bar_local(&mut self, end: LocalEnd) {
        if self.withheld.hold(end, Withholder::Limit) {
            return;
        }
        let mut paths: Vec<(AssociationId, PathAddress)> = Vec::new();
        let now = self.clock.now();
        for (id, shared) in &self.entries {
            let Some(association) = self.endpoint.association_mut(*id) else { continue };
            let all: Vec<PathAddress> = path_addresses(association).collect();
            if all.iter().any(|path| path.local_end() == end) && !has_confirmed_path_beside(association, end)
            {
                shared.lock().is_barred = true;
                association.abort(now);
                continue;
            }
            paths.extend(all.into_iter().filter(|path| path.local_end() == end).map(|path| (*id, path)));
        }
        self.take_out(end, Withholder::Limit, paths);
    }

    /// Orders the paths of a new association by cost, so that the handshake uses the cheapest one. Returns them, and those that begin
    /// at withheld ends.
    ///
    /// # Errors
    /// Returns [`ConnectError::Barred`] if all paths begin at barred links.
    pub(crate) fn permitted_paths(
        &self,
        mut paths: Vec<PathAddress>,
    ) -> Result<(Vec<PathAddress>, Vec<PathAddress>), ConnectError> {
        paths.sort_by_key(|path| self.cost_of(path.local_end()));
        match paths.iter().find(|path| !self.withheld.is_held(path.local_end(), Withholder::Limit)) {
            Some(_) => Ok(self.withheld.divide(paths)),
            None => Err(ConnectError::Barred(paths.iter().map(|path| path.local).collect())),
        }
    }

    /// Sets the costs of the local ends of a new association.
    pub(crate) fn begin_costs(&mut self, id: AssociationId) {
        let now = self.clock.now();
        let costs: Vec<(LocalEnd, PathCost)> =
            self.sockets.iter().map(|socket| (socket.end(), self.cost_of(socket.end()))).collect();
        let Some(association) = self.endpoint.association_mut(id) else { return };
        for (end, cost) in costs.into_iter().filter(|(_, cost)| *cost != PathCost::Free) {
            association.set_local_cost(now, end, cost);
        }
    }

    fn cost_of(&self, end: LocalEnd) -> PathCost {
        let socket = self.sockets.iter().find(|socket| socket.end() == end);
        match socket.map(|socket| self.links.use_of(socket)) {
            Some(LinkUse::At(cost)) => cost,
            Some(LinkUse::Barred) | None => PathCost::Free,
        }
    }
}

/// Returns `true` if a path from another local end has answered, so that the association can do without this end.
fn has_confirmed_path_beside(association: &Association, end: LocalEnd) -> bool {
    association.paths().iter().any(|facts| {
        facts.state != PathState::Unconfirmed
            && association.path_address(facts.id).is_some_and(|path| path.local_end() != end)
    })
}
