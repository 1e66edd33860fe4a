//! Acknowledgements: their time, path and content.

use anabranch_wire::{
    COMMON_HEADER_LEN, GapBlock, NR_SACK_HEADER_LEN, NoSpace, PacketWriter, SACK_HEADER_LEN, SackRepr, Tsn,
    nr_sack_len, padded_len, sack_len,
};

use crate::association::ack_state::window_to_advertise;
use crate::association::inbound::PacketData;
use crate::association::packets::PacketContext;
use crate::association::transmission::Outlet;
use crate::association::{Association, policies};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::{AckForm, AckTiming, Arrival};
use crate::recv::{BlocksByDelivery, Receiver};

/// Maximum number of packets with DATA that arrive together and share a SACK. In slow start such a SACK permits twice as many
/// packets, fewer than Max.Burst of [profile `net`](crate::profile::Profile::net), which lets one SACK open the window by that
/// many. Other stacks open their congestion window by one packet per SACK (RFC 9260 section 7.2.1), so they get as many SACKs as
/// without this rule.
const TOGETHER: u32 = 4;

impl Association {
    /// Returns `true` if a driver with further packets of the same arrival may pass in the next one before it asks for packets to
    /// send: the only packet to send is a SACK, which will cover the next one too.
    ///
    /// A driver that never calls this gets a SACK for at least every second packet. Otherwise up to four packets that arrive faster
    /// than the driver processes them share one, as with receive offload in TCP. A SACK that the acknowledgement policy wants
    /// [now](AckTiming::Now) does not wait, such as one for a missing TSN if the peer counts SACKs (RFC 9260 section 7.2.4).
    //= docs/rfc9260.txt#section-6.2
    //# Specifically, an acknowledgement SHOULD be generated for at least every second packet (not every second DATA
    //# chunk) received and SHOULD be generated within 200 ms of the arrival of any unacknowledged DATA chunk.
    pub fn awaits_more(&self) -> bool {
        let foreign = self.sender.facts().foreign_sack_flags;
        !foreign
            && self.ack.may_cover_more()
            && self.ack.packets() < TOGETHER
            && !self.transmission.is_open()
            && self.control.is_empty()
    }

    //= docs/rfc9260.txt#section-5.1
    //# Subsequent acknowledgements SHOULD be done as described in Section 6.2.
    pub(crate) fn consider_ack(&mut self, source: PathId, packet: PacketData) {
        let first = self.ack.note_packet(source);
        let arrival = Arrival {
            packets: self.ack.packets(),
            gap: self.receiver.as_ref().is_some_and(|r| r.tracker().has_gaps()),
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
            AckTiming::Together => self.ack.set_due_together(),
            AckTiming::Within(delay) => {
                //= docs/rfc9260.txt#section-6.2
                //# An implementation MUST NOT allow the maximum delay (protocol parameter 'SACK.Delay') to be configured
                //# to be more than 500 ms.
                //= docs/rfc9260.txt#section-6.2
                //# In other words, an implementation MAY lower the value of 'SACK.Delay' below 500 ms but MUST NOT raise
                //# it above 500 ms.
                let delay = delay.min(self.profile.sack_delay_max);
                self.ack.set_due_by(self.now + delay);
            }
        }
    }

    /// Acknowledges packets of this path at once, on the same path.
    pub(crate) fn acknowledge_on(&mut self, source: PathId) {
        self.ack.set_due_on(source);
    }

    pub(crate) fn acknowledge_now(&mut self) {
        self.ack.set_due_now();
    }

    /// Sends a SACK in a separate packet.
    //= docs/rfc9260.txt#section-6.2
    //# Acknowledgements MUST be sent in SACK chunks unless shutdown was requested by the ULP, in which case an endpoint
    //# MAY send an acknowledgement in the SHUTDOWN chunk.
    pub(crate) fn transmit_sack(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.ack.is_due() || self.receiver.is_none() {
            return None;
        }
        //= docs/rfc9260.txt#section-6.4
        //# However, an endpoint SHOULD NOT vary the destination transport address of a SACK chunk when it receives DATA
        //# chunks coming from the same source address.
        //= docs/rfc9260.txt#section-6.7
        //# When its peer is multi-homed, the SCTP endpoint SHOULD always try to send the SACK chunk to the same
        //# destination address from which the last DATA chunk was received.
        let path = self.control_path(self.ack.path());
        let mut outlet = self.outlet();
        let size = outlet.sack_packet_bytes(path);
        outlet.write_packet(size, buf, Outlet::write_sack);
        Some(path)
    }

    /// Returns `true` if an owed SACK and the next DATA chunk fit one packet. Otherwise the SACK is sent alone and does not wait
    /// behind a window of data.
    pub(crate) fn sack_can_ride(&self) -> bool {
        let lost = self.sender.lost().at_or_after(0).map(|tsn| self.sender.chunk_len(tsn));
        let new = self
            .sender
            .queue()
            .next_payload(self.payload_bytes_per_chunk())
            .map(|payload| self.sender.queue().form().chunk_len(payload));
        let bound = self.sender.bound().lowest().map(|tsn| self.sender.chunk_len(tsn));
        let Some(first) = lost.or(bound).or(new) else { return true };
        let room = self.packet_room(self.control_path(self.ack.path())) - COMMON_HEADER_LEN;
        self.profile.bundle_control && self.sack_bytes() + padded_len(first) <= room
    }

    /// Schedules an announcement of the window if the application's reads have opened a window that was too small for a packet.
    //= docs/rfc9260.txt#section-6.2
    //# When the window opens up, an SCTP receiver SHOULD send additional SACK chunks to update the window even if no new
    //# data is received.
    //= docs/rfc9260.txt#section-6.2
    //# The data receiver SHOULD notify the data sender in a timely manner of changes in its ability to receive data.
    pub(crate) fn consider_window_update(&mut self) {
        if !self.profile.silly_window_avoidance {
            return;
        }
        let Some(receiver) = &self.receiver else { return };
        let payload_bytes = self.payload_bytes_per_chunk();
        if self.ack.wants_window_update(receiver, &self.profile, payload_bytes) && !self.is_closed() {
            self.acknowledge_now();
        }
    }

    /// Returns the length of a complete SACK.
    fn sack_bytes(&self) -> usize {
        let form = self.ack.form(self.policies.ack_form());
        self.receiver.as_ref().map_or(0, |receiver| sack_bytes(form, receiver))
    }
}

impl Outlet<'_> {
    /// Returns the buffer size for a packet with only a SACK: no more than it needs, because SACKs to thousands of peers may wait
    /// in buffers of their own.
    fn sack_packet_bytes(&self, path: PathId) -> usize {
        let most = self.packet_room(path);
        match self.ack.form(self.d.policies.ack_form()) {
            // The number of parts into which reading has divided the blocks is known only when they are written.
            AckForm::NrSack { keeps_all: false } => most,
            AckForm::Sack | AckForm::NrSack { keeps_all: true } => {
                most.min(COMMON_HEADER_LEN + padded_len(self.sack_bytes()))
            }
        }
    }

    /// Adds control chunks for the peer in front of DATA: a SACK and a FORWARD-TSN.
    pub(crate) fn bundle_control(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        self.bundle_sack(path, first, writer);
        self.bundle_forward_tsn(path, first, writer);
    }

    /// Adds an owed SACK in front of DATA for the same path, if the profile permits it and a chunk of `first` bytes still fits
    /// behind it.
    //= docs/rfc9260.txt#section-6.1
    //# Before an endpoint transmits a DATA chunk, if any received DATA chunks have not been acknowledged (e.g., due to
    //# delayed ack), the sender SHOULD create a SACK chunk and bundle it with the outbound DATA chunk, as long as the
    //# size of the final SCTP packet does not exceed the current PMTU.
    pub(crate) fn bundle_sack(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        //= docs/rfc9260.txt#section-6.9
        //# The implementation MUST also take into account the space required for a SACK chunk if bundling a SACK chunk
        //# with the DATA chunk.
        let fits = |this: &Self| this.sack_bytes() + padded_len(first) <= writer.remaining();
        if self.ack.is_due_or_pending()
            && self.d.paths.profile().bundle_control
            && self.ack.path() == Some(path)
            && self.receiver.is_some()
            && fits(self)
        {
            self.write_sack(writer);
        }
    }

    /// Returns the padded length of an owed SACK, or 0.
    pub(crate) fn owed_sack_bytes(&self) -> usize {
        if self.ack.is_due_or_pending() { padded_len(self.sack_bytes()) } else { 0 }
    }

    //= docs/rfc9260.txt#section-6.2
    //# An SCTP receiver MUST NOT generate more than one SACK chunk for every incoming packet, other than to update the
    //# offered window as the receiving application consumes new data.
    fn write_sack(&mut self, writer: &mut PacketWriter<'_>) {
        //= docs/rfc9260.txt#section-6.2
        //# D)  When sending a SACK chunk, the data receiver SHOULD place the current value of a_rwnd into the a_rwnd
        //# field.
        let payload_bytes = self.payload_bytes_per_chunk();
        let Outlet { d, ack, receiver, .. } = self;
        let Some(receiver) = receiver.as_deref_mut() else { return };
        let profile = d.paths.profile();
        let a_rwnd = window_to_advertise(receiver, profile, payload_bytes);
        let flags = match d.sender.facts().foreign_sack_flags {
            true => 0,
            false => d.policies.sack_flags(ack.packets(), ack.is_by_timer(), profile),
        };
        let form = ack.form(d.policies.ack_form());
        let repr = SackRepr {
            //= docs/rfc9260.txt#section-6.2
            //# In particular, the SCTP endpoint MUST fill in the Cumulative TSN Ack field to indicate the latest
            //# sequential TSN (of a valid DATA chunk) it has received.
            cum_tsn: Tsn::from_unwrapped(receiver.tracker().cumulative()),
            a_rwnd: u32::try_from(a_rwnd.get()).unwrap_or(u32::MAX),
            flags,
        };
        if write_blocks(form, &repr, receiver, ack.blocks_mut(), writer).is_err() {
            return;
        }
        receiver.note_acknowledged();
        d.outputs.statistics.sacks_sent += 1;
        ack.note_sent(a_rwnd);
    }

    /// Returns the length of a complete SACK.
    fn sack_bytes(&self) -> usize {
        let form = self.ack.form(self.d.policies.ack_form());
        self.receiver.as_deref().map_or(0, |receiver| sack_bytes(form, receiver))
    }
}

fn sack_bytes(form: AckForm, receiver: &Receiver) -> usize {
    let (gaps, duplicates) = (receiver.tracker().gap_count(), receiver.tracker().duplicates().len());
    match form {
        AckForm::Sack => sack_len(gaps, duplicates),
        // A block is divided at most where the application has read a part of it.
        AckForm::NrSack { keeps_all: true } => nr_sack_len(0, gaps, duplicates),
        AckForm::NrSack { keeps_all: false } => nr_sack_len(gaps, gaps, duplicates),
    }
}

/// Writes the chunk with as many blocks as fit, lowest first: the sender learns which TSNs hold the cumulative TSN back even if the
/// rest does not fit. `lists` is reused memory.
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
    let blocks = receiver.tracker().gap_blocks(room).map(block);
    let duplicates_room = room - blocks.len();
    let duplicates = receiver.tracker().duplicates().iter().map(|&tsn| Tsn::from_unwrapped(tsn));
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
