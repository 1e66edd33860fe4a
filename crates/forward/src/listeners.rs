//! TCP listeners of one forwarding.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::listen_spec::Listen;

/// Number of connections that the system accepts before the program does.
const BACKLOG: i32 = 1024;

/// Pause after an error that concerns no single connection, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Listeners at all addresses of a forwarding.
#[derive(Debug)]
pub struct Listeners {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Listeners {
    /// Binds the listeners. The second address of `localhost` and `*`, which is IPv6, may be missing on this machine.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn bind(listen: Listen) -> io::Result<Self> {
        let (mut listeners, mut addresses) = (Vec::new(), Vec::<SocketAddr>::new());
        for mut wanted in listen.addresses() {
            if let Some(first) = addresses.first() {
                wanted.set_port(first.port());
            }
            match bind(wanted) {
                Ok(listener) => {
                    addresses.push(listener.local_addr()?);
                    listeners.push(listener);
                }
                Err(error) if addresses.is_empty() || error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        Ok(Listeners { listeners, addresses })
    }

    /// Returns the bound addresses, at least one.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the port of all listeners.
    pub fn port(&self) -> u16 {
        self.addresses.first().map_or(0, SocketAddr::port)
    }

    /// Returns the next connection. After an error, such as a lack of descriptors, it waits before it tries again.
    ///
    /// Cancel-safe.
    pub(crate) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            let accepted = poll_fn(|cx| {
                let ready = self.listeners.iter().find_map(|listener| match listener.poll_accept(cx) {
                    Poll::Ready(accepted) => Some(accepted),
                    Poll::Pending => None,
                });
                ready.map_or(Poll::Pending, Poll::Ready)
            });
            match accepted.await {
                Ok(accepted) => return accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Listen {
        text.parse().expect(text)
    }

    #[tokio::test]
    async fn free_port_is_the_same_for_both_loopback_addresses() {
        let listeners = Listeners::bind(listen("0")).expect("listeners");
        let ports: Vec<u16> = listeners.addresses().iter().map(SocketAddr::port).collect();
        assert!(ports[0] > 0 && ports.iter().all(|port| *port == listeners.port()));
        for address in listeners.addresses() {
            let (connected, (_, from)) = tokio::join!(TcpStream::connect(address), listeners.accept());
            assert_eq!(connected.expect("a connection").local_addr().expect("an address"), from);
        }
    }

    #[tokio::test]
    async fn port_in_use_is_an_error() {
        let first = Listeners::bind(listen("127.0.0.1:0")).expect("a listener");
        let again = Listeners::bind(listen(&format!("127.0.0.1:{}", first.port())));
        assert_eq!(again.expect_err("in use").kind(), io::ErrorKind::AddrInUse);
    }
}
