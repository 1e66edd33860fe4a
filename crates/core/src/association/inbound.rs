//! Received DATA, I-DATA, FORWARD-TSN and I-FORWARD-TSN.

use anabranch_wire::{StreamId, Tsn};

use crate::association::Association;
use crate::association::control::Control;
use crate::association::state::State;
use crate::error::AbortReason;
use crate::path_id::PathId;
use crate::protection::{ChunkProtection, PlainBoundary, contradiction, is_key_management};
use crate::recv::{DataChunk, DataOutcome, Fragment, Receiver, SkippedTo};
use crate::stats::Discard;

/// Properties of the DATA chunks and SACKs of one packet, for the decisions behind its last chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketData {
    /// `true` if the packet contained DATA.
    pub(crate) any: bool,
    pub(crate) duplicate: bool,
    pub(crate) immediate: bool,
    /// `true` if the latest DATA chunk found no room.
    pub(crate) dropped: bool,
    /// `true` if the packet contained a SACK that no later one had overtaken.
    pub(crate) acknowledges: bool,
}

impl Association {
    /// Handles a DATA chunk (RFC 9260 section 6.2) or an I-DATA chunk (RFC 8260 section 2).
    pub(crate) fn handle_data(
        &mut self,
        data: &DataChunk<'_>,
        cover: ChunkProtection,
        packet: &mut PacketData,
    ) -> Result<(), Discard> {
        //= docs/rfc9260.txt#section-6
        //# A DATA chunk received in any other state SHOULD be discarded.
        if !self.accepts_data() {
            return Err(Discard::Unexpected);
        }
        if data.payload().is_empty() {
            // RFC 9260 section 6.2: DATA without user data is answered with an ABORT.
            //= docs/rfc9260.txt#section-6.2
            //# If an endpoint receives a DATA chunk with no user data (i.e., the Length field is set to 16), it SHOULD
            //# send an ABORT chunk with a "No User Data" error cause.
            self.send_abort_no_user_data(data.tsn());
            self.abort_with(AbortReason::Protocol("DATA without user data"));
            return Err(Discard::Unexpected);
        }
        self.check_form(data.is_interleaved())?;
        let Some(receiver) = self.receiver.as_mut() else { return Err(Discard::Unexpected) };
        //= docs/rfc9260.txt#section-6.2
        //# The SCTP endpoint MUST always acknowledge the reception of each valid DATA chunk when the DATA chunk received
        //# is inside its receive window.
        packet.any = true;
        self.outputs.statistics.chunks_received += 1;
        let flags = data.flags();
        packet.immediate |= flags.immediate;
        let fragment = data.fragment(receiver.tracker().cumulative());
        if cover == ChunkProtection::Record
            && let Some(why) = contradiction_of(data.ppid(), &fragment, receiver, &self.protection.boundary)
        {
            return Err(self.abort_for_tampering(why));
        }
        let taken = receiver.take(fragment, &self.profile);
        self.note_taken(taken, data.stream(), packet)?;
        if cover == ChunkProtection::Record { self.check_blocked_without_gap() } else { Ok(()) }
    }

    /// Ends the association if the peer sends chunks of the form that was not negotiated (RFC 8260 sections 2.2.3 and 2.3.1).
    fn check_form(&mut self, interleaved: bool) -> Result<(), Discard> {
        if self.receiver.as_ref().is_none_or(|receiver| receiver.is_interleaved() == interleaved) {
            return Ok(());
        }
        let why = if interleaved { "I-DATA was not negotiated" } else { "I-DATA was negotiated" };
        self.send_abort(why);
        self.abort_with(AbortReason::Protocol(why));
        Err(Discard::Unexpected)
    }

    /// Ends a protected association with messages that wait for earlier ones of their streams although no TSN is missing.
    fn check_blocked_without_gap(&mut self) -> Result<(), Discard> {
        match &self.receiver {
            Some(receiver) if receiver.is_blocked_without_gap() => {
                Err(self.abort_for_tampering(contradiction::SSN))
            }
            _ => Ok(()),
        }
    }

    fn note_taken(
        &mut self,
        taken: Result<DataOutcome, crate::recv::Violation>,
        stream: StreamId,
        packet: &mut PacketData,
    ) -> Result<(), Discard> {
        packet.dropped = taken == Ok(DataOutcome::Dropped);
        match taken {
            Ok(DataOutcome::New) => {
                self.outputs.statistics.peak_held_bytes =
                    self.outputs.statistics.peak_held_bytes.max(self.held_bytes());
                self.announce_readable();
            }
            Ok(DataOutcome::Duplicate) => {
                packet.duplicate = true;
                self.outputs.statistics.duplicates_received += 1;
            }
            Ok(DataOutcome::Dropped) => {
                self.outputs.statistics.chunks_dropped += 1;
                self.announce_readable();
            }
            Err(crate::recv::Violation::NoSuchStream) => {
                // RFC 9260 section 6.5: a chunk with an invalid stream is acknowledged, reported and dropped.
                let path = self.control_path(None);
                //= docs/rfc9260.txt#section-6.5
                //# If an endpoint receives a DATA chunk with an invalid stream identifier, it SHOULD acknowledge the
                //# reception of the DATA chunk following the normal procedure, immediately send an ERROR chunk with cause
                //# set to "Invalid Stream Identifier" (see Section 3.3.10), and discard the DATA chunk.
                self.control.offer(Control::InvalidStream { path, stream });
                return Err(Discard::Unexpected);
            }
            Err(_) => {
                self.send_abort("fragments that do not fit together");
                self.abort_with(AbortReason::Protocol("fragments that do not fit together"));
                return Err(Discard::Unexpected);
            }
        }
        Ok(())
    }

    /// Returns `true` if data is accepted: until the peer has sent its SHUTDOWN (RFC 9260 section 9.2).
    //= docs/rfc9260.txt#section-6
    //# DATA chunks MUST only be received according to the rules below in ESTABLISHED, SHUTDOWN-PENDING, and SHUTDOWN-SENT
    //# states.
    fn accepts_data(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownSent { .. })
    }

    fn announce_readable(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        let readable = receiver.has_message() || self.is_exhausted(receiver);
        if readable {
            self.outputs.report_readable();
        }
    }

    /// Returns `true` if the receive buffer is full, so that parts of messages are read as well (RFC 9260 section 6.9).
    //= docs/rfc9260.txt#section-6.9
    //# If the data receiver runs out of buffer space while still waiting for more fragments to complete the reassembly of
    //# the message, it SHOULD dispatch part of its inbound message through a partial delivery API (see Section 11),
    //# freeing some of its receive buffer space so that the rest of the message can be received.
    pub(crate) fn is_exhausted(&self, receiver: &Receiver) -> bool {
        receiver.is_starved() || receiver.free(&self.profile) < self.window_cost_of_packet()
    }

    /// Applies the consequences of a packet behind its last chunk.
    pub(crate) fn packet_done(&mut self, source: PathId, packet: PacketData) {
        self.follow_events();
        if packet.acknowledges {
            self.consider_writable();
            self.advance_shutdown();
        }
        self.perform_deferred_reset();
        self.advance_stream_changes();
        if packet.any {
            self.answer_data(source, packet);
        }
        self.abandon_due();
    }

    /// Decides on the acknowledgement of a packet with DATA.
    fn answer_data(&mut self, source: PathId, packet: PacketData) {
        self.dispatcher().data_passed();
        self.consider_ack(source, packet);
        if matches!(self.state, State::ShutdownSent { .. }) {
            //= docs/rfc9260.txt#section-4
            //# 4)  In the SHUTDOWN-SENT state, the endpoint MUST acknowledge any received DATA chunks without delay.
            //= docs/rfc9260.txt#section-6.2
            //# Therefore, the endpoint SHOULD use a SACK chunk instead of the SHUTDOWN chunk to acknowledge DATA chunks
            //# received out of order.
            //= docs/rfc9260.txt#section-9.2
            //# While in the SHUTDOWN-SENT state, the SHUTDOWN chunk sender MUST immediately respond to each received
            //# packet containing one or more DATA chunks with a SHUTDOWN chunk and restart the T2-shutdown timer.
            //= docs/rfc9260.txt#section-9.2
            //# If a SHUTDOWN chunk by itself cannot acknowledge all of the received DATA chunks (i.e., there are TSNs
            //# that can be acknowledged that are larger than the cumulative TSN and thus gaps exist in the TSN sequence)
            //# or if duplicate TSNs have been received, then a SACK chunk MUST also be sent.
            // RFC 9260 section 9.2: DATA in this state is answered with a SACK and the SHUTDOWN again.
            self.acknowledge_now();
            self.send_shutdown();
        }
    }

    /// Handles a FORWARD-TSN (RFC 3758 section 3.6) or an I-FORWARD-TSN (RFC 8260 section 2.3.1): the peer has abandoned the missing
    /// TSNs up to it.
    pub(crate) fn handle_forward_tsn(
        &mut self,
        source: PathId,
        cover: ChunkProtection,
        new_cum_tsn: Tsn,
        interleaved: bool,
        skipped: impl Iterator<Item = SkippedTo> + Clone,
    ) -> Result<(), Discard> {
        self.check_form(interleaved)?;
        let Some(receiver) = self.receiver.as_mut() else { return Err(Discard::Unexpected) };
        if cover == ChunkProtection::Record && skipped.clone().any(|to| !receiver.has_stream(to.stream())) {
            return Err(self.abort_for_tampering(contradiction::STREAM));
        }
        let cumulative = new_cum_tsn.unwrap_near(receiver.tracker().cumulative());
        if cumulative > receiver.tracker().cumulative() + 65_535 {
            return Err(Discard::Unexpected);
        }
        self.outputs.statistics.forward_tsns_received += 1;
        if cumulative > receiver.tracker().cumulative() {
            receiver.forward(cumulative);
            skipped.for_each(|to| receiver.skip(to));
            self.announce_readable();
        }
        // RFC 9260 section 6.4: the path of the latest DATA may have failed since, which may be why the peer skips.
        self.acknowledge_on(source);
        if cover == ChunkProtection::Record { self.check_blocked_without_gap() } else { Ok(()) }
    }
}

/// Returns the contradiction between a protected fragment and earlier plain packets, if there is one.
fn contradiction_of(
    ppid: Option<u32>,
    fragment: &Fragment<'_>,
    receiver: &mut Receiver,
    boundary: &PlainBoundary,
) -> Option<&'static str> {
    let is_key_management = is_key_management(ppid, fragment.stream, fragment.unordered);
    if !receiver.has_stream(fragment.stream) {
        Some(contradiction::STREAM)
    } else if !boundary.admits(fragment.tsn, is_key_management) {
        Some(contradiction::TSN)
    } else if !receiver.awaits_sequence(fragment) {
        Some(contradiction::SSN)
    } else {
        None
    }
}
