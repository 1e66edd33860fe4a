//! Membership in a relay.

use std::net::SocketAddr;

use anabranch_core::time::{Span, Time};

use super::Outgoing;
use crate::message::{CallId, Message, Nonce, Token};

/// Time between two joins, which follow a change of the mapped address and keep the NAT's mapping.
const REFRESH_EVERY: Span = Span::from_secs(15);

/// Time between two unanswered attempts. Once the relay was joined, it doubles up to [`REFRESH_EVERY`].
const RETRY_EVERY: Span = Span::from_millis(250);

/// Number of unanswered attempts after which the relay counts as closed: 10 s before it was joined, and 9 minutes afterwards.
const MAX_UNANSWERED: u32 = 40;

/// Number of unanswered attempts after which another relay may take the place.
const SILENT: u32 = 4;

/// Membership of a socket in a relay.
#[derive(Debug)]
pub(super) struct Membership<S> {
    pub(super) socket: S,
    /// Address of the relay's port.
    pub(super) relay: SocketAddr,
    pub(super) call: CallId,
    /// Number of the caller's socket.
    pub(super) pair: u8,
    token: Token,
    nonce: Nonce,
    /// Set while a question for a cookie is unanswered.
    is_asking: bool,
    pub(super) has_joined: bool,
    unanswered: u32,
    next: Time,
}

impl<S: Copy + PartialEq> Membership<S> {
    pub(super) fn new(
        now: Time,
        (socket, relay): (S, SocketAddr),
        (call, pair): (CallId, u8),
        token: Token,
        nonce: Nonce,
    ) -> Self {
        let (is_asking, has_joined, unanswered) = (false, false, 0);
        Membership { socket, relay, call, pair, token, nonce, is_asking, has_joined, unanswered, next: now }
    }

    /// Returns `true` for the relay that an offer describes.
    pub(super) fn is_of(&self, relay: SocketAddr, token: &Token) -> bool {
        self.relay == relay && self.token == *token
    }

    /// Asks for a cookie if it is time, with which the relay is joined.
    pub(super) fn poll(&mut self, now: Time) -> Option<Outgoing<S>> {
        if now < self.next || self.is_over() {
            return None;
        }
        let doublings = if self.has_joined { self.unanswered.min(6) } else { 0 };
        self.next = now + RETRY_EVERY.times(1 << doublings).min(REFRESH_EVERY);
        self.unanswered += 1;
        self.is_asking = true;
        Some(self.to_relay(&Message::Hello { nonce: self.nonce }))
    }

    /// Handles a message of the relay. Returns the next request.
    pub(super) fn handle(&mut self, now: Time, message: &Message) -> Option<Outgoing<S>> {
        match *message {
            Message::Challenge { nonce, cookie, .. } if self.is_asking && nonce == self.nonce => {
                self.is_asking = false;
                Some(self.to_relay(&Message::Join { token: self.token, cookie }))
            }
            Message::Joined { token } if token == self.token => {
                self.has_joined = true;
                self.unanswered = 0;
                self.next = now + REFRESH_EVERY;
                None
            }
            _ => None,
        }
    }

    fn to_relay(&self, message: &Message) -> Outgoing<S> {
        Outgoing { socket: self.socket, to: self.relay, bytes: message.to_bytes() }
    }

    /// Returns `true` once the relay has not answered for long.
    pub(super) fn is_over(&self) -> bool {
        self.unanswered >= MAX_UNANSWERED
    }

    /// Returns `true` while several attempts are unanswered.
    pub(super) fn is_silent(&self) -> bool {
        self.unanswered >= SILENT
    }

    /// Returns the number of unanswered attempts.
    pub(super) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Returns the time of the next attempt.
    pub(super) fn next(&self) -> Time {
        self.next
    }
}
