//! Processing of the chunks of a packet that belongs to this association, in order.

use anabranch_wire::{Chunk, ChunkType, Chunks, DataView, RawChunk, SkippedMid};

use crate::address::Origin;
use crate::association::Association;
use crate::association::asconf_in::Proof;
use crate::association::control::Control;
use crate::association::inbound::PacketData;
use crate::association::recovery::Acknowledgement;
use crate::association::state::{Opening, State};
use crate::error::AbortReason;
use crate::path_id::PathId;
use crate::protection::{ChunkProtection, contradiction};
use crate::recv::{DataChunk, SkippedTo};
use crate::stats::{Discard, Discards};

/// Packet whose chunks are being processed.
#[derive(Clone, Copy, Debug)]
struct Packet<'a> {
    origin: &'a Origin,
    source: PathId,
    /// Packet from the current chunk to the end, which an AUTH covers.
    covered: &'a [u8],
    cover: ChunkProtection,
    proof: Proof,
    data: PacketData,
    /// Number of RE-CONFIGs so far.
    re_configs: usize,
}

/// Maximum number of RE-CONFIGs in a packet that are processed.
const MOST_RE_CONFIGS: usize = 2;

/// Decision on the next chunk of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continue {
    Yes,
    No,
}

impl Association {
    /// Processes the chunks of a packet whose verification tag has been checked.
    pub(crate) fn handle_chunks(
        &mut self,
        origin: Origin,
        mut chunks: Chunks<'_>,
        cover: ChunkProtection,
        discards: &mut Discards,
    ) {
        match self.take_confirmation(cover, chunks.clone()) {
            Ok(rest) => chunks = rest,
            Err(reason) => return discards.count(reason),
        }
        let Some(source) = self.path_of_origin(origin) else {
            if !self.handle_asconf_from_unknown_address(origin, chunks, cover, discards) {
                discards.count(Discard::OutOfTheBlue);
            }
            return;
        };
        self.reachability.note_packet(self.now);
        let mut packet = Packet {
            origin: &origin,
            source,
            covered: chunks.rest(),
            cover,
            proof: Proof::of(cover),
            data: PacketData::default(),
            re_configs: 0,
        };
        //= docs/rfc9260.txt#section-6.10
        //# An endpoint MUST process received chunks in their order in the packet.
        while let Some(chunk) = chunks.next() {
            let Ok(raw) = chunk else {
                //= docs/rfc9260.txt#section-6.10
                //# If the receiver detects a partial chunk, it MUST drop the chunk.
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
                        // RFC 4895 section 6.3: the chunks behind an AUTH that fails are dropped too.
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

    /// Returns `true` if packets with one DATA chunk from this port may be [processed](Self::handle_data_packet) without bytes: the
    /// association is open and unprotected.
    pub(crate) fn takes_data_packets(&self, source_port: u16) -> bool {
        self.identity.peer_port == source_port
            && !self.is_closed()
            && !self.is_opening()
            && self.protection.agreed().is_none()
    }

    /// Processes a packet with one DATA chunk whose verification tag and source port have been checked.
    pub(crate) fn handle_data_packet(&mut self, origin: Origin, data: DataView<'_>, discards: &mut Discards) {
        let Some(source) = self.path_of_origin(origin) else {
            return discards.count(Discard::OutOfTheBlue);
        };
        self.reachability.note_packet(self.now);
        let mut packet = PacketData::default();
        if let Err(reason) = self.handle_data(&DataChunk::Data(data), ChunkProtection::Plain, &mut packet) {
            discards.count(reason);
        }
        if !self.is_closed() {
            self.packet_done(source, packet);
        }
    }

    // Inlining this into the loop over chunks leaves too few registers for the loop.
    #[inline(never)]
    fn handle_chunk(&mut self, raw: &RawChunk<'_>, packet: &mut Packet<'_>) -> Result<Continue, Discard> {
        let source = packet.source;
        let chunk = raw.decode().map_err(|_| Discard::Malformed)?;
        if self.awaits_init_ack() && !matches!(chunk, Chunk::InitAck(_) | Chunk::Abort(_)) {
            // The peer has not sent its tag yet, so no answer could carry it.
            return Err(Discard::Unexpected);
        }
        if packet.cover == ChunkProtection::Plain && !self.admits_plain(&chunk) {
            self.note_plain(&chunk);
            return Err(Discard::Unprotected);
        }
        match chunk {
            Chunk::Data(data) => self.handle_data(&DataChunk::Data(data), packet.cover, &mut packet.data)?,
            Chunk::IData(data) if self.config.interleaving => {
                self.handle_data(&DataChunk::IData(data), packet.cover, &mut packet.data)?;
            }
            Chunk::Sack(sack) if self.state.takes_sacks() => {
                self.take_sack(&Acknowledgement::from(sack), packet)?;
            }
            Chunk::NrSack(sack) if self.state.takes_sacks() && self.ack.uses_nr_sack() => {
                self.take_sack(&Acknowledgement::from(sack), packet)?;
            }
            //= docs/rfc9260.txt#section-3.3.6
            //# An endpoint MUST send this chunk to its peer endpoint as a response to a HEARTBEAT chunk (see Section
            //# 8.3).
            //= docs/rfc9260.txt#section-8.3
            //# A receiver of a HEARTBEAT chunk MUST respond to a HEARTBEAT chunk with a HEARTBEAT ACK chunk after
            //# entering the COOKIE-ECHOED state (sender of the INIT chunk) or the ESTABLISHED state (receiver of the INIT
            //# chunk), up until reaching the SHUTDOWN-SENT state (sender of the SHUTDOWN chunk) or the SHUTDOWN-ACK-SENT
            //# state (receiver of the SHUTDOWN chunk).
            Chunk::Heartbeat(heartbeat) => {
                // A packet of no path is answered on another one, to which its cost does not belong.
                if self.paths.find(packet.origin.address) == Some(source) {
                    self.take_peer_cost(source, heartbeat.path_cost(), packet.cover);
                }
                self.answer_heartbeat(source, heartbeat.info());
            }
            Chunk::HeartbeatAck(heartbeat) => self.handle_heartbeat_ack(heartbeat.info())?,
            //= docs/rfc9260.txt#section-3.3.3
            //# If such an INIT ACK chunk is received in any state other than CLOSED or COOKIE-WAIT, it SHOULD be
            //# discarded silently (see Section 5.2.3).
            //= docs/rfc9260.txt#section-5.2.3
            //# If an INIT ACK chunk is received by an endpoint in any state other than the COOKIE-WAIT or CLOSED state,
            //# the endpoint SHOULD discard the INIT ACK chunk.
            Chunk::InitAck(init) if self.awaits_init_ack() => self.handle_init_ack(source, &init),
            //= docs/rfc9260.txt#section-5.2.5
            //# At any state other than COOKIE-ECHOED, an endpoint SHOULD silently discard a received COOKIE ACK chunk.
            Chunk::CookieAck if self.awaits_cookie_ack() => self.handle_cookie_ack(source),
            Chunk::Abort(abort) => self.handle_peer_abort(&abort),
            Chunk::Shutdown { cum_tsn } => self.handle_shutdown(source, cum_tsn),
            Chunk::ShutdownAck if self.awaits_shutdown_ack() => self.handle_shutdown_ack(source),
            //= docs/rfc9260.txt#section-8.5.1
            //# An endpoint MUST ignore the SHUTDOWN COMPLETE chunk if it is not in the SHUTDOWN-ACK-SENT state.
            Chunk::ShutdownComplete { .. } if self.awaits_shutdown_complete() => {
                self.handle_shutdown_complete();
            }
            Chunk::ForwardTsn(forward) => {
                let skipped = forward.streams().map(|(stream, ssn)| SkippedTo::Ssn(stream, ssn));
                self.handle_forward_tsn(source, packet.cover, forward.new_cum_tsn(), false, skipped)?;
            }
            Chunk::IForwardTsn(forward) if self.config.interleaving => {
                let skipped = forward.skipped().map(|SkippedMid { stream, unordered, mid }| SkippedTo::Mid {
                    stream,
                    unordered,
                    mid,
                });
                self.handle_forward_tsn(source, packet.cover, forward.new_cum_tsn(), true, skipped)?;
            }
            Chunk::Error(error) => self.handle_error(packet.cover, &error)?,
            Chunk::Auth(auth) => packet.proof = self.check_auth(&auth, packet.covered)?,
            Chunk::Asconf(_) | Chunk::AsconfAck(_) if self.addresses.asconf().is_some() => {
                self.handle_address_change(&chunk, packet)?;
            }
            Chunk::ReConfig(view) if self.changes_streams() => {
                // A request and an answer may share a packet. More would only make one packet cost more.
                packet.re_configs += 1;
                if packet.re_configs > MOST_RE_CONFIGS || !self.takes_re_configs() {
                    return Err(Discard::Unexpected);
                }
                self.handle_re_config(source, &view)?;
            }
            Chunk::Confirmation(_)
                if packet.cover == ChunkProtection::Record && self.protection.confirming.is_some() => {}
            // A record inside a record.
            Chunk::Dtls(_) if self.protection.agreed().is_some() => return Err(Discard::Unexpected),
            Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::Dtls(_)
            | Chunk::Confirmation(_)
            | Chunk::ReConfig(_)
            | Chunk::IData(_)
            | Chunk::IForwardTsn(_)
            | Chunk::Unknown(_) => {
                return Ok(self.handle_unknown(source, raw));
            }
            Chunk::Pad(_) | Chunk::Ecne { .. } | Chunk::Cwr { .. } => {}
            _ => return Err(Discard::Unexpected),
        }
        Ok(Continue::Yes)
    }

    /// Checks and processes a SACK. One that acknowledges a TSN that was never sent ends the association.
    //= docs/rfc9260.txt#section-12.4
    //# An SCTP implementation MUST abort the association if it receives a SACK chunk acknowledging a TSN that has not
    //# been sent.
    fn take_sack(&mut self, sack: &Acknowledgement<'_>, packet: &mut Packet<'_>) -> Result<(), Discard> {
        self.check_acknowledgement(packet.cover, sack.cum_tsn)?;
        let Ok(outcome) = self.handle_sack(packet.source, sack) else {
            let why = "SACK for a TSN that was never sent";
            self.send_abort(why);
            self.abort_with(AbortReason::Protocol(why));
            return Err(Discard::BadSack);
        };
        packet.data.acknowledges |= !outcome.overtaken;
        Ok(())
    }

    /// Handles an ASCONF or ASCONF-ACK, which is silently discarded without authentication (RFC 5061 sections 4.1.1 and 4.1.2).
    fn handle_address_change(&mut self, chunk: &Chunk<'_>, packet: &Packet<'_>) -> Result<(), Discard> {
        if packet.proof != Proof::Authenticated {
            return Err(Discard::Unauthenticated);
        }
        match chunk {
            Chunk::Asconf(asconf) if self.state.takes_sacks() => self.handle_asconf(*packet.origin, asconf),
            Chunk::AsconfAck(ack) if self.state.takes_sacks() => self.handle_asconf_ack(ack),
            _ => Err(Discard::Unexpected),
        }
    }

    fn answer_heartbeat(&mut self, source: PathId, info: &[u8]) {
        if self.is_announcing(source) {
            // RFC 5061 section 5.3 F1: the peer repeats the chunk, and the address is added by then.
            return;
        }
        //= docs/rfc9260.txt#section-3.3.6
        //# Heartbeat Information: variable length This field MUST contain the Heartbeat Info parameter (as defined in
        //# Section 3.3.5) of the Heartbeat Request to which this Heartbeat Acknowledgement is responding.
        //= docs/rfc9260.txt#section-8.3
        //# The receiver of the HEARTBEAT chunk SHOULD immediately respond with a HEARTBEAT ACK chunk that contains the
        //# Heartbeat Information TLV, together with any other received TLVs, copied unchanged from the received HEARTBEAT
        //# chunk.
        let copy = self.control.copy_info(info);
        //= docs/rfc9260.txt#section-6.4
        //# An endpoint SHOULD transmit reply chunks (e.g., INIT ACK, COOKIE ACK, and HEARTBEAT ACK) in response to
        //# control chunks to the same destination transport address from which it received the control chunk to which it
        //# is replying.
        self.control.offer(Control::HeartbeatAck { path: source, info: copy });
        self.dispatcher().yield_to_heartbeat(source);
    }

    /// Handles an ERROR. A stale cookie restarts the handshake (RFC 9260 section 5.2.6), and a rejected ASCONF ends ASCONF; others
    /// are ignored.
    ///
    /// In a record, an invalid stream ends the association: a peer that follows only the draft has acknowledged the message.
    fn handle_error(
        &mut self,
        cover: ChunkProtection,
        error: &anabranch_wire::ErrorView<'_>,
    ) -> Result<(), Discard> {
        let refuses_stream = |c| matches!(c, anabranch_wire::Cause::InvalidStream(_));
        if cover == ChunkProtection::Record && error.causes().flatten().any(refuses_stream) {
            return Err(self.abort_for_tampering(contradiction::STREAM_REFUSED));
        }
        let stale = error.causes().flatten().any(|c| matches!(c, anabranch_wire::Cause::StaleCookie { .. }));
        let refuses_asconf = |c| matches!(c, anabranch_wire::Cause::UnrecognizedChunk([kind, ..]) if *kind == ChunkType::ASCONF.0);
        if error.causes().flatten().any(refuses_asconf) {
            self.asconf_is_unknown_to_peer();
        }
        //= docs/rfc9260.txt#section-5.2.6
        //# When processing an ERROR chunk with a "Stale Cookie" error cause, an endpoint SHOULD first examine if an
        //# association is in the process of being set up, i.e., the association is in the COOKIE-ECHOED state.
        //= docs/rfc9260.txt#section-5.2.6
        //# In all cases, if the association is not in the COOKIE-ECHOED state, the ERROR chunk SHOULD be silently
        //# discarded.
        // A restart under kept keys does not return to an INIT, which would be sent in the clear: the attempt ends with T1.
        if stale
            && !self.protection.is_required()
            && let State::CookieEchoed { opening, .. } = self.state
        {
            // The number of retries is limited for a peer that rejects every cookie as stale.
            let stale_cookies = opening.stale_cookies + 1;
            self.discard_data_bundled_with_cookie();
            self.restart_handshake(Opening { tries: 0, stale_cookies, ..opening });
            if stale_cookies > self.profile.max_init_retransmits {
                self.abort_with(AbortReason::NoAnswer);
            } else {
                self.send_init(PathId::new(0));
            }
        }
        Ok(())
    }

    /// Handles an unknown chunk by the two high bits of its type (RFC 9260 section 3.2).
    fn handle_unknown(&mut self, source: PathId, chunk: &RawChunk<'_>) -> Continue {
        let action = chunk.kind().unknown_action();
        if action.reports() {
            //= docs/rfc9260.txt#section-5.4
            //# An endpoint MUST NOT send any chunks to an UNCONFIRMED address, with the following exceptions:
            let path = self.control_path(Some(source));
            let room = self.paths[path].packet_bytes.saturating_sub(64);
            let quoted = &chunk.bytes()[..chunk.bytes().len().min(room)];
            self.control.offer(Control::Unrecognized { path, chunk: quoted.to_vec() });
        }
        if action.stops() { Continue::No } else { Continue::Yes }
    }
}
