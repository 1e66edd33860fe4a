//! The chunks of a packet that belongs to this association, in order.

use std::net::IpAddr;

use anabranch_wire::{Chunk, RawChunk};

use crate::association::acknowledgement::Acknowledgement;
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

/// Whether to go on with a packet's next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continue {
    Yes,
    No,
}

impl Association {
    /// Takes in the chunks of a packet whose verification tag has been checked.
    pub(crate) fn handle_chunks<'a>(
        &mut self,
        origin: Origin,
        chunks: impl Iterator<Item = Result<RawChunk<'a>, anabranch_wire::ParseError>>,
        discards: &mut Discards,
    ) {
        let Some(source) = self.path_of_origin(origin) else {
            discards.count(Discard::OutOfTheBlue);
            return;
        };
        self.heard_at = self.now;
        let mut packet = PacketData::default();
        for chunk in chunks {
            let Ok(raw) = chunk else {
                discards.count(Discard::Malformed);
                break;
            };
            match self.handle_chunk(source, &raw, &mut packet) {
                Ok(Continue::Yes) => {}
                Ok(Continue::No) => break,
                Err(reason) => discards.count(reason),
            }
            if self.is_closed() {
                break;
            }
        }
        if !self.is_closed() {
            self.packet_done(source, packet);
        }
    }

    fn handle_chunk(
        &mut self,
        source: PathId,
        raw: &RawChunk<'_>,
        packet: &mut PacketData,
    ) -> Result<Continue, Discard> {
        let chunk = raw.decode().map_err(|_| Discard::Malformed)?;
        match chunk {
            Chunk::Data(data) => self.handle_data(&data, packet)?,
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
            Chunk::Asconf(_) | Chunk::AsconfAck(_) | Chunk::Unknown(_) => {
                return Ok(self.handle_unknown(source, raw));
            }
            Chunk::Pad(_) | Chunk::Ecne { .. } | Chunk::Cwr { .. } => {}
            _ => return Err(Discard::Unexpected),
        }
        Ok(Continue::Yes)
    }

    fn takes_sacks(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    fn answer_heartbeat(&mut self, source: PathId, info: &[u8]) {
        let mut copy = std::mem::take(&mut self.spare_info);
        copy.extend_from_slice(info);
        self.queue_control(Control::HeartbeatAck { path: source, info: copy });
    }

    /// A stale cookie starts the handshake anew (RFC 9260 section 5.2.6); other errors change nothing.
    fn handle_error(&mut self, error: &anabranch_wire::ErrorView<'_>) {
        let stale = error.causes().flatten().any(|c| matches!(c, anabranch_wire::Cause::StaleCookie { .. }));
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
