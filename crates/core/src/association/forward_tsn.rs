//! Sending FORWARD-TSN (RFC 3758 sections 3.2 and 3.5): telling the peer not to wait for what was abandoned.
//!
//! One is due once everything up to the ack point of RFC 3758 is acknowledged or abandoned and the peer's cumulative TSN is below
//! it: when the ack point moves, when a SACK a round trip later still does not cover it, and when T3 of its path expires, on
//! another path if there is one. T3 runs on its path until it is acknowledged, and its expiry is one like that of DATA: the
//! path's errors are counted and its window is cut. It goes in front of DATA or beside a SACK where there is room, else alone.
//!
//! It names the streams that skip. If they are more than fit a packet, it goes only as far as its list does, and the next one
//! leaves when it is acknowledged: were both under way, a loss of the first would leave streams waiting.

use anabranch_wire::{
    COMMON_HEADER_LEN, DATA_HEADER_LEN, PacketWriter, Ssn, StreamId, Tsn, forward_tsn_len, padded_len,
};

use crate::association::Association;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathState};
use crate::policy::ProofOfLife;
use crate::time::Time;

/// The latest FORWARD-TSN that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct SentForwardTsn {
    /// The TSN that it names.
    up_to: u64,
    /// The ack point at that time.
    ack_point: u64,
    path: PathId,
    at: Time,
}

/// What is known about FORWARD-TSNs to the peer.
#[derive(Debug, Default)]
pub(crate) struct ForwardTsnState {
    due: bool,
    sent: Option<SentForwardTsn>,
    /// The streams of the next one. Memory that is used again.
    streams: Vec<(u16, u16)>,
}

impl ForwardTsnState {
    /// Whether T3 of this path runs for it.
    #[inline]
    pub(crate) fn waits_on(&self, path: PathId) -> bool {
        self.sent.is_some_and(|sent| sent.path == path)
    }
}

impl Association {
    /// Abandonment or a SACK may have moved the ack point, or a FORWARD-TSN may have been lost.
    pub(crate) fn consider_forward_tsn(&mut self) {
        if !self.sender.skips_something() {
            self.control.forward.due = false;
            return;
        }
        let ack_point = self.sender.advance_ack_point();
        if ack_point <= self.sender.outstanding().cumulative() {
            self.control.forward.due = false;
            return;
        }
        self.control.forward.due |= match self.control.forward.sent {
            None => true,
            Some(sent) => ack_point > sent.ack_point || self.now.since(sent.at) >= self.round_trip(sent.path),
        };
    }

    fn round_trip(&self, path: PathId) -> crate::time::Span {
        let facts = self.paths.facts(path);
        facts.rtt.smoothed.unwrap_or(facts.rto)
    }

    /// The cumulative TSN has moved on.
    pub(crate) fn forward_tsn_acked(&mut self, cumulative: u64) {
        let Some(sent) = self.control.forward.sent.take_if(|sent| sent.up_to <= cumulative) else { return };
        self.stop_t3_if_nothing_flies();
        // The abandoned data may have arrived after all, on whichever path.
        self.path_proved(sent.path, ProofOfLife::Ambiguous);
    }

    /// T3 has expired on this path, or it is out of service: what waits there leaves once more.
    pub(crate) fn withdraw_forward_tsn(&mut self, path: PathId) {
        if self.control.forward.sent.take_if(|sent| sent.path == path).is_some() {
            self.control.forward.due = true;
            self.stop_t3_if_nothing_flies();
        }
    }

    /// Length of the next one, if it is due and may leave in this state.
    fn forward_tsn_len(&mut self) -> Option<usize> {
        if !self.control.forward.due || !self.state.takes_sacks() {
            return None;
        }
        let most = self.payload_bytes_per_chunk().saturating_sub(forward_tsn_len(0)) / 4;
        let mut streams = std::mem::take(&mut self.control.forward.streams);
        let up_to = self.sender.skipped_streams(most, &mut streams);
        self.control.forward.streams = streams;
        up_to.map(|_| forward_tsn_len(self.control.forward.streams.len()))
    }

    /// Whether a FORWARD-TSN that is due and the next DATA chunk fit one packet. If not, it goes ahead on its own.
    pub(crate) fn forward_tsn_can_ride(&mut self) -> bool {
        let Some(length) = self.forward_tsn_len() else { return true };
        let Some(first) = self.next_chunk_len() else { return true };
        let room = self.packet_room(self.control_path(None)) - COMMON_HEADER_LEN;
        self.profile.bundle_control && self.owed_sack_bytes() + length + padded_len(first) <= room
    }

    fn next_chunk_len(&self) -> Option<usize> {
        let lost = self.sender.lost().at_or_after(0).or_else(|| self.sender.bound().lowest());
        let new = || self.sender.queue().next_payload(self.payload_bytes_per_chunk());
        lost.map(|tsn| self.sender.chunk_len(tsn)).or_else(|| new().map(|payload| DATA_HEADER_LEN + payload))
    }

    /// A FORWARD-TSN in a packet of its own, with a SACK if one is owed on that path.
    pub(crate) fn transmit_forward_tsn(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        self.forward_tsn_len()?;
        let path = self.forward_tsn_path();
        let size = self.packet_room(path);
        let written = self.write_packet(size, buf, |this, writer| {
            let written = this.write_forward_tsn(path, writer);
            this.bundle_sack(path, 0, writer);
            written
        });
        written.then_some(path)
    }

    /// One in service, and not the one on which the latest was lost: that is not active any more, or has its turn again.
    fn forward_tsn_path(&self) -> PathId {
        let latest = self.sender.facts().last_new_data_path;
        let errors = |path: PathId| self.paths.facts(path).error_count;
        let preferred = latest.filter(|&path| self.paths.facts(path).state == PathState::Active);
        let active = self.paths.live().filter(|&id| self.paths.facts(id).state == PathState::Active);
        let least = active.min_by_key(|&id| (errors(id), Some(id) != preferred));
        self.control_path(least)
    }

    /// Puts a FORWARD-TSN that is due in front of DATA, if a chunk of `first` bytes still fits behind it.
    pub(crate) fn bundle_forward_tsn(&mut self, path: PathId, first: usize, writer: &mut PacketWriter<'_>) {
        if !self.control.forward.due || !self.profile.bundle_control {
            return;
        }
        let fits = |length| padded_len(length) + padded_len(first) <= writer.remaining();
        if self.forward_tsn_len().is_some_and(fits) {
            self.write_forward_tsn(path, writer);
        }
    }

    fn write_forward_tsn(&mut self, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let most = writer.remaining().saturating_sub(forward_tsn_len(0)) / 4;
        let mut list = std::mem::take(&mut self.control.forward.streams);
        let up_to = self.sender.skipped_streams(most, &mut list);
        let streams = list.iter().map(|&(stream, ssn)| (StreamId::new(stream), Ssn::new(ssn)));
        let written = up_to.filter(|&up_to| writer.forward_tsn(Tsn::from_unwrapped(up_to), streams).is_ok());
        self.control.forward.streams = list;
        self.control.forward.due = false;
        let Some(up_to) = written else { return false };
        self.outputs.statistics.forward_tsns_sent += 1;
        let ack_point = self.sender.advance_ack_point();
        self.control.forward.sent = Some(SentForwardTsn { up_to, ack_point, path, at: self.now });
        // RFC 3758 section 3.5 C4: T3 runs for it.
        self.stop_t3_if_nothing_flies();
        self.paths.ensure_t3(path, self.now);
        true
    }
}
