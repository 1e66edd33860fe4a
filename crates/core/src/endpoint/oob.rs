//! Packets out of the blue (RFC 9260 section 8.4), which belong to no association.

use anabranch_wire::{Cause, Chunk, Header, PacketView, PacketWriter, RawChunk};

use crate::address::Origin;
use crate::association::Association;
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
        // A known peer with the wrong tag is dropped without an answer (section 8.5): an attacker may have guessed the tag.
        let known = self.by_address(origin, header.source_port);
        let stranger = known.is_none();
        let opening = known.and_then(|id| self.table.get(id)).is_some_and(Association::is_opening);
        let dropped =
            Handled::Discarded(if stranger { Discard::OutOfTheBlue } else { Discard::VerificationTag });
        //= docs/rfc9260.txt#section-3.3.7
        //# If an endpoint receives an ABORT chunk with a format error or no TCB is found, it MUST silently discard it.
        //= docs/rfc9260.txt#section-3.3.7
        //# Moreover, under any circumstances, an endpoint that receives an ABORT chunk MUST NOT respond to that ABORT
        //# chunk by sending an ABORT chunk of its own.
        //= docs/rfc9260.txt#section-8.4
        //# 2)  If the OOTB packet contains an ABORT chunk, the receiver MUST silently discard the OOTB packet and take no
        //# further action.
        //= docs/rfc9260.txt#section-9.1
        //# An endpoint MUST NOT respond to any received packet that contains an ABORT chunk (also see Section 8.4).
        if packet.chunks().flatten().any(|c| matches!(c.decode(), Ok(Chunk::Abort(_)))) {
            return dropped;
        }
        match first.decode() {
            // Section 8.5.1 E: so is a SHUTDOWN-ACK from a peer whose handshake is not complete.
            //= docs/rfc9260.txt#section-8.4
            //# 5)  If the packet contains a SHUTDOWN ACK chunk, the receiver SHOULD respond to the sender of the OOTB
            //# packet with a SHUTDOWN COMPLETE chunk.
            //= docs/rfc9260.txt#section-8.4
            //# When sending the SHUTDOWN COMPLETE chunk, the receiver of the OOTB packet MUST fill in the Verification
            //# Tag field of the outbound packet with the Verification Tag received in the SHUTDOWN ACK chunk and set the
            //# T bit in the Chunk Flags to indicate that the Verification Tag is reflected.
            //= docs/rfc9260.txt#section-9.2
            //# The sender of the INIT or COOKIE ECHO chunk SHOULD respond to the receipt of a SHUTDOWN ACK chunk with a
            //# stand-alone SHUTDOWN COMPLETE chunk in an SCTP packet with the Verification Tag field of its common header
            //# set to the same tag that was received in the packet containing the SHUTDOWN ACK chunk.
            Ok(Chunk::ShutdownAck) if stranger || opening => self.reflect_shutdown_complete(origin, header),
            //= docs/rfc9260.txt#section-8.4
            //# 6)  If the packet contains a SHUTDOWN COMPLETE chunk, the receiver SHOULD silently discard the packet and
            //# take no further action.
            Ok(Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::InitAck(_)) => dropped,
            //= docs/rfc9260.txt#section-8.4
            //# 7)  If the packet contains an ERROR chunk with the "Stale Cookie" error cause or a COOKIE ACK chunk, the
            //# SCTP packet SHOULD be silently discarded.
            Ok(Chunk::Error(error))
                if error.causes().flatten().any(|c| matches!(c, Cause::StaleCookie { .. })) =>
            {
                dropped
            }
            // Packets on other paths may be slower than the SHUTDOWN chunks, and must not turn a graceful end into an error.
            _ if self.ended_gracefully(header) => dropped,
            //= docs/rfc9260.txt#section-6
            //# A DATA chunk received in CLOSED is out of the blue and SHOULD be handled per Section 8.4.
            //= docs/rfc9260.txt#section-6
            //# A SACK chunk in the CLOSED state is out of the blue and SHOULD be processed according to the rules in
            //# Section 8.4.
            //= docs/rfc9260.txt#section-8.4
            //# 8)  The receiver SHOULD respond to the sender of the OOTB packet with an ABORT chunk.
            //= docs/rfc9260.txt#section-8.4
            //# When sending the ABORT chunk, the receiver of the OOTB packet MUST fill in the Verification Tag field of
            //# the outbound packet with the value found in the Verification Tag field of the OOTB packet and set the T
            //# bit in the Chunk Flags to indicate that the Verification Tag is reflected.
            //= docs/rfc9260.txt#section-8.4
            //# After sending this ABORT chunk, the receiver of the OOTB packet MUST discard the OOTB packet and MUST NOT
            //# take any further action.
            //= docs/rfc9260.txt#section-8.5.1
            //# *  If the ABORT chunk is sent in response to an OOTB packet, the endpoint MUST follow the procedure
            //# described in Section 8.4.
            _ if stranger && header.verification_tag != 0 => {
                self.send_abort(origin, answer(header, header.verification_tag), true, [])
            }
            //= docs/rfc9260.txt#section-8.5
            //# If the received Verification Tag value does not match the receiver's own tag value, the receiver MUST
            //# silently discard the packet and MUST NOT process it any further, except for those cases listed in Section
            //# 8.5.1 below.
            _ => Handled::Discarded(Discard::VerificationTag),
        }
    }

    /// Returns `true` if a packet is for an association that has ended gracefully.
    fn ended_gracefully(&self, header: Header) -> bool {
        let id = self.table.by_tag(header.verification_tag);
        let association = id.and_then(|id| self.table.get(id));
        association.is_some_and(|a| a.identity().peer_port == header.source_port && a.ended_gracefully())
    }

    //= docs/rfc9260.txt#section-3.1
    //# *  A packet containing a SHUTDOWN COMPLETE chunk with the T bit set MUST have the Verification Tag copied from the
    //# packet with the SHUTDOWN ACK chunk.
    //= docs/rfc9260.txt#section-8.5.1
    //# Only where no TCB exists SHOULD the sender use the Verification Tag from the SHUTDOWN ACK chunk and MUST set the T
    //# bit.
    fn reflect_shutdown_complete(&mut self, origin: Origin, header: Header) -> Handled {
        let mut bytes = vec![0; 32];
        let written =
            PacketWriter::new(&mut bytes, answer(header, header.verification_tag)).and_then(|mut w| {
                //= docs/rfc9260.txt#section-3.3.13
                //# If the Verification Tag is reflected, the T bit MUST be set to 1.
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
