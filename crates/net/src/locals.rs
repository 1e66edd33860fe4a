//! Local addresses that come and go while the host runs.

use std::net::{IpAddr, SocketAddr};

use anabranch_core::{Association, LocalEnd};
use tokio::sync::oneshot;

use crate::driver::Driver;
use crate::error::LocalError;
use crate::host::{Host, bind_one, check_address};
use crate::interface::{Change, Watcher, interface_mtus, local_addresses};
use crate::shared::{BindAddress, Command, Commands};
use crate::socket::Socket;

impl Host {
    /// Takes a further local address into use and returns it with the port that it got; port 0 takes the one that the host
    /// has on its other addresses if that is free there, else any.
    ///
    /// Every association whose configuration says [`follow`](anabranch_core::AddressChanges::follow) gets a path from it, to
    /// the address of its peer's that fewest paths lead to. The path carries data once the peer has answered on it. An
    /// association that has eight paths, or no address of that IP version to go to, stays as it is.
    ///
    /// Cancel-safe: a future that is dropped leaves the address added, or not.
    ///
    /// # Errors
    /// [`LocalError`], with what to do about it.
    pub async fn add_local(&self, address: SocketAddr) -> Result<SocketAddr, LocalError> {
        self.add(BindAddress { address, interface: None }).await
    }

    /// The same as [`add_local`](Self::add_local), and what is sent from there leaves through this interface only, as with
    /// [`HostBuilder::local_on`](crate::HostBuilder::local_on).
    ///
    /// Cancel-safe: a future that is dropped leaves the address added, or not.
    ///
    /// # Errors
    /// [`LocalError`], with what to do about it.
    pub async fn add_local_on(&self, address: SocketAddr, interface: &str) -> Result<SocketAddr, LocalError> {
        self.add(BindAddress { address, interface: Some(interface.to_owned()) }).await
    }

    async fn add(&self, end: BindAddress) -> Result<SocketAddr, LocalError> {
        self.ask(|reply| Command::AddLocal(end, reply)).await.unwrap_or(Err(LocalError::HostGone))
    }

    /// Adds and removes local addresses as the watcher reports, for as long as there is a handle of the host or of one of its
    /// associations.
    pub fn follow(&self, mut watcher: Watcher, binding: Binding) {
        let commands = self.inner.commands.downgrade();
        let monitor = self.monitor();
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = watcher.next() => change,
                    // No change may ever come, and the watcher holds a socket.
                    () = monitor.gone() => return,
                };
                let Some(commands) = commands.upgrade() else { return };
                follow_one(&commands, change, binding).await;
            }
        });
    }

    /// Closes the socket of a local address, such as one that its interface has lost. If several interfaces have the address, the
    /// sockets of all are closed.
    ///
    /// Every association retires the paths that begin there, and what they carried goes over others. One that has no other
    /// path keeps these, silent, until an address has been added, or until its peer counts as unreachable.
    ///
    /// Cancel-safe: a future that is dropped leaves the address removed, or not.
    ///
    /// # Errors
    /// [`LocalError`], with what to do about it.
    pub async fn remove_local(&self, address: IpAddr) -> Result<(), LocalError> {
        self.ask(|reply| Command::RemoveLocal(address.into(), reply))
            .await
            .unwrap_or(Err(LocalError::HostGone))
    }

    /// The local addresses that are bound now, with their UDP ports; none if the host's task is gone.
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

/// Where the sockets of addresses that come are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Their UDP port; 0 for that of the host's other addresses if it is free.
    pub port: u16,
    /// Whether what is sent from there leaves through the address's interface only.
    pub to_interface: bool,
}

/// An address that cannot be had, or is bound already, changes nothing.
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
        self.look_at_interfaces();
        self.for_each_association(|association, now| {
            if !association.follows_addresses() {
                return;
            }
            if association.reported_addresses().next().is_some() {
                // The peer reports its addresses: the new one is paired by routes, unless its paths are still there.
                association.take_back_local_address(now, at);
            } else {
                // One that cannot have another path goes on without.
                let _ = association.add_local_address(now, at);
            }
        });
        self.report_locals();
        self.pair_again();
        Ok(local)
    }

    /// Closes the sockets of a local end. A socket that is bound to no interface stays open while another interface has its address.
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
        let Driver { sockets, closed, .. } = self;
        for socket in sockets.extract_if(.., |socket| is_gone(socket.end())) {
            closed.add(&socket.counters);
        }
        self.list_addresses();
        for end in ends {
            self.for_each_association(|association, now| {
                // An association without a path from there has nothing to remove.
                let _ = association.remove_local_address(now, end);
            });
        }
        Ok(())
    }

    /// The endpoint learns how large packets the interfaces take.
    pub(crate) fn look_at_interfaces(&mut self) {
        let locals = self.sockets.iter().map(|socket| (socket.end(), socket.bound_device()));
        let mtus = interface_mtus(locals);
        self.endpoint.set_interface_mtus(self.clock.now(), mtus);
    }

    /// Associations to come are told of the addresses of now.
    fn list_addresses(&mut self) {
        let addresses = self.sockets.iter().map(Socket::end).collect();
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
