//! Sockets of clients, and ports of relays.

use std::net::SocketAddr;

use anabranch_core::time::{Span, Time};

use super::Reply;
use crate::message::{MAX_ADDRESSES, Message};

/// UDP port of a relay beside a main socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortNumber {
    /// Number of the main socket.
    pub via: usize,
    /// UDP port.
    pub port: u16,
}

/// Socket of a client, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientSocket {
    /// Number of the main socket that it sends to.
    pub(super) via: usize,
    /// Mapped address, which has returned a cookie.
    pub(super) address: SocketAddr,
    /// Time of its latest request.
    pub(super) seen: Time,
}

impl ClientSocket {
    pub(super) fn reply(&self, message: &Message) -> Reply {
        Reply { via: self.via, to: self.address, bytes: message.to_bytes() }
    }
}

/// Sockets of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets(Vec<ClientSocket>);

impl Sockets {
    pub(super) fn of(socket: ClientSocket) -> Self {
        Sockets(vec![socket])
    }

    /// Adds a socket, or updates its time. It replaces the oldest one of a full set: a NAT may have changed its mapped address.
    pub(super) fn enter(&mut self, socket: ClientSocket) {
        let of = |known: &&mut ClientSocket| known.via == socket.via && known.address == socket.address;
        if let Some(known) = self.0.iter_mut().find(of) {
            known.seen = socket.seen;
            return;
        }
        if self.0.len() >= MAX_ADDRESSES {
            let oldest = (0..self.0.len()).min_by_key(|at| self.0[*at].seen);
            self.0.remove(oldest.unwrap_or_default());
        }
        self.0.push(socket);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ClientSocket> {
        self.0.iter()
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|socket| socket.address).collect()
    }

    /// Returns the socket with this number, counted in turn.
    pub(super) fn nth(&self, number: usize) -> Option<ClientSocket> {
        self.0.get(number.checked_rem(self.0.len())?).copied()
    }

    /// Returns a socket that sends to the same main socket, in turn.
    pub(super) fn beside(&self, via: usize, number: usize) -> Option<ClientSocket> {
        let beside: Vec<_> = self.0.iter().filter(|socket| socket.via == via).copied().collect();
        Sockets(beside).nth(number)
    }

    /// Removes sockets that were not seen for this time. Returns `true` if some are left.
    pub(super) fn expire(&mut self, now: Time, lifetime: Span) -> bool {
        self.0.retain(|socket| now.since(socket.seen) < lifetime);
        !self.is_empty()
    }
}
