//! DATA that arrives.

use anabranch_wire::{DataView, ForwardTsnView, StreamId};

use crate::association::control::Control;
use crate::association::{Association, AssociationEvent, State};
use crate::error::AbortReason;
use crate::path::PathId;
use crate::recv::{Fragment, Receiver, Taken};
use crate::stats::Discard;

/// What the DATA chunks of one packet came to, for the decision whether to acknowledge now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketData {
    /// It held DATA.
    pub(crate) any: bool,
    pub(crate) duplicate: bool,
    pub(crate) immediate: bool,
    /// Its latest DATA chunk found no room.
    pub(crate) dropped: bool,
}

impl Association {
    /// Takes a DATA chunk (RFC 9260 section 6.2).
    pub(crate) fn handle_data(
        &mut self,
        data: &DataView<'_>,
        packet: &mut PacketData,
    ) -> Result<(), Discard> {
        if !self.accepts_data() {
            return Err(Discard::Unexpected);
        }
        if data.payload().is_empty() {
            // RFC 9260 section 6.2: no user data is worth an ABORT.
            self.send_abort_no_user_data(data.tsn());
            self.abort_with(AbortReason::Protocol("DATA without user data"));
            return Err(Discard::Unexpected);
        }
        let Some(receiver) = self.receiver.as_mut() else { return Err(Discard::Unexpected) };
        packet.any = true;
        self.statistics.chunks_received += 1;
        let flags = data.flags();
        packet.immediate |= flags.immediate;
        let fragment = Fragment {
            tsn: data.tsn().unwrap_near(receiver.tracker.cumulative()),
            stream: data.stream().get(),
            ssn: data.ssn().get(),
            ppid: data.ppid(),
            unordered: flags.unordered,
            beginning: flags.beginning,
            ending: flags.ending,
            payload: data.payload(),
        };
        let taken = receiver.take(fragment, &self.profile);
        self.note_taken(taken, data.stream(), packet)
    }

    fn note_taken(
        &mut self,
        taken: Result<Taken, crate::recv::Violation>,
        stream: StreamId,
        packet: &mut PacketData,
    ) -> Result<(), Discard> {
        packet.dropped = taken == Ok(Taken::Dropped);
        match taken {
            Ok(Taken::New) => {
                self.statistics.peak_held_bytes = self.statistics.peak_held_bytes.max(self.held_bytes());
                self.announce_readable();
            }
            Ok(Taken::Duplicate) => {
                packet.duplicate = true;
                self.statistics.duplicates_received += 1;
            }
            Ok(Taken::Dropped) => {
                self.statistics.chunks_dropped += 1;
                self.announce_readable();
            }
            Err(crate::recv::Violation::NoSuchStream) => {
                // RFC 9260 section 6.5: it is acknowledged, reported and dropped.
                let path = self.control_path(None);
                self.queue_control(Control::InvalidStream { path, stream });
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

    /// RFC 9260 section 9.2: data is taken until the peer itself has said that it is done.
    fn accepts_data(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownSent { .. })
    }

    fn announce_readable(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        let readable = receiver.has_message() || self.is_exhausted(receiver);
        if readable && self.events.back() != Some(&AssociationEvent::Readable) {
            self.events.push_back(AssociationEvent::Readable);
        }
    }

    /// Whether the receive buffer is used up, so that parts of messages are read as well (RFC 9260 section 6.9).
    pub(crate) fn is_exhausted(&self, receiver: &Receiver) -> bool {
        receiver.is_starved() || receiver.free(&self.profile) < self.window_cost_of_packet()
    }

    /// After a packet's last chunk: decides on its acknowledgement.
    pub(crate) fn packet_done(&mut self, source: PathId, packet: PacketData) {
        if packet.any {
            self.consider_ack(source, packet);
        }
        if packet.any && matches!(self.state, State::ShutdownSent { .. }) {
            // RFC 9260 section 9.2: DATA in this state is answered with a SACK and the SHUTDOWN again.
            self.acknowledge_now();
            self.send_shutdown();
        }
    }

    /// FORWARD-TSN (RFC 3758 section 3.6): the peer gives up what lies below.
    pub(crate) fn handle_forward_tsn(&mut self, forward: &ForwardTsnView<'_>) -> Result<(), Discard> {
        let Some(receiver) = self.receiver.as_mut() else { return Err(Discard::Unexpected) };
        let cumulative = forward.new_cum_tsn().unwrap_near(receiver.tracker.cumulative());
        if cumulative > receiver.tracker.cumulative() + 65_535 {
            return Err(Discard::Unexpected);
        }
        if cumulative > receiver.tracker.cumulative() {
            receiver.forward(cumulative);
            for (stream, ssn) in forward.streams() {
                receiver.skip_ordered(stream.get(), ssn.get());
            }
            self.announce_readable();
        }
        self.acknowledge_now();
        Ok(())
    }
}
