//! Connections that the packet filter of Linux has redirected to a listener of this process.

use socket2::SockRef;
use tokio::net::TcpStream;

use crate::target::Target;

/// Returns the target to which the program has connected before the redirection. Returns `None` for a program that has connected to
/// the listener.
pub(crate) fn original_target(connection: &TcpStream) -> Option<Target> {
    let (socket, local) = (SockRef::from(connection), connection.local_addr().ok()?);
    let original = if local.is_ipv4() { socket.original_dst_v4() } else { socket.original_dst_v6() };
    let original = original.ok()?.as_socket()?;
    (original != local && original.port() > 0).then(|| original.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connection_to_the_listener_itself_has_no_target() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let to = listener.local_addr().expect("an address");
            let (_connected, accepted) = tokio::join!(TcpStream::connect(to), listener.accept());
            assert_eq!(original_target(&accepted.expect("a connection").0), None);
        }
    }
}
