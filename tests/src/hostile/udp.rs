//! Hostile peer on a real socket, against a host (RFC 6951).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anabranch_core::time::Span;

use super::peer::Wire;

/// A UDP socket that is connected to a host.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
}

impl Socket {
    /// Binds an address, whose port may be zero, and connects to a host's address.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound.
    pub fn new(from: SocketAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(from)?;
        socket.connect(to)?;
        Ok(Socket { socket })
    }
}

impl Wire for Socket {
    /// Sends a packet; one that the system refuses is lost.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.send(bytes);
    }

    fn receive(&mut self, wait: Span, packets: &mut Vec<Vec<u8>>) {
        let end = Instant::now() + Duration::from(wait);
        let mut buffer = vec![0; 65_535];
        loop {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let received =
                self.socket.set_read_timeout(Some(left)).and_then(|()| self.socket.recv(&mut buffer));
            match received {
                Ok(length) => packets.push(buffer[..length].to_vec()),
                // The port is closed.
                Err(_) if Instant::now() >= end => return,
                Err(_) => {}
            }
            if Instant::now() >= end {
                return;
            }
        }
    }

    fn timeout(&self) -> Span {
        Span::from_secs(2)
    }
}
