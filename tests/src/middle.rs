//! An attacker on the path between real sockets: a UDP forwarder that may change, drop and answer packets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::hostile::craft::fix_checksum;
use crate::network::Side;

/// Pause of the forwarder when no packet waits.
const IDLE: Duration = Duration::from_micros(200);

const LONGEST_PACKET: usize = 65_536;

/// Fate of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Forwarded with the attacker's changes.
    Forwarded,
    /// Not forwarded.
    Dropped,
    /// Dropped, and answered with this packet.
    Answered(Vec<u8>),
}

/// A forwarder in front of one server. Each client reaches the server from its own UDP port.
#[derive(Debug)]
pub struct Middle {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Middle {
    /// Starts a forwarder at a port of this address. Clients are [`Side::A`], the server is [`Side::B`].
    ///
    /// # Errors
    /// Returns an error if the system gives no socket.
    pub fn start(
        address: IpAddr,
        server: SocketAddr,
        attack: impl FnMut(Side, &mut Vec<u8>) -> Fate + Send + 'static,
    ) -> io::Result<Self> {
        let socket = bind(address)?;
        let address = socket.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut forwarder = Forwarder { socket, server, clients: Vec::new(), attack };
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if !forwarder.forward_waiting() {
                    thread::sleep(IDLE);
                }
            }
        });
        Ok(Middle { address, stop, thread: Some(thread) })
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bind(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Forwarder<A> {
    socket: UdpSocket,
    server: SocketAddr,
    /// Clients with their sockets at the server.
    clients: Vec<(SocketAddr, UdpSocket)>,
    attack: A,
}

impl<A: FnMut(Side, &mut Vec<u8>) -> Fate> Forwarder<A> {
    /// Forwards the packets that wait. Returns `false` if there were none.
    fn forward_waiting(&mut self) -> bool {
        let (mut buffer, mut has_any) = (vec![0; LONGEST_PACKET], false);
        while let Ok((length, client)) = self.socket.recv_from(&mut buffer) {
            has_any = true;
            let Ok(at) = self.index_of(client) else { continue };
            let mut packet = buffer[..length].to_vec();
            let fate = (self.attack)(Side::A, &mut packet);
            let _ = match fate {
                Fate::Forwarded => self.clients[at].1.send_to(&packet, self.server),
                Fate::Dropped => Ok(0),
                Fate::Answered(answer) => self.socket.send_to(&answer, client),
            };
        }
        for (client, towards) in &self.clients {
            while let Ok((length, _)) = towards.recv_from(&mut buffer) {
                has_any = true;
                let mut packet = buffer[..length].to_vec();
                let _ = match (self.attack)(Side::B, &mut packet) {
                    Fate::Forwarded => self.socket.send_to(&packet, client),
                    Fate::Dropped => Ok(0),
                    Fate::Answered(answer) => towards.send_to(&answer, self.server),
                };
            }
        }
        has_any
    }

    fn index_of(&mut self, client: SocketAddr) -> io::Result<usize> {
        if let Some(at) = self.clients.iter().position(|(known, _)| *known == client) {
            return Ok(at);
        }
        self.clients.push((client, bind(self.socket.local_addr()?.ip())?));
        Ok(self.clients.len() - 1)
    }
}

/// Returns the ABORT with which an attacker answers an INIT, or `None` for another packet.
pub fn forged_abort(packet: &[u8]) -> Option<Vec<u8>> {
    const INIT: u8 = 1;
    const ABORT: [u8; 4] = [6, 0, 0, 4];
    let tag = packet.get(16..20).filter(|_| packet[12] == INIT)?;
    let mut answer = [&packet[2..4], &packet[..2], tag, &[0; 4], &ABORT].concat();
    fix_checksum(&mut answer);
    Some(answer)
}
