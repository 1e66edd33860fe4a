//! SOCKS5 UDP ASSOCIATE (RFC 1928 section 7).

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::socks::{associated, datagram_from, read_datagram};
use crate::uplink::Uplink;

/// Maximum length of a datagram with its header, in bytes.
const MAX_BYTES: usize = 65_535;

/// Forwards datagrams of a program while its connection is open. Only the host of the connection may send them, and its first
/// datagram fixes the port.
pub(super) async fn associate(uplink: &Uplink, mut connection: TcpStream) -> io::Result<()> {
    let host = connection.peer_addr()?.ip();
    let socket = UdpSocket::bind((connection.local_addr()?.ip(), 0)).await?;
    connection.write_all(&associated(socket.local_addr()?)).await?;
    let mut flow = uplink.begin_flow();
    let (mut program, mut ignored, mut buffer) = (None::<SocketAddr>, [0; 64], vec![0; MAX_BYTES]);
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((length, from)) = received else { continue };
                if from.ip() == host && *program.get_or_insert(from) == from
                    && let Some((target, start)) = read_datagram(&buffer[..length])
                {
                    flow.send((target, buffer[start..length].to_vec())).await;
                }
            }
            datagram = flow.recv() => {
                if let (Some((source, payload)), Some(program)) = (datagram, program) {
                    // The program may be gone.
                    let _ = socket.send_to(&datagram_from(&source, &payload), program).await;
                }
            }
            // The end of the connection, also by a reset, ends the association.
            read = connection.read(&mut ignored) => if !read.is_ok_and(|bytes| bytes > 0) { return Ok(()) },
        }
    }
}
