//! Sending of FORWARD-TSN, which moves the peer past abandoned chunks (RFC 3758 sections 3.2 and 3.5).
//!
//! One is due if the ack point of RFC 3758, up to which all is acknowledged or abandoned, is beyond the peer's cumulative TSN. It
//! is sent when the ack point moves, when a SACK a round trip later does not cover it, and when T3 of its path expires, then on
//! another path if there is one. T3 runs on its path until it is acknowledged. An expiry counts as one of DATA: the path gets an
//! error and its window is cut. The chunk is bundled with DATA or a SACK if it fits, otherwise sent alone.
//!
//! It names the streams that skip messages. If they do not fit a packet, it goes only as far as its list. The next one is sent when
//! it is acknowledged: if both were in flight, the loss of the first would leave streams waiting.

use anabranch_wire::{
    COMMON_HEADER_LEN, Mid, NoSpace, PacketWriter, SkippedMid, Ssn, StreamId, Tsn, forward_tsn_len,
    i_forward_tsn_len, padded_len,
};

use crate::association::Association;
use crate::association::packets::PacketContext;
use crate::association::transmission::Outlet;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathState};
use crate::send::{DataForm, SkippedNumber};

impl Association {
    pub(crate) fn consider_forward_tsn(&mut self) {
        self.dispatcher().consider_forward_tsn();
    }

    /// Returns `true` if a FORWARD-TSN that is due and the next DATA chunk fit one packet. If not, it goes ahead on its own.
    pub(crate) fn forward_tsn_can_ride(&mut self) -> bool {
        let Some(length) = self.outlet().forward_tsn_len() else { return true };
        let Some(first) = self.outlet().next_chunk_len() else { return true };
        let room = self.packet_room(self.control_path(None)) - COMMON_HEADER_LEN;
        self.profile.bundle_control && self.outlet().owed_sack_bytes() + length + padded_len(first) <= room
    }

    /// Sends a FORWARD-TSN in a packet of its own, with a SACK if one is owed on that path.
    pub(crate) fn transmit_forward_tsn(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.sender.owes_forward_tsn() {
            return None;
        }
        self.outlet().forward_tsn_len()?;
        let path = self.forward_tsn_path();
        let size = self.packet_room(path);
        let written = self.outlet().write_packet(size, buf, |this, writer| {
            let written = this.write_forward_tsn(path, writer);
            this.bundle_sack(path, 0, writer);
            written
        });
        written.then_some(path)
    }

    /// Returns a path in service. The path on which the latest FORWARD-TSN was lost ranks behind others because of its errors.
    fn forward_tsn_path(&self) -> PathId {
        let latest = self.sender.facts().last_new_data_path;
        let errors = |path: PathId| self.paths.facts(path).error_count;
        let preferred = latest.filter(|&path| self.paths.facts(path).state == PathState::Active);
        let active = self.paths.live().filter(|&id| self.paths.facts(id).state == PathState::Active);
        let least = active.min_by_key(|&id| (errors(id), Some(id) != preferred));
        self.control_path(least)
    }
}

impl Outlet<'_> {
    /// Returns the length of the next FORWARD-TSN, if it is due and may be sent in this state.
    fn forward_tsn_len(&mut self) -> Option<usize> {
        if !self.d.sender.owes_forward_tsn() || !self.state.takes_sacks() {
            return None;
        }
        let form = self.d.sender.queue().form();
        let most = most_entries(form, self.payload_bytes_per_chunk());
        self.d.sender.next_forward_tsn(most).map(|(_, streams)| length(form, streams.len()))
    }

    fn next_chunk_len(&self) -> Option<usize> {
        let lost = self.d.sender.lost().at_or_after(0).or_else(|| self.d.sender.bound().lowest());
        let new = || self.d.sender.queue().next_payload(self.payload_bytes_per_chunk());
        lost.map(|tsn| self.d.sender.chunk_len(tsn))
            .or_else(|| new().map(|payload| self.d.sender.queue().form().chunk_len(payload)))
    }

    /// Adds a FORWARD-TSN that is due in front of DATA, if a chunk of `first` bytes still fits behind it.
    pub(crate) fn bundle_forward_tsn(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        if !self.d.sender.owes_forward_tsn() || !self.d.paths.profile().bundle_control {
            return;
        }
        let fits = |length| padded_len(length) + padded_len(first) <= writer.remaining();
        if self.forward_tsn_len().is_some_and(fits) {
            self.write_forward_tsn(path, writer);
        }
    }

    fn write_forward_tsn(&mut self, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let form = self.d.sender.queue().form();
        let most = most_entries(form, writer.remaining());
        let written = self.d.sender.next_forward_tsn(most).and_then(|(up_to, streams)| {
            write(writer, form, Tsn::from_unwrapped(up_to), streams).ok().map(|()| up_to)
        });
        self.d.sender.note_forward_tsn(written, path, self.d.now);
        if written.is_none() {
            return false;
        }
        self.d.outputs.statistics.forward_tsns_sent += 1;
        // RFC 3758 section 3.5 C4: T3 runs for it.
        self.d.stop_t3_of_empty_paths();
        self.d.paths.ensure_t3(path, self.d.now);
        true
    }
}

/// Returns the length of a chunk with this number of entries.
fn length(form: DataForm, entries: usize) -> usize {
    match form {
        DataForm::Data => forward_tsn_len(entries),
        DataForm::IData => i_forward_tsn_len(entries),
    }
}

/// Returns the number of entries that a chunk in this room can have.
fn most_entries(form: DataForm, room: usize) -> usize {
    room.saturating_sub(length(form, 0)) / (length(form, 1) - length(form, 0))
}

/// Writes a FORWARD-TSN, or the I-FORWARD-TSN that replaces it for I-DATA.
fn write(
    writer: &mut PacketWriter<'_>,
    form: DataForm,
    up_to: Tsn,
    skipped: &[SkippedNumber],
) -> Result<(), NoSpace> {
    match form {
        DataForm::Data => {
            let ordered =
                skipped.iter().map(|entry| (StreamId::new(entry.stream), Ssn::new(entry.number as u16)));
            writer.forward_tsn(up_to, ordered)
        }
        DataForm::IData => {
            let messages = skipped.iter().map(|&SkippedNumber { stream, unordered, number }| SkippedMid {
                stream: StreamId::new(stream),
                unordered,
                mid: Mid::new(number),
            });
            writer.i_forward_tsn(up_to, messages)
        }
    }
}
