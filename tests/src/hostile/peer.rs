//! A peer that completes a handshake and can then send any packet.

use anabranch_core::time::Span;
use anabranch_wire::{Chunk, InitRepr, NoSpace, PacketView, PacketWriter, Param, Tsn};
use thiserror::Error;

use super::craft::{self, PORT, packet_between};
use crate::dice::Dice;

/// Transport between the peer and the attacked endpoint.
pub trait Wire {
    /// Sends a packet to the endpoint.
    fn send(&mut self, bytes: &[u8]);
    /// Advances the time, and returns the packets that have arrived until then.
    fn receive(&mut self, wait: Span, packets: &mut Vec<Vec<u8>>);
    /// Returns the maximum time of an answer.
    fn timeout(&self) -> Span;
}

/// Number of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// SCTP bytes, without IP and UDP.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// Reason for which there is no association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The chunk of this type did not arrive.
    #[error("no answer with a chunk of type {0}")]
    NoAnswer(u8),
    /// The endpoint answered with an ABORT.
    #[error("refused with an ABORT")]
    Refused,
}

/// A peer with the knowledge of a real one.
#[derive(Debug)]
pub struct Peer<W> {
    /// Transport of its packets.
    pub wire: W,
    /// SCTP ports of the peer and of the endpoint.
    pub ports: [u16; 2],
    /// Tag of packets to the peer.
    pub own_tag: u32,
    /// Tag of packets to the endpoint; zero before the handshake.
    pub tag: u32,
    /// Next TSN that a real peer would send.
    pub next_tsn: Tsn,
    /// Highest TSN that the endpoint has sent, or the one before its first.
    pub seen_tsn: Tsn,
    /// Additional parameters of its INITs.
    pub params: Vec<Param<'static>>,
    /// Packets that the peer sent.
    pub sent: Tally,
    /// Packets that the endpoint answered.
    pub drawn: Tally,
    /// Packets of both, while they are stored.
    log: Option<Log>,
    /// Packets that arrived besides those for which a handshake waited.
    aside: Vec<Vec<u8>>,
    dice: Dice,
}

#[derive(Debug, Default)]
struct Log {
    sent: Vec<Vec<u8>>,
    drawn: Vec<Vec<u8>>,
}

impl<W: Wire> Peer<W> {
    /// Returns a peer with tags and TSNs from a seed. The peer stores every packet.
    pub fn new(wire: W, seed: u64) -> Self {
        let mut peer = Peer {
            wire,
            ports: [PORT, PORT],
            own_tag: 0,
            tag: 0,
            next_tsn: Tsn::new(0),
            seen_tsn: Tsn::new(0),
            params: vec![Param::ForwardTsnSupported],
            sent: Tally::default(),
            drawn: Tally::default(),
            log: Some(Log::default()),
            aside: Vec::new(),
            dice: Dice::new(seed),
        };
        peer.renew();
        peer
    }

    /// Stores no packets, only their number and length, for long attacks.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.log = None;
        self
    }

    /// Draws new numbers, as a peer does after a restart.
    pub fn renew(&mut self) {
        self.aside.clear();
        self.own_tag = self.dice.roll() as u32 | 1;
        self.next_tsn = Tsn::new(self.dice.roll() as u32);
        self.tag = 0;
    }

    /// Returns a packet to the endpoint with the right ports and tag.
    pub fn packet(&self, chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
        packet_between(self.ports, self.tag, chunks)
    }

    /// Sends any packet.
    pub fn send(&mut self, bytes: &[u8]) {
        self.sent.add(bytes);
        if let Some(log) = &mut self.log {
            log.sent.push(bytes.to_vec());
        }
        self.wire.send(bytes);
    }

    /// Advances the time. Returns and counts the packets that arrived meanwhile.
    pub fn pass(&mut self, wait: Span) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        self.wire.receive(wait, &mut packets);
        for bytes in &packets {
            self.drawn.add(bytes);
            self.notice(bytes);
        }
        if let Some(log) = &mut self.log {
            log.drawn.extend(packets.iter().cloned());
        }
        packets
    }

    /// Sends a packet and returns the immediate answers.
    pub fn ask(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.send(bytes);
        self.pass(Span::ZERO)
    }

    /// Returns the sent packets that begin with a chunk of this type, if they are stored.
    pub fn sent_of(&self, kind: u8) -> impl Iterator<Item = &Vec<u8>> {
        of_kind(self.log.as_ref().map_or(&[], |log| &log.sent), kind)
    }

    /// Returns the answers that begin with a chunk of this type, if they are stored.
    pub fn drawn_of(&self, kind: u8) -> impl Iterator<Item = &Vec<u8>> {
        of_kind(self.log.as_ref().map_or(&[], |log| &log.drawn), kind)
    }

    /// Records the TSNs that the endpoint has sent.
    fn notice(&mut self, bytes: &[u8]) {
        let Ok(view) = PacketView::parse(bytes) else { return };
        for chunk in view.chunks().flatten() {
            if let Ok(Chunk::Data(data)) = chunk.decode()
                && data.tsn().get().wrapping_sub(self.seen_tsn.get()) < 1 << 31
            {
                self.seen_tsn = data.tsn();
            }
        }
    }

    /// Waits for a packet that begins with a chunk of this type.
    fn await_kind(&mut self, kind: u8) -> Result<Vec<u8>, HandshakeError> {
        let timeout = self.wire.timeout();
        let steps = 100;
        for step in 0..=steps {
            let mut came = std::mem::take(&mut self.aside);
            came.extend(self.pass(if step == 0 { Span::ZERO } else { timeout.over(steps) }));
            let first = |bytes: &Vec<u8>| craft::kinds(bytes).first().copied();
            if let Some(at) = came.iter().position(|bytes| first(bytes) == Some(kind)) {
                let wanted = came.remove(at);
                self.aside = came;
                return Ok(wanted);
            }
            if came.iter().any(|bytes| first(bytes) == Some(craft::ABORT)) {
                return Err(HandshakeError::Refused);
            }
            self.aside = came;
        }
        self.aside.clear();
        Err(HandshakeError::NoAnswer(kind))
    }

    /// Returns the fields of its INIT or INIT ACK.
    pub fn init_repr(&self) -> InitRepr {
        InitRepr {
            initiate_tag: self.own_tag,
            a_rwnd: 1 << 20,
            outbound_streams: 64,
            inbound_streams: 64,
            initial_tsn: self.next_tsn,
        }
    }

    /// Sends an INIT and returns the cookie of the answer.
    ///
    /// # Errors
    /// Returns [`HandshakeError`] without an answer.
    pub fn fetch_cookie(&mut self) -> Result<Vec<u8>, HandshakeError> {
        let (repr, params) = (self.init_repr(), self.params.clone());
        let init = packet_between(self.ports, 0, |w| w.init(&repr, params));
        self.send(&init);
        let answer = self.await_kind(craft::INIT_ACK)?;
        let cookie = self.learn(&answer);
        cookie.ok_or(HandshakeError::NoAnswer(craft::INIT_ACK))
    }

    /// Reads the endpoint's tag and TSN from its INIT or INIT ACK. Returns the cookie if there is one.
    fn learn(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let view = PacketView::parse(bytes).ok()?;
        let first = view.chunks().next()?.ok()?;
        if let Chunk::Init(init) | Chunk::InitAck(init) = first.decode().ok()? {
            self.tag = init.initiate_tag();
            self.seen_tsn = Tsn::new(init.initial_tsn().get().wrapping_sub(1));
        }
        craft::cookie_of(bytes)
    }

    /// Opens an association as a real peer does, and answers the first HEARTBEAT.
    ///
    /// # Errors
    /// Returns [`HandshakeError`] if the endpoint does not complete the handshake.
    pub fn call(&mut self) -> Result<(), HandshakeError> {
        let cookie = self.fetch_cookie()?;
        let echo = self.packet(|w| w.cookie_echo(&cookie));
        self.send(&echo);
        // A HEARTBEAT accompanies it if the address is not confirmed (RFC 9260 section 5.4).
        let ack = self.await_kind(craft::COOKIE_ACK)?;
        self.answer_heartbeat(&ack);
        self.answer_heartbeats();
        Ok(())
    }

    /// Accepts an association of the endpoint, as a real peer does.
    ///
    /// # Errors
    /// Returns [`HandshakeError`] if the endpoint does not connect.
    pub fn answer(&mut self) -> Result<(), HandshakeError> {
        self.answer_init()?;
        self.await_kind(craft::COOKIE_ECHO)?;
        let ack = self.packet(|w| w.cookie_ack());
        self.send(&ack);
        self.answer_heartbeats();
        Ok(())
    }

    /// Answers an INIT of the endpoint only with an INIT ACK.
    ///
    /// # Errors
    /// Returns [`HandshakeError`] if the endpoint does not connect.
    pub fn answer_init(&mut self) -> Result<(), HandshakeError> {
        let init = self.await_kind(craft::INIT)?;
        self.learn(&init);
        let (repr, params) = (self.init_repr(), self.params.clone());
        let cookie = [Param::StateCookie(b"a hostile peer's cookie")];
        let ack = self.packet(|w| w.init_ack(&repr, cookie.into_iter().chain(params)));
        self.send(&ack);
        Ok(())
    }

    /// Answers the HEARTBEATs that have arrived and were not processed, as a real peer does.
    pub fn answer_heartbeats(&mut self) {
        let mut came = std::mem::take(&mut self.aside);
        came.extend(self.pass(Span::from_millis(1)));
        for bytes in came {
            self.answer_heartbeat(&bytes);
        }
    }

    /// Answers the HEARTBEATs of a packet, as a real peer does.
    pub fn answer_heartbeat(&mut self, bytes: &[u8]) {
        let Ok(view) = PacketView::parse(bytes) else { return };
        for chunk in view.chunks().flatten() {
            if let Ok(Chunk::Heartbeat(heartbeat)) = chunk.decode() {
                let answer = self.packet(|w| w.heartbeat_ack(heartbeat.info()));
                self.send(&answer);
            }
        }
    }
}

fn of_kind(packets: &[Vec<u8>], kind: u8) -> impl Iterator<Item = &Vec<u8>> {
    packets.iter().filter(move |bytes| bytes.get(12) == Some(&kind))
}
