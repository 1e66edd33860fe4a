//! Acknowledging: when, on which path, and what the SACK says.

use anabranch_wire::{
    COMMON_HEADER_LEN, DATA_HEADER_LEN, GapBlock, NR_SACK_HEADER_LEN, NoSpace, PacketWriter, SACK_HEADER_LEN,
    SackRepr, Tsn, nr_sack_len, padded_len, sack_len,
};

use crate::association::inbound::PacketData;
use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{AckForm, AckTiming, Arrival};
use crate::recv::{BlocksByDelivery, Receiver};
use crate::time::Time;
use crate::units::WindowBytes;

/// What is known about the acknowledgement that is owed.
#[derive(Debug, Default)]
pub(crate) struct AckState {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// When it is due at the latest.
    pub(crate) deadline: Option<Time>,
    /// It is due now.
    due: bool,
    /// The delayed-ack timer made it due.
    by_timer: bool,
    /// The path on which the latest DATA came: the SACK goes back there (RFC 9260 section 6.4).
    path: Option<PathId>,
    /// The window in the last SACK.
    advertised: Option<WindowBytes>,
    any_before: bool,
    /// Both sides have announced NR-SACK.
    pub(super) uses_nr_sack: bool,
    /// Reused from NR-SACK to NR-SACK.
    blocks: BlocksByDelivery,
}

/// Packets with DATA that arrived together and may share a SACK. In slow start it lets out twice as many, which is less than
/// Max.Burst of [profile `net`](crate::profile::Profile::net), and no more than that profile lets one SACK open the window by.
/// Other stacks open theirs by one packet for each SACK (RFC 9260 section 7.2.1), so for them SACKs are not fewer.
const TOGETHER: u32 = 4;

impl Association {
    /// Whether a driver that holds packets of this association which arrived together with those it has handed over may hand over
    /// the next one before it asks for packets to send: all that is to leave is a SACK, which covers the next one too.
    ///
    /// A driver that never asks gets a SACK for every second packet at least. One that does gets one for up to four, where
    /// packets arrive faster than it looks at them, as TCP behind receive offload does. While something is missing no SACK waits:
    /// the peer counts those that say so (RFC 9260 section 7.2.4).
    //= docs/rfc9260.txt#section-6.2
    //# Specifically, an acknowledgement SHOULD be generated for at least every second packet (not every second DATA
    //# chunk) received and SHOULD be generated within 200 ms of the arrival of any unacknowledged DATA chunk.
    pub fn awaits_more(&self) -> bool {
        let gaps = self.receiver.as_ref().is_some_and(|receiver| receiver.tracker.has_gaps());
        let foreign = self.sender.facts().foreign_sack_flags;
        !foreign
            && !gaps
            && self.ack.packets < TOGETHER
            && !self.opportunity.is_open()
            && self.control.is_empty()
    }

    //= docs/rfc9260.txt#section-5.1
    //# Subsequent acknowledgements SHOULD be done as described in Section 6.2.
    pub(crate) fn consider_ack(&mut self, source: PathId, packet: PacketData) {
        self.ack.path = Some(source);
        self.ack.packets += 1;
        let first = !std::mem::replace(&mut self.ack.any_before, true);
        let arrival = Arrival {
            packets: self.ack.packets,
            gap: self.receiver.as_ref().is_some_and(|r| r.tracker.has_gaps()),
            duplicate: packet.duplicate,
            immediate: packet.immediate,
            //= docs/rfc9260.txt#section-5.1
            //# After the reception of the first DATA chunk in an association, the endpoint MUST immediately respond with
            //# a SACK chunk to acknowledge the DATA chunk.
            first: first && self.profile.first_data_acked_at_once,
        };
        let timing = self.policies.ack_timing(&arrival, &policies::view(self.now, &self.paths, &self.sender));
        if packet.dropped && self.profile.drop_suppresses_sack {
            return;
        }
        match timing {
            //= docs/rfc9260.txt#section-6.2
            //# In either case, if such a DATA chunk is dropped, the receiver MUST immediately send back a SACK chunk with
            //# the current receive window showing only DATA chunks received and accepted so far.
            _ if packet.dropped => self.acknowledge_now(),
            AckTiming::Now => self.acknowledge_now(),
            AckTiming::Within(delay) => {
                //= docs/rfc9260.txt#section-6.2
                //# An implementation MUST NOT allow the maximum delay (protocol parameter 'SACK.Delay') to be configured
                //# to be more than 500 ms.
                //= docs/rfc9260.txt#section-6.2
                //# In other words, an implementation MAY lower the value of 'SACK.Delay' below 500 ms but MUST NOT raise
                //# it above 500 ms.
                let delay = delay.min(self.profile.sack_delay_max);
                self.ack.deadline.get_or_insert(self.now + delay);
            }
        }
    }

    /// Acknowledges what came on this path at once, and there.
    pub(crate) fn acknowledge_on(&mut self, source: PathId) {
        self.ack.path = Some(source);
        self.acknowledge_now();
    }

    pub(crate) fn acknowledge_now(&mut self) {
        self.ack.due = true;
    }

    pub(crate) fn ack_timer_expired(&mut self) {
        self.ack.deadline = None;
        self.ack.due = true;
        self.ack.by_timer = true;
    }

    /// A SACK in a packet of its own.
    //= docs/rfc9260.txt#section-6.2
    //# Acknowledgements MUST be sent in SACK chunks unless shutdown was requested by the ULP, in which case an endpoint
    //# MAY send an acknowledgement in the SHUTDOWN chunk.
    pub(crate) fn transmit_sack(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.ack.due || self.receiver.is_none() {
            return None;
        }
        //= docs/rfc9260.txt#section-6.4
        //# However, an endpoint SHOULD NOT vary the destination transport address of a SACK chunk when it receives DATA
        //# chunks coming from the same source address.
        //= docs/rfc9260.txt#section-6.7
        //# When its peer is multi-homed, the SCTP endpoint SHOULD always try to send the SACK chunk to the same
        //# destination address from which the last DATA chunk was received.
        let path = self.control_path(self.ack.path);
        let size = self.sack_packet_bytes(path);
        self.write_packet(size, buf, |this, writer| this.write_sack(writer));
        Some(path)
    }

    /// Room for a packet with nothing but a SACK: no more than that may take, since SACKs to thousands of peers may wait in buffers of
    /// their own.
    fn sack_packet_bytes(&self, path: PathId) -> usize {
        let most = self.packet_room(path);
        match self.ack_form() {
            // Into how many parts reading has divided the blocks shows as they are written.
            AckForm::NrSack { keeps_all: false } => most,
            AckForm::Sack | AckForm::NrSack { keeps_all: true } => {
                most.min(COMMON_HEADER_LEN + padded_len(self.sack_bytes()))
            }
        }
    }

    /// Puts what is owed to the peer in front of DATA: a SACK and a FORWARD-TSN.
    pub(crate) fn bundle_control(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        self.bundle_sack(path, first, writer);
        self.bundle_forward_tsn(path, first, writer);
    }

    /// Puts a SACK that is owed in front of DATA for the same path, where the profile allows it and a chunk of `first` bytes
    /// still fits behind it.
    //= docs/rfc9260.txt#section-6.1
    //# Before an endpoint transmits a DATA chunk, if any received DATA chunks have not been acknowledged (e.g., due to
    //# delayed ack), the sender SHOULD create a SACK chunk and bundle it with the outbound DATA chunk, as long as the
    //# size of the final SCTP packet does not exceed the current PMTU.
    pub(crate) fn bundle_sack(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        let owed = self.ack.due || self.ack.packets > 0;
        //= docs/rfc9260.txt#section-6.9
        //# The implementation MUST also take into account the space required for a SACK chunk if bundling a SACK chunk
        //# with the DATA chunk.
        let fits = self.sack_bytes() + padded_len(first) <= writer.remaining();
        if self.profile.bundle_control
            && owed
            && fits
            && self.ack.path == Some(path)
            && self.receiver.is_some()
        {
            self.write_sack(writer);
        }
    }

    /// What a SACK that says everything would take.
    fn sack_bytes(&self) -> usize {
        self.receiver
            .as_ref()
            .map_or(0, |r| self.acknowledgement_len(r.tracker.gap_count(), r.tracker.duplicates().len()))
    }

    /// The same if one is owed.
    pub(crate) fn owed_sack_bytes(&self) -> usize {
        if self.ack.due || self.ack.packets > 0 { padded_len(self.sack_bytes()) } else { 0 }
    }

    fn acknowledgement_len(&self, gaps: usize, duplicates: usize) -> usize {
        match self.ack_form() {
            AckForm::Sack => sack_len(gaps, duplicates),
            // A block is divided at most where the application has read a part of it.
            AckForm::NrSack { keeps_all: true } => nr_sack_len(0, gaps, duplicates),
            AckForm::NrSack { keeps_all: false } => nr_sack_len(gaps, gaps, duplicates),
        }
    }

    /// The chunk that acknowledges, as far as the peer knows it.
    fn ack_form(&self) -> AckForm {
        if self.ack.uses_nr_sack { self.policies.ack_form() } else { AckForm::Sack }
    }

    /// Whether a SACK that is owed and the next DATA chunk fit one packet. If not, the SACK goes ahead on its own rather than
    /// wait behind a window of data.
    pub(crate) fn sack_can_ride(&self) -> bool {
        let lost = self.sender.lost().at_or_after(0).map(|tsn| self.sender.chunk_len(tsn));
        let new = self
            .sender
            .queue()
            .next_payload(self.payload_bytes_per_chunk())
            .map(|payload| DATA_HEADER_LEN + payload);
        let bound = self.sender.bound().lowest().map(|tsn| self.sender.chunk_len(tsn));
        let Some(first) = lost.or(bound).or(new) else { return true };
        let room = self.packet_room(self.control_path(self.ack.path)) - COMMON_HEADER_LEN;
        self.profile.bundle_control && self.sack_bytes() + padded_len(first) <= room
    }

    //= docs/rfc9260.txt#section-6.2
    //# An SCTP receiver MUST NOT generate more than one SACK chunk for every incoming packet, other than to update the
    //# offered window as the receiving application consumes new data.
    fn write_sack(&mut self, writer: &mut PacketWriter<'_>) {
        //= docs/rfc9260.txt#section-6.2
        //# D)  When sending a SACK chunk, the data receiver SHOULD place the current value of a_rwnd into the a_rwnd
        //# field.
        let a_rwnd = self.advertised_window();
        let by_timer = self.ack.by_timer;
        let flags = match self.sender.facts().foreign_sack_flags {
            true => 0,
            false => self.policies.sack_flags(self.ack.packets, by_timer, &self.profile),
        };
        let form = self.ack_form();
        let Some(receiver) = self.receiver.as_mut() else { return };
        let repr = SackRepr {
            //= docs/rfc9260.txt#section-6.2
            //# In particular, the SCTP endpoint MUST fill in the Cumulative TSN Ack field to indicate the latest
            //# sequential TSN (of a valid DATA chunk) it has received.
            cum_tsn: Tsn::from_unwrapped(receiver.tracker.cumulative()),
            a_rwnd: u32::try_from(a_rwnd.get()).unwrap_or(u32::MAX),
            flags,
        };
        let written = write_blocks(form, &repr, receiver, &mut self.ack.blocks, writer);
        if written.is_err() {
            return;
        }
        receiver.tracker.clear_duplicates();
        self.outputs.statistics.sacks_sent += 1;
        self.ack.advertised = Some(a_rwnd);
        self.ack.packets = 0;
        self.ack.deadline = None;
        self.ack.due = false;
        self.ack.by_timer = false;
    }

    /// The window to advertise: the free buffer, or nothing while that is less than would be worth sending
    /// (RFC 9260 section 6.2, RFC 1122 section 4.2.3.3).
    pub(crate) fn advertised_window(&self) -> WindowBytes {
        let Some(receiver) = &self.receiver else { return self.recv_buffer() };
        let free = receiver.free(&self.profile);
        //= docs/rfc9260.txt#section-6.2
        //# The receiver MUST also have an algorithm for advertising its receive window to avoid receiver silly window
        //# syndrome (SWS), as described in [RFC1122].
        if self.profile.silly_window_avoidance && free < self.window_worth_opening() {
            return WindowBytes::ZERO;
        }
        free
    }

    fn window_worth_opening(&self) -> WindowBytes {
        self.window_cost_of_packet().min(WindowBytes::new(self.recv_buffer().get() / 2))
    }

    /// The application has read: a window that was too small for a packet and no longer is, is announced.
    //= docs/rfc9260.txt#section-6.2
    //# When the window opens up, an SCTP receiver SHOULD send additional SACK chunks to update the window even if no new
    //# data is received.
    //= docs/rfc9260.txt#section-6.2
    //# The data receiver SHOULD notify the data sender in a timely manner of changes in its ability to receive data.
    pub(crate) fn consider_window_update(&mut self) {
        if !self.profile.silly_window_avoidance {
            return;
        }
        let worth = self.window_worth_opening();
        //= docs/rfc9260.txt#section-6.2
        //# The receiver MUST avoid sending a large number of window updates -- in particular, large bursts of them.
        let was_closed = self.ack.advertised.is_some_and(|w| w < worth.times(2));
        let opened = self.advertised_window() >= worth.times(2).min(self.recv_buffer());
        if was_closed && opened && !self.is_closed() {
            self.acknowledge_now();
        }
    }
}

/// Writes the chunk with as many blocks as fit, lowest first: the sender learns what holds the cumulative TSN back even if
/// the rest does not fit. `lists` is memory to work in.
fn write_blocks(
    form: AckForm,
    repr: &SackRepr,
    receiver: &Receiver,
    lists: &mut BlocksByDelivery,
    writer: &mut PacketWriter<'_>,
) -> Result<(), NoSpace> {
    let header = if form == AckForm::Sack { SACK_HEADER_LEN } else { NR_SACK_HEADER_LEN };
    //= docs/rfc9260.txt#section-6.2
    //# The SCTP endpoint MUST report as many Gap Ack Blocks as can fit in a single SACK chunk such that the size of the
    //# SCTP packet does not exceed the current PMTU.
    let room = (writer.remaining().saturating_sub(header) / 4).min(usize::from(u16::MAX));
    let block = |(start, end): (u16, u16)| GapBlock { start, end };
    let blocks = receiver.tracker.gap_blocks(room).map(block);
    let duplicates_room = room - blocks.len();
    let duplicates = receiver.tracker.duplicates().iter().map(|&tsn| Tsn::from_unwrapped(tsn));
    match form {
        //= docs/rfc9260.txt#section-6.7
        //# When a single SACK chunk cannot cover all the Gap Ack Blocks needed to be reported due to the PMTU limitation,
        //# the endpoint MUST send only one SACK chunk.
        //= docs/rfc9260.txt#section-6.7
        //# This single SACK chunk MUST report the Gap Ack Blocks from the lowest to highest TSNs, within the size limit
        //# set by the PMTU, and leave the remaining highest TSN numbers unacknowledged.
        AckForm::Sack => writer.sack(repr, blocks, duplicates.take(duplicates_room)),
        AckForm::NrSack { keeps_all: true } => {
            writer.nr_sack(repr, [], blocks, duplicates.take(duplicates_room))
        }
        AckForm::NrSack { keeps_all: false } => {
            receiver.blocks_by_delivery(lists);
            let unread = lists.unread.iter().copied().take(room / 2).map(block);
            let read = lists.read.iter().copied().take(room - unread.len()).map(block);
            let left = room - unread.len() - read.len();
            writer.nr_sack(repr, unread, read, duplicates.take(left))
        }
    }
}
