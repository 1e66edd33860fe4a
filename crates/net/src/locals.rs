//! Local addresses added and removed while the endpoint runs.

use std::net::{IpAddr, SocketAddr};

use anabranch_core::{Association, LocalEnd};
use tokio::sync::oneshot;

use crate::driver::Driver;
use crate::endpoint::{Endpoint, bind_one, check_address};
use crate::error::LocalError;
use crate::interface::{Change, Watcher, interface_mtus, local_addresses};
use crate::shared::{BindAddress, Command, Commands};
use crate::socket::Socket;

impl Endpoint {
    /// Adds a local address. Returns it with its port; port 0 selects the port of the endpoint's other addresses if free, or else
    /// any.
    ///
    /// Every association with [`follow`](anabranch_core::AddressChanges::follow) in its configuration gets a path from it, to the
    /// peer's address with the fewest paths. The path carries data once the peer has answered on it. An association with eight
    /// paths, or without a peer's address of that IP version, does not change.
    ///
    /// Cancel-safe: dropping the future leaves the address either added or not.
    ///
    /// # Errors
    /// Returns [`LocalError`], with a remedy.
    pub async fn add_local(&self, address: SocketAddr) -> Result<SocketAddr, LocalError> {
        self.add(BindAddress { address, interface: None }).await
    }

    /// Adds a local address as [`add_local`](Self::add_local) does. Packets from the address are sent only through this interface, as
    /// with [`EndpointBuilder::local_on`](crate::EndpointBuilder::local_on).
    ///
    /// Cancel-safe: dropping the future leaves the address either added or not.
    ///
    /// # Errors
    /// Returns [`LocalError`], with a remedy.
    pub async fn add_local_on(&self, address: SocketAddr, interface: &str) -> Result<SocketAddr, LocalError> {
        self.add(BindAddress { address, interface: Some(interface.to_owned()) }).await
    }

    async fn add(&self, end: BindAddress) -> Result<SocketAddr, LocalError> {
        self.ask(|reply| Command::AddLocal(end, reply)).await.unwrap_or(Err(LocalError::EndpointGone))
    }

    /// Adds and removes local addresses as the watcher reports, while there is a handle of the endpoint or of one of its
    /// associations.
    pub fn follow(&self, mut watcher: Watcher, binding: Binding) {
        let commands = self.inner.commands.downgrade();
        let monitor = self.monitor();
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = watcher.next() => change,
                    // Without this, the task could wait forever and keep the watcher's socket open.
                    () = monitor.gone() => return,
                };
                let Some(commands) = commands.upgrade() else { return };
                follow_one(&commands, change, binding).await;
            }
        });
    }

    /// Closes the socket of a local address, for example after its interface lost it. If several interfaces have the address,
    /// closes the sockets of all.
    ///
    /// Every association retires the paths that begin there, and their data is sent on others. An association without other paths
    /// keeps these paths, without sending on them, until an address is added or the peer counts as unreachable.
    ///
    /// Cancel-safe: dropping the future leaves the address either removed or not.
    ///
    /// # Errors
    /// Returns [`LocalError`], with a remedy.
    pub async fn remove_local(&self, address: IpAddr) -> Result<(), LocalError> {
        self.ask(|reply| Command::RemoveLocal(address.into(), reply))
            .await
            .unwrap_or(Err(LocalError::EndpointGone))
    }

    /// Returns the local addresses that are bound now, with their UDP ports; none if the endpoint's task has ended.
    ///
    /// Cancel-safe.
    pub async fn locals(&self) -> Vec<SocketAddr> {
        self.ask(Command::Locals).await.unwrap_or_default()
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        ask(&self.inner.commands, command).await
    }
}

async fn ask<T>(commands: &Commands, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    let _ = commands.send(command(reply));
    answer.await.ok()
}

/// Binding of the sockets of added addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// UDP port; 0 selects that of the endpoint's other addresses if it is free.
    pub port: u16,
    /// Set if packets are sent through the address's interface only.
    pub to_interface: bool,
}

/// Applies a change. An address that is unavailable or bound already is ignored.
async fn follow_one(commands: &Commands, change: Change, binding: Binding) {
    match change {
        Change::Removed(local) => {
            drop(ask(commands, |reply| Command::RemoveLocal(local.end(), reply)).await);
        }
        Change::Added(local) => {
            let address = SocketAddr::new(local.address, binding.port);
            let interface = binding.to_interface.then_some(local.interface);
            drop(ask(commands, |reply| Command::AddLocal(BindAddress { address, interface }, reply)).await);
        }
        Change::Resized(_) => drop(commands.send(Command::LookAtInterfaces)),
        Change::Reconnected(local) => drop(commands.send(Command::Reconnected(local.end()))),
        Change::Other => drop(commands.send(Command::PairAgain)),
    }
}

impl Driver {
    pub(crate) fn locals(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(Socket::local).collect()
    }

    pub(crate) fn add_local(&mut self, end: &BindAddress) -> Result<SocketAddr, LocalError> {
        let address = end.address;
        let others = self.sockets.iter().map(|socket| (socket.local().ip(), socket.bound_device()));
        check_address(end, others)?;
        let mut common = self.sockets.first().map(|socket| socket.local().port());
        let socket = match bind_one(end, &mut common) {
            Err(_) if address.port() == 0 => bind_one(end, &mut None)?,
            settled => settled?,
        };
        let (local, at) = (socket.local(), socket.end());
        self.sockets.push(socket);
        self.list_addresses();
        self.update_interface_mtus();
        self.adopt_link_use(at);
        if self.withheld.contains(at) {
            return Ok(local);
        }
        self.for_each_association(|association, now| {
            if !association.follows_addresses() {
                return;
            }
            if association.reported_addresses().next().is_some() {
                // The peer reports its addresses: the new one is paired by routes, unless its paths still exist.
                association.restore_local_address(now, at);
            } else {
                // An association that cannot have another path continues without it.
                let _ = association.add_local_address(now, at);
            }
        });
        self.report_locals();
        self.pair_again();
        Ok(local)
    }

    /// Closes the sockets of a local end. A socket without an interface stays open while another interface has its address.
    pub(crate) fn remove_local(&mut self, gone: LocalEnd) -> Result<(), LocalError> {
        let LocalEnd { address, interface } = gone;
        let on_machine = interface != 0 && local_addresses().iter().any(|local| local.address == address);
        let is_gone = |end: LocalEnd| {
            end == gone || end.address == address && (interface == 0 || end.interface == 0 && !on_machine)
        };
        let ends: Vec<LocalEnd> = self.sockets.iter().map(Socket::end).filter(|end| is_gone(*end)).collect();
        if ends.is_empty() {
            let known = self.locals().iter().map(SocketAddr::ip).collect();
            return Err(LocalError::Unknown { address, known });
        }
        let Driver { sockets, closed, links, .. } = self;
        for socket in sockets.extract_if(.., |socket| is_gone(socket.end())) {
            closed.add(&socket.counters);
            links.close(&socket);
        }
        self.list_addresses();
        for end in ends {
            self.for_each_association(|association, now| {
                // An association may have no path from this address.
                let _ = association.remove_local_address(now, end);
            });
        }
        Ok(())
    }

    /// Updates the endpoint's MTUs of interfaces.
    pub(crate) fn update_interface_mtus(&mut self) {
        let locals = self.sockets.iter().map(|socket| (socket.end(), socket.bound_device()));
        let mtus = interface_mtus(locals);
        self.endpoint.set_interface_mtus(self.clock.now(), mtus);
    }

    /// Updates the addresses that new associations announce.
    pub(crate) fn list_addresses(&mut self) {
        let addresses = self.used_ends().collect();
        self.endpoint.set_addresses(addresses);
    }

    pub(crate) fn for_each_association(
        &mut self,
        mut act: impl FnMut(&mut Association, anabranch_core::time::Time),
    ) {
        let now = self.clock.now();
        let ids: Vec<_> = self.entries.keys().copied().collect();
        for id in ids {
            if let Some(association) = self.endpoint.association_mut(id) {
                act(association, now);
            }
        }
    }
}
