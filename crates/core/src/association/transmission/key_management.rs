//! Transmission of key management messages before user data may be sent.

use anabranch_wire::{COMMON_HEADER_LEN, PacketWriter, padded_len};

use crate::association::packets::PacketContext;
use crate::association::state::State;
use crate::association::transmission::{Outlet, Source, Transmission};
use crate::contents::Contents;
use crate::data_header::DataHeader;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::AddressValidation;
use crate::policy::{Reason, Refused, SendKind};
use crate::send::Admitted;
use crate::trace::DecisionRecord;

/// Minimum length of a fragment of a key management message, in bytes.
const LEAST_PIECE_BYTES: usize = 128;

const AHEAD: Reason = Reason::rule("the key management goes ahead");

/// Answer of the key management to a peer that has just opened the association. A guarded endpoint sends no other data to an address
/// that has not answered a HEARTBEAT. The cookie has come from this address. Therefore the endpoint may send three times the
/// received bytes to the address, as in QUIC (RFC 9000 section 8.1).
pub(super) struct UnvalidatedAddress;

impl Source for UnvalidatedAddress {
    fn next(&self, _: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if !matches!(out.state, State::Established) {
            return None;
        }
        let path = out.d.paths.live().find(|id| out.admits_full_packet(*id))?;
        out.key_management_packet(path, buf)
    }
}

impl Outlet<'_> {
    fn admits_full_packet(&self, id: PathId) -> bool {
        let path = &self.d.paths[id];
        match path.validation {
            AddressValidation::Seen { allowance_bytes } => allowance_bytes >= path.packet_bytes as u64,
            AddressValidation::Trusted | AddressValidation::Listed => false,
        }
    }

    /// Returns the TSN of the first chunk that waits for retransmission, if the chunk fits into `room` bytes.
    fn lost_within(&self, room: usize) -> Option<u64> {
        let first = self.d.sender.lost().at_or_after(0);
        first.filter(|&tsn| padded_len(self.d.sender.chunk_len(tsn)) <= room)
    }

    /// Returns the payload length of the next new key management chunk, at most `room` bytes with its header. Returns `None` if the
    /// room is too small, no message waits, or the peer's window or the path admits no new data.
    fn early_payload(&self, path: PathId, room: usize) -> Option<usize> {
        let room = room.saturating_sub(self.d.sender.queue().form().header_len()) / 4 * 4;
        if room < LEAST_PIECE_BYTES {
            return None;
        }
        let payload = self.d.sender.queue().next_key_management(room.min(self.payload_bytes_per_chunk()))?;
        let admitted = !self.d.sender.exceeds_window(payload) && self.d.view().admits_new_data(path);
        admitted.then_some(payload)
    }

    /// Fills a packet with new chunks of the key management. Returns `true` if it added at least one.
    fn fill_with_key_management(&mut self, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let mut any = false;
        while let Some(payload) = self.early_payload(path, writer.remaining()) {
            let Some(mut draft) = self.d.sender.cut(payload) else { break };
            draft.immediate |= self.asks_for_sack(&draft, path);
            let header = DataHeader::new(self.d.sender.outstanding().next_tsn(), &draft);
            if Contents::Carried.write(writer, &header, &draft.payload).is_err() {
                debug_assert!(false, "early_payload promised room");
                break;
            }
            let Admitted { tsn, .. } = self.d.update_sender(|sender| sender.admit(draft, path));
            self.d.record(DecisionRecord::Schedule(path), tsn, AHEAD, &Refused::new());
            self.first_transmission(tsn, SendKind::New);
            any = true;
        }
        any
    }

    /// Returns `true` if a DATA chunk can be sent in `room` bytes behind a COOKIE ECHO: a retransmission or new data of the key
    /// management.
    pub(super) fn has_key_management(&self, path: PathId, room: usize) -> bool {
        self.lost_within(room).is_some() || self.early_payload(path, room).is_some()
    }

    /// Adds DATA chunks behind a COOKIE ECHO while they fit: first retransmissions, then new chunks of the key management.
    pub(super) fn fill_behind_cookie(&mut self, path: PathId, writer: &mut PacketWriter<'_>) {
        let mut any = false;
        while let Some(tsn) = self.lost_within(writer.remaining()) {
            let Some(chunk) = self.d.sender.prepare_retransmission(tsn, false) else { break };
            let header = DataHeader::new(tsn, &chunk.draft);
            if Contents::Carried.write(writer, &header, &chunk.draft.payload).is_err() {
                break;
            }
            self.resend_chunk(path, tsn);
            any = true;
        }
        any |= self.d.sender.lost().is_empty() && self.fill_with_key_management(path, writer);
        if any {
            self.data_packet_left(path);
        }
    }

    /// Builds a packet with new key management chunks for a path whose address is not validated. Returns `None` if no chunk may be
    /// sent.
    fn key_management_packet(&mut self, path: PathId, buf: &mut PacketBuffer) -> Option<PathId> {
        let size = self.d.paths[path].packet_bytes;
        let payload = self.early_payload(path, size - COMMON_HEADER_LEN)?;
        let first = self.d.sender.queue().form().chunk_len(payload);
        self.write_packet(size, buf, |this, writer| {
            this.bundle_control(path, first, writer);
            this.fill_with_key_management(path, writer);
        });
        self.data_packet_left(path);
        Some(path)
    }
}
