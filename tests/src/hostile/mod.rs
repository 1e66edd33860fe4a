//! A hostile peer that speaks raw SCTP.
//!
//! The hostile peer builds any packet, valid or not, with any tag, TSN and cookie ([`craft`]). It completes a handshake as a real
//! peer does, as the connecting or the accepting side, and misbehaves afterwards ([`Peer`]). It counts its packets and the answers
//! to them, and can repeat earlier packets. Its target is an [`Endpoint`](anabranch_core::Endpoint) in virtual time ([`Target`]) or
//! a host behind a UDP socket ([`udp::Socket`]). [`random::Attack`] generates messages from a seed.
//!
//! ```
//! use anabranch_core::time::Span;
//! use anabranch_tests::hostile::{Peer, Target, craft};
//! use anabranch_wire::{SackRepr, Tsn};
//!
//! let mut peer = Peer::new(Target::listening("cmt"), 1);
//! peer.call().expect("it accepts");
//!
//! // The COOKIE ECHO again: it is acknowledged and opens no second association.
//! let echo = peer.sent_of(craft::COOKIE_ECHO).next().expect("it was sent").clone();
//! peer.send(&echo);
//! assert_eq!(peer.wire.associations(), 1);
//!
//! // An acknowledgement of what was never sent ends it.
//! let sack = SackRepr { cum_tsn: Tsn::new(peer.seen_tsn.get().wrapping_add(1)), a_rwnd: 0, flags: 0 };
//! let bytes = peer.packet(|writer| writer.sack(&sack, [], []));
//! peer.send(&bytes);
//! peer.pass(Span::from_secs(1));
//! assert_eq!(peer.drawn_of(craft::ABORT).count(), 1);
//! assert!(peer.drawn.bytes <= 3 * peer.sent.bytes);
//! ```

pub mod craft;
mod peer;
pub mod random;
mod target;
pub mod udp;

pub use peer::{HandshakeError, Peer, Tally, Wire};
pub use target::Target;
