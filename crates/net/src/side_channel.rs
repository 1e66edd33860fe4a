//! Datagrams of another protocol on the sockets of an endpoint.

use anabranch_core::{LocalEnd, PacketBuffer};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::observer_slot::ObserverSlot;
use crate::shared::Command;
use crate::side_outlet::SideDatagram;
use crate::socket::Socket;

/// Datagrams that begin with two zero bytes, on the sockets of an endpoint.
///
/// An SCTP packet begins with its source port, which is never zero (RFC 9260 section 3.1). Another protocol can therefore share the
/// sockets, for example to open the mappings of NATs that the packets of associations need. Observers of the endpoint do not see
/// these datagrams.
#[derive(Debug)]
pub struct SideChannel {
    commands: mpsc::WeakUnboundedSender<Command>,
    arrived: mpsc::Receiver<SideDatagram>,
}

impl Endpoint {
    /// Opens the side channel. An earlier one receives nothing more. It does not keep the endpoint's task running. Returns `None` if the
    /// task has ended.
    ///
    /// Cancel-safe.
    pub async fn side_channel(&self) -> Option<SideChannel> {
        let (reply, answer) = oneshot::channel();
        let _ = self.inner.commands.send(Command::OpenSideChannel(reply));
        let arrived = answer.await.ok()?;
        Some(SideChannel { commands: self.inner.commands.downgrade(), arrived })
    }
}

impl SideChannel {
    /// Waits for a datagram. Returns `None` once the endpoint's task has ended, or another side channel was opened.
    ///
    /// Cancel-safe: no datagram is lost.
    pub async fn recv(&mut self) -> Option<SideDatagram> {
        self.arrived.recv().await
    }

    /// Sends a datagram from the socket of its local end, if there is one.
    pub fn send(&self, datagram: SideDatagram) {
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(Command::SendSideDatagram(Box::new(datagram)));
        }
    }

    /// Returns the local ends of the endpoint's sockets; none once its task has ended.
    ///
    /// Cancel-safe.
    pub async fn local_ends(&self) -> Vec<LocalEnd> {
        let (reply, answer) = oneshot::channel();
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(Command::LocalEnds(reply));
        }
        answer.await.unwrap_or_default()
    }
}

impl Driver {
    /// Sends a datagram of the side channel, which observers do not see.
    pub(crate) fn send_side_datagram(&mut self, datagram: &SideDatagram) {
        let SideDatagram { local, remote, payload } = datagram;
        let now = self.clock.now();
        let Some(socket) = self.sockets.iter_mut().find(|socket| socket.end() == *local) else { return };
        socket.flush(now, &mut self.watch);
        let mut packet = PacketBuffer::with_capacity(payload.len());
        packet.extend_from_slice(payload);
        let mut unobserved = ObserverSlot::default();
        socket.push(now, remote.ip(), remote.port(), &mut packet, false, &mut unobserved);
        socket.flush(now, &mut unobserved);
    }

    pub(crate) fn local_ends(&self) -> Vec<LocalEnd> {
        self.sockets.iter().map(Socket::end).collect()
    }
}
