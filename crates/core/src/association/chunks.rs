//! The chunks of a packet that belongs to this association, in order.

use std::net::IpAddr;

use anabranch_wire::{Chunk, ChunkType, Chunks, RawChunk};

use crate::association::acknowledgement::Acknowledgement;
use crate::association::asconf_in::Proof;
use crate::association::control::Control;
use crate::association::inbound::PacketData;
use crate::association::{Association, State};
use crate::error::AbortReason;
use crate::path::PathId;
use crate::stats::{Discard, Discards};

/// Where a packet came from and went to, and how long it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) udp_port: Option<u16>,
    /// The SCTP packet, which is what UDP carries.
    pub(crate) bytes: usize,
}

/// A packet whose chunks are being looked at.
#[derive(Clone, Copy, Debug)]
struct Packet<'a> {
    origin: Origin,
    source: PathId,
    /// From the chunk at hand to the end: what it covers if it is an AUTH.
    covered: &'a [u8],
    proof: Proof,
    data: PacketData,
}

/// Whether to go on with a packet's next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continue {
    Yes,
    No,
}

impl Association {
    /// Takes in the chunks of a packet whose verification tag has been checked.
    pub(crate) fn handle_chunks(&mut self, origin: Origin, mut chunks: Chunks<'_>, discards: &mut Discards) {
        let Some(source) = self.path_of_origin(origin) else {
            if !self.handle_asconf_from_stranger(origin, chunks, discards) {
                discards.count(Discard::OutOfTheBlue);
            }
            return;
        };
        self.heard_at = self.now;
        let mut packet = Packet {
            origin,
            source,
            covered: chunks.rest(),
            proof: Proof::None,
            data: PacketData::default(),
        };
        while let Some(chunk) = chunks.next() {
            let Ok(raw) = chunk else {
                discards.count(Discard::Malformed);
                break;
            };
            let handled = self.handle_chunk(&raw, &mut packet);
            packet.covered = chunks.rest();
            match handled {
                Ok(Continue::Yes) => {}
                Ok(Continue::No) => break,
                Err(reason) => {
                    discards.count(reason);
                    if raw.kind() == ChunkType::AUTH {
                        // RFC 4895 section 6.3: all that stands behind it goes with it.
                        break;
                    }
                }
            }
            if self.is_closed() {
                break;
            }
        }
        self.answer_asconfs();
        if !self.is_closed() {
            self.packet_done(source, packet.data);
        }
    }

    fn handle_chunk(&mut self, raw: &RawChunk<'_>, packet: &mut Packet<'_>) -> Result<Continue, Discard> {
        let source = packet.source;
        let chunk = raw.decode().map_err(|_| Discard::Malformed)?;
        if self.awaits_init_ack() && !matches!(chunk, Chunk::InitAck(_) | Chunk::Abort(_)) {
            // The peer has not named its tag yet, so that no answer could carry it.
            return Err(Discard::Unexpected);
        }
        match chunk {
            Chunk::Data(data) => self.handle_data(&data, &mut packet.data)?,
            Chunk::Sack(sack) if self.takes_sacks() => {
                self.handle_sack(source, &Acknowledgement::Sack(sack))?;
            }
            Chunk::NrSack(sack) if self.takes_sacks() && self.uses_nr_sack => {
                self.handle_sack(source, &Acknowledgement::NrSack(sack))?;
            }
            Chunk::Heartbeat(heartbeat) => self.answer_heartbeat(source, heartbeat.info()),
            Chunk::HeartbeatAck(heartbeat) => self.handle_heartbeat_ack(heartbeat.info())?,
            Chunk::InitAck(init) if self.awaits_init_ack() => self.handle_init_ack(source, &init),
            Chunk::CookieAck if self.awaits_cookie_ack() => self.handle_cookie_ack(source),
            Chunk::Abort(_) => self.handle_peer_abort(),
            Chunk::Shutdown { cum_tsn } => self.handle_shutdown(source, cum_tsn),
            Chunk::ShutdownAck if self.awaits_shutdown_ack() => self.handle_shutdown_ack(source),
            Chunk::ShutdownComplete { .. } if self.awaits_shutdown_complete() => {
                self.handle_shutdown_complete();
            }
            Chunk::ForwardTsn(forward) => self.handle_forward_tsn(&forward)?,
            Chunk::Error(error) => self.handle_error(&error),
            Chunk::Auth(auth) => packet.proof = self.check_auth(&auth, packet.covered)?,
            Chunk::Asconf(_) | Chunk::AsconfAck(_) if self.asconf.is_some() => {
                self.handle_reconfiguration(&chunk, packet)?;
            }
            Chunk::Asconf(_) | Chunk::AsconfAck(_) | Chunk::Unknown(_) => {
                return Ok(self.handle_unknown(source, raw));
            }
            Chunk::Pad(_) | Chunk::Ecne { .. } | Chunk::Cwr { .. } => {}
            _ => return Err(Discard::Unexpected),
        }
        Ok(Continue::Yes)
    }

    /// ASCONF and ASCONF-ACK are silently discarded unless they are authenticated (RFC 5061 sections 4.1.1 and 4.1.2).
    fn handle_reconfiguration(&mut self, chunk: &Chunk<'_>, packet: &Packet<'_>) -> Result<(), Discard> {
        if packet.proof != Proof::Authenticated {
            return Err(Discard::Unauthenticated);
        }
        match chunk {
            Chunk::Asconf(asconf) if self.takes_sacks() => self.handle_asconf(packet.origin, asconf),
            Chunk::AsconfAck(ack) if self.takes_sacks() => self.handle_asconf_ack(ack),
            _ => Err(Discard::Unexpected),
        }
    }

    pub(crate) fn takes_sacks(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    fn answer_heartbeat(&mut self, source: PathId, info: &[u8]) {
        if self.is_announcing(source) {
            // RFC 5061 section 5.3 F1: the peer will ask again, and by then the address is added.
            return;
        }
        let mut copy = std::mem::take(&mut self.spare_info);
        copy.extend_from_slice(info);
        self.queue_control(Control::HeartbeatAck { path: source, info: copy });
    }

    /// A stale cookie starts the handshake anew (RFC 9260 section 5.2.6); other errors change nothing.
    fn handle_error(&mut self, error: &anabranch_wire::ErrorView<'_>) {
        let stale = error.causes().flatten().any(|c| matches!(c, anabranch_wire::Cause::StaleCookie { .. }));
        let refuses_asconf = |c| matches!(c, anabranch_wire::Cause::UnrecognizedChunk([kind, ..]) if *kind == ChunkType::ASCONF.0);
        if error.causes().flatten().any(refuses_asconf) {
            self.asconf_is_unknown_to_peer();
        }
        if stale && matches!(self.state, State::CookieEchoed { .. }) {
            self.state = State::CookieWait { tries: 0 };
            // A peer for whom every cookie is stale must not keep us going for ever.
            self.stale_cookies += 1;
            if self.stale_cookies > self.profile.max_init_retransmits {
                self.abort_with(AbortReason::NoAnswer);
            } else {
                self.call();
            }
        }
    }

    /// RFC 9260 section 3.2: the two high bits of the type say what to do with a chunk nobody knows.
    fn handle_unknown(&mut self, source: PathId, chunk: &RawChunk<'_>) -> Continue {
        let action = chunk.kind().unknown_action();
        if action.reports() {
            let room = self.paths[source.index()].packet_bytes.saturating_sub(64);
            let quoted = &chunk.bytes()[..chunk.bytes().len().min(room)];
            self.queue_control(Control::Unrecognized { path: source, chunk: quoted.to_vec() });
        }
        if action.stops() { Continue::No } else { Continue::Yes }
    }
}
