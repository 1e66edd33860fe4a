//! Meeting of two endpoints that cannot accept packets of strangers, because NATs or firewalls are in between.
//!
//! A small server, the [`Server`], knows the address at which each socket of a listening side appears to the Internet. A calling
//! side asks it for these addresses, and the server passes the caller's own ones to the listener. Both sides then send probes to each
//! other from the very sockets that carry the association, which opens their NATs. Pairs of addresses that answer probes are paths.
//! Where no pair answers, the server relays packets that it cannot read, within limits.
//!
//! Only the caller sends an INIT afterwards. A simultaneous open (RFC 9260 section 5.2.1) would open the NATs too, but then the roles
//! of client and server would depend on a random tie breaker, and a listener would have to connect to every caller.
//!
//! Nothing here has IO, a clock or randomness of its own: [`Server`], [`Listener`] and [`Caller`] are driven with datagrams, times
//! and a seed. Identities are the Ed25519 keys of `anabranch-identity`; each request is signed.

mod bucket;
mod client;
mod message;
mod secret;
mod server;

pub use client::{
    Caller, CallerEvent, Failure, Listener, ListenerEvent, MAX_SOCKETS, MeetingPath, Outgoing, Route,
};
#[cfg(feature = "fuzzing")]
pub use message::fuzz as fuzz_message;
pub use message::{
    CallId, Cookie, MAX_ADDRESSES, Message, ParseError, REQUEST_LEN, RawKey, Refusal, Request, Signature,
    Signed, Token, is_rendezvous,
};
pub use server::{Limits, PortNumber, Ports, Relayed, Reply, Server, Totals};

/// Default UDP port of a rendezvous server.
pub const DEFAULT_PORT: u16 = 9898;
