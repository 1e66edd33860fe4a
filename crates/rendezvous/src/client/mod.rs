//! The two sides that meet.

mod caller;
mod link;
mod listener;
mod membership;

use std::net::{IpAddr, SocketAddr};

pub use self::caller::{Caller, CallerEvent, Failure, MeetingPath, Route};
pub use self::listener::{Listener, ListenerEvent};
use crate::message::MAX_ADDRESSES;

/// Maximum number of sockets of one side. Further ones are not used.
pub const MAX_SOCKETS: usize = MAX_ADDRESSES;

/// Datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing<S> {
    /// Socket to send from.
    pub socket: S,
    /// Address of the server, a relay or the other side.
    pub to: SocketAddr,
    /// UDP payload.
    pub bytes: Vec<u8>,
}

/// Returns `true` if a socket at the local address may reach the remote one. Addresses that a server reports must not lead to
/// programs of this machine.
fn reaches(local: IpAddr, remote: SocketAddr) -> bool {
    local.is_ipv4() == remote.is_ipv4() && local.is_loopback() == remote.ip().is_loopback()
}
