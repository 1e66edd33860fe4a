//! Connection of a program that uses the proxy.

use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::associate::associate;
use super::socks::Request;
use super::{Parsed, http, socks};
use crate::failure::Failure;
use crate::splice::splice;
use crate::uplink::Uplink;

/// Time for a program to send its request.
const REQUESTED_WITHIN: Duration = Duration::from_secs(30);

/// Time for a program to close a connection after a refusal.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Protocol of a request, with which it is answered.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Socks,
    Http,
}

impl Protocol {
    fn reply(self, failure: Option<Failure>) -> Vec<u8> {
        match self {
            Protocol::Socks => socks::reply(failure),
            Protocol::Http => http::reply(failure),
        }
    }
}

/// Serves a connection to the proxy.
pub(crate) async fn serve(uplink: &Uplink, mut connection: TcpStream) {
    let mut unread = BytesMut::new();
    let requested = timeout(REQUESTED_WITHIN, read_request(&mut connection, &mut unread)).await;
    let (protocol, target) = match requested.ok().flatten() {
        Some((protocol, Request::Connect(target))) => (protocol, target),
        Some((_, Request::Associate)) => {
            if associate(uplink, connection).await.is_err() {
                uplink.failed(None, Failure::Exhausted);
            }
            return;
        }
        None => return uplink.failed(None, Failure::Malformed),
    };
    match uplink.open(&target).await {
        Ok(streams) => {
            if connection.write_all(&protocol.reply(None)).await.is_ok() {
                let counted = uplink.tally().opened(target.to_string());
                splice(connection, unread.freeze(), streams, counted).await;
            }
        }
        Err(failure) => {
            uplink.failed(Some(target), failure);
            close_after(connection, protocol.reply(Some(failure))).await;
        }
    }
}

/// Returns the request of the program. `unread` then contains the bytes behind the request. Returns `None` after a refusal, or if the
/// connection has ended.
async fn read_request(connection: &mut TcpStream, unread: &mut BytesMut) -> Option<(Protocol, Request)> {
    connection.read_buf(unread).await.ok().filter(|bytes| *bytes > 0)?;
    let protocol = if unread[0] == socks::VERSION { Protocol::Socks } else { Protocol::Http };
    let request = match protocol {
        Protocol::Socks => {
            let methods = read_by(connection, unread, |bytes| {
                socks::read_methods(bytes).map_err(|socks::Refused(reply)| reply)
            });
            let reply = methods.await?;
            connection.write_all(&reply).await.ok()?;
            read_by(connection, unread, |bytes| {
                socks::read_request(bytes).map_err(|socks::Refused(reply)| reply)
            })
            .await?
        }
        Protocol::Http => Request::Connect(
            read_by(connection, unread, |bytes| {
                http::read_request(bytes).map_err(|http::Refused(reply)| reply)
            })
            .await?,
        ),
    };
    Some((protocol, request))
}

/// Reads until a parser has a message or refuses. The parsers bound the length.
async fn read_by<T>(
    connection: &mut TcpStream,
    unread: &mut BytesMut,
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, Vec<u8>>,
) -> Option<T> {
    loop {
        match parse(unread) {
            Ok(Parsed::Done(message, length)) => {
                unread.advance(length);
                return Some(message);
            }
            Ok(Parsed::Incomplete) => {
                connection.read_buf(unread).await.ok().filter(|bytes| *bytes > 0)?;
            }
            Err(reply) => {
                let _ = connection.write_all(&reply).await;
                let _ = connection.shutdown().await;
                return None;
            }
        }
    }
}

/// Sends a refusal and closes the connection. Bytes that the program has sent are read, because the system would otherwise reset
/// the connection before the program reads the refusal.
async fn close_after(mut connection: TcpStream, reply: Vec<u8>) {
    if connection.write_all(&reply).await.is_err() || connection.shutdown().await.is_err() {
        return;
    }
    let drain = async {
        let mut rest = [0; 1024];
        while connection.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
    };
    let _ = timeout(CLOSED_WITHIN, drain).await;
}
