//! Bytes between a TCP connection and a stream, with the half-close, the reset and the back-pressure of both.

use std::io;
use std::time::Duration;

use anabranch_mapping::MESSAGE_BYTES;
use anabranch_net::{RecvStream, SendStream, StreamSendError};
use bytes::{Bytes, BytesMut};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::tally::Counted;

/// Idle time after which the system probes a connection.
const KEEPALIVE: Duration = Duration::from_secs(120);

/// One end of the connection was reset, or the association has ended.
#[derive(Debug)]
struct Broken;

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Broken
    }
}

/// Prepares a connection: small writes are sent at once, and a peer that is gone is noticed.
pub(crate) fn prepare(connection: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    // The connection works without these options.
    let _ = connection.set_nodelay(true);
    let _ = SockRef::from(connection).set_tcp_keepalive(&keepalive);
}

/// Connection that is reset when it is dropped, unless both directions have ended: the other program must not mistake a part for
/// the whole.
#[derive(Debug)]
struct ResetOnDrop {
    connection: TcpStream,
    is_complete: bool,
}

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        if !self.is_complete {
            reset(&self.connection);
        }
    }
}

/// Makes the system reset a connection when it is closed.
pub(crate) fn reset(connection: &TcpStream) {
    let _ = SockRef::from(connection).set_linger(Some(Duration::ZERO));
}

/// Forwards bytes in both directions until both have ended, those in `first` before others. If either end is reset, the other one
/// is reset too.
pub(crate) async fn splice(
    connection: TcpStream,
    first: Bytes,
    (mut sender, mut receiver): (SendStream, RecvStream),
    mut counted: Counted,
) {
    prepare(&connection);
    let mut ends = ResetOnDrop { connection, is_complete: false };
    let (mut read, mut write) = ends.connection.split();
    let both = tokio::try_join!(
        outwards(first, &mut read, &mut sender, &counted),
        inwards(&mut receiver, &mut write, &counted)
    );
    // Dropped halves of a stream that has not ended reset and stop it.
    if both.is_ok() {
        ends.is_complete = true;
        counted.complete();
    }
}

/// Forwards bytes of the connection to the peer. The half-close of the connection finishes the stream. If the peer reads no more, the
/// other direction continues: it ends with a reset, unless the peer has sent everything.
async fn outwards(
    first: Bytes,
    read: &mut ReadHalf<'_>,
    sender: &mut SendStream,
    counted: &Counted,
) -> Result<(), Broken> {
    if !first.is_empty() {
        counted.sent_to_peer(first.len());
        if send(sender, first).await? == Peer::Stopped {
            return Ok(());
        }
    }
    let mut buffer = BytesMut::new();
    loop {
        tokio::select! {
            readable = read.readable() => readable?,
            _ = sender.stopped() => return Ok(()),
        }
        // An idle connection has no buffer.
        buffer.reserve(MESSAGE_BYTES);
        match read.try_read_buf(&mut buffer) {
            Ok(0) => return sender.finish().map_err(|_| Broken),
            Ok(bytes) => {
                counted.sent_to_peer(bytes);
                if send(sender, buffer.split().freeze()).await? == Peer::Stopped {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Broken),
        }
    }
}

/// Application of the peer.
#[derive(PartialEq, Eq)]
enum Peer {
    Reads,
    Stopped,
}

async fn send(sender: &mut SendStream, bytes: Bytes) -> Result<Peer, Broken> {
    match sender.send(bytes).await {
        Ok(()) => Ok(Peer::Reads),
        Err(StreamSendError::Stopped { .. }) => Ok(Peer::Stopped),
        Err(_) => Err(Broken),
    }
}

/// Forwards bytes of the peer to the connection. The end of the stream half-closes the connection.
async fn inwards(
    receiver: &mut RecvStream,
    write: &mut WriteHalf<'_>,
    counted: &Counted,
) -> Result<(), Broken> {
    while let Some(message) = receiver.recv().await.map_err(|_| Broken)? {
        write.write_all(&message.payload).await?;
        counted.received_from_peer(message.payload.len());
    }
    write.shutdown().await?;
    Ok(())
}
