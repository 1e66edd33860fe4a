//! Packets out of the blue (RFC 9260 section 8.4): for no association.

use anabranch_wire::{Cause, Chunk, Header, PacketView, PacketWriter, RawChunk};

use crate::association::{Association, Origin};
use crate::endpoint::setup::answer;
use crate::endpoint::{Endpoint, Handled};
use crate::stats::Discard;

impl Endpoint {
    pub(super) fn handle_out_of_the_blue(
        &mut self,
        origin: Origin,
        header: Header,
        first: &RawChunk<'_>,
        packet: &PacketView<'_>,
    ) -> Handled {
        // A known peer with the wrong tag is dropped without an answer (section 8.5): it may be an attacker's guess.
        let known = self.by_address(origin, header.source_port);
        let stranger = known.is_none();
        let opening = known.and_then(|id| self.table.get(id)).is_some_and(Association::is_opening);
        let dropped =
            Handled::Discarded(if stranger { Discard::OutOfTheBlue } else { Discard::VerificationTag });
        if packet.chunks().flatten().any(|c| matches!(c.decode(), Ok(Chunk::Abort(_)))) {
            return dropped;
        }
        match first.decode() {
            // Section 8.5.1 E: so is a SHUTDOWN-ACK from a peer with whom a handshake is under way.
            Ok(Chunk::ShutdownAck) if stranger || opening => self.reflect_shutdown_complete(origin, header),
            Ok(Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::InitAck(_)) => dropped,
            Ok(Chunk::Error(error))
                if error.causes().flatten().any(|c| matches!(c, Cause::StaleCookie { .. })) =>
            {
                dropped
            }
            // Packets on other paths may be slower than the SHUTDOWN chunks, and must not make a good end a bad one.
            _ if self.ended_in_good_order(header) => dropped,
            _ if stranger && header.verification_tag != 0 => {
                self.send_abort(origin, answer(header, header.verification_tag), true, [])
            }
            _ => Handled::Discarded(Discard::VerificationTag),
        }
    }

    /// Whether a packet is for an association that is over because both sides had said everything.
    fn ended_in_good_order(&self, header: Header) -> bool {
        let id = self.table.by_tag(header.verification_tag);
        let association = id.and_then(|id| self.table.get(id));
        association.is_some_and(|a| a.peer_port == header.source_port && a.ended_in_good_order())
    }

    fn reflect_shutdown_complete(&mut self, origin: Origin, header: Header) -> Handled {
        let mut bytes = vec![0; 32];
        let written =
            PacketWriter::new(&mut bytes, answer(header, header.verification_tag)).and_then(|mut w| {
                w.shutdown_complete(true)?;
                Ok(w.finish())
            });
        match written {
            Ok(length) => {
                bytes.truncate(length);
                self.reply(origin, bytes)
            }
            Err(_) => Handled::Discarded(Discard::OutOfTheBlue),
        }
    }
}
