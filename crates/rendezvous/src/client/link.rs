//! Socket of a client, and the server as it sees it.

use std::net::{IpAddr, SocketAddr};

use anabranch_identity::KeyPair;

use super::{MAX_SOCKETS, Outgoing, reaches};
use crate::message::{Cookie, Message, Nonce, Request};
use crate::secret::Secret;

/// Socket with the server that it reaches.
#[derive(Debug)]
pub(super) struct Link<S> {
    pub(super) socket: S,
    pub(super) local: IpAddr,
    pub(super) server: SocketAddr,
    nonce: Nonce,
    /// Set while a question for a cookie is unanswered.
    is_asking: bool,
    /// Latest cookie of the server.
    cookie: Option<Cookie>,
    /// Address of the socket as the server sees it.
    pub(super) mapped: Option<SocketAddr>,
}

impl<S: Copy> Link<S> {
    /// Returns the link of a socket. Returns `None` if no address of the server can be reached from it.
    pub(super) fn new(
        (socket, local): (S, IpAddr),
        servers: &[SocketAddr],
        secret: &mut Secret,
    ) -> Option<Self> {
        let server = servers.iter().find(|server| reaches(local, **server))?;
        let nonce = secret.draw();
        Some(Link { socket, local, server: *server, nonce, is_asking: false, cookie: None, mapped: None })
    }

    /// Returns the links of the first sockets that can reach the server.
    pub(super) fn of_all(
        sockets: impl IntoIterator<Item = (S, IpAddr)>,
        servers: &[SocketAddr],
        secret: &mut Secret,
    ) -> Vec<Self> {
        let links = sockets.into_iter().filter_map(|socket| Link::new(socket, servers, secret));
        links.take(MAX_SOCKETS).collect()
    }

    pub(super) fn has_cookie(&self) -> bool {
        self.cookie.is_some()
    }

    fn to_server(&self, message: &Message) -> Outgoing<S> {
        Outgoing { socket: self.socket, to: self.server, bytes: message.to_bytes() }
    }

    /// Returns the question for a cookie.
    pub(super) fn hello(&mut self) -> Outgoing<S> {
        self.is_asking = true;
        self.to_server(&Message::Hello { nonce: self.nonce })
    }

    /// Takes a cookie. Returns `false` if it answers no question of this socket. Each question has one answer, since an answer causes
    /// a longer request.
    pub(super) fn challenged(&mut self, nonce: Nonce, cookie: Cookie, mapped: SocketAddr) -> bool {
        let is_answer = self.is_asking && nonce == self.nonce;
        if is_answer {
            self.is_asking = false;
            (self.cookie, self.mapped) = (Some(cookie), Some(mapped));
        }
        is_answer
    }

    /// Returns a signed request. Returns `None` without a cookie.
    pub(super) fn request(&self, request: Request, key: &KeyPair) -> Option<Outgoing<S>> {
        Some(self.to_server(&Message::Signed(request.sign(self.cookie?, key))))
    }
}
