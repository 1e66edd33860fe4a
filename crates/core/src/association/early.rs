//! Messages of the key management ahead of user data: behind the COOKIE ECHO, and to an address that has yet to answer a
//! HEARTBEAT. Without that an association would have its keys two or three round trips later than it is up, instead of one.
//! User data has neither way: it needs keys.

use anabranch_wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, PacketWriter, padded_len};

use crate::association::Association;
use crate::association::control::Control;
use crate::association::outbound::data_repr;
use crate::association::state::State;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::AddressValidation;
use crate::policy::{LossCause, Reason, Refused, SendKind};
use crate::send::Admitted;
use crate::trace::Decided;

/// COOKIE ECHOs that leave at a time, each with a part of the key management's first message: with a key share against quantum
/// computers that needs two. It is less than the five of one cookie that a guarded endpoint opens at once.
const MOST_ECHOES: u32 = 3;

/// The shortest part of a message that is worth a place.
const LEAST_PIECE_BYTES: usize = 128;

const AHEAD: Reason = Reason::rule("the key management goes ahead");

/// Behind the COOKIE ECHO.
impl Association {
    /// Sends the COOKIE ECHO once more if it takes more of the key management along. Before the COOKIE ACK nothing may leave in
    /// any other packet (RFC 9260 section 5.1), because the peer may not know the association yet: with a cookie in each, the
    /// order in which they arrive does not matter to it.
    pub(crate) fn echo_again(&mut self) {
        let State::CookieEchoed { echoed_on: path, echoes, .. } = self.state else { return };
        let room = self.paths[path].packet_bytes.saturating_sub(self.cookie_echo_bytes());
        let more = self.lost_within(room).is_some() || self.early_payload(path, room).is_some();
        if more && echoes < MOST_ECHOES && self.control.is_empty() && !self.paths[path].removed {
            self.control.push(Control::CookieEcho { path });
        }
    }

    /// Puts as much of the key management behind a COOKIE ECHO as fits.
    pub(crate) fn fill_behind_cookie(&mut self, path: PathId, writer: &mut PacketWriter<'_>) {
        if let State::CookieEchoed { echoes, .. } = &mut self.state {
            *echoes += 1;
        }
        if !self.protection.awaits_keys() {
            return;
        }
        let mut any = false;
        while let Some(tsn) = self.lost_within(writer.remaining()) {
            let Some(chunk) = self.sender.prepare_retransmission(tsn, false) else { break };
            if writer.data(&data_repr(tsn, &chunk.draft), &chunk.draft.payload).is_err() {
                break;
            }
            self.resend_chunk(path, tsn);
            any = true;
        }
        any |= self.sender.lost().is_empty() && self.fill_with_key_management(path, writer);
        if any {
            self.data_packet_left(path);
        }
    }

    /// The first chunk that is to leave again, if it fits.
    fn lost_within(&self, room: usize) -> Option<u64> {
        let first = self.sender.lost().at_or_after(0);
        first.filter(|&tsn| padded_len(self.sender.chunk_len(tsn)) <= room)
    }

    /// The COOKIE ECHO got no answer, or the peer has no use for it: what went with it is to go with the next one.
    pub(crate) fn lose_what_went_with_cookie(&mut self) {
        for id in self.paths.ids() {
            self.paths.cancel_measurement(id);
            self.mark_path_lost(id, LossCause::Timeout, true);
        }
    }
}

/// To an address that has yet to answer.
impl Association {
    /// A side that a peer has just opened sends what its key management answers. A guarded endpoint sends no other data to an
    /// address before that has answered a HEARTBEAT, and here no more than the address is worth: the cookie has come from there,
    /// so it gets three times what came with it (RFC 9000 section 8.1 has the same for the same reason).
    pub(crate) fn transmit_to_unproved(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        let in_service = self.paths.any_active();
        if in_service || !matches!(self.state, State::Established) {
            return None;
        }
        let path = self.paths.live().find(|id| self.admits_full_packet(*id))?;
        let size = self.paths[path].packet_bytes;
        let first = DATA_HEADER_LEN + self.early_payload(path, size - COMMON_HEADER_LEN)?;
        self.write_packet(size, buf, |this, writer| {
            this.bundle_control(path, first, writer);
            this.fill_with_key_management(path, writer);
        });
        self.data_packet_left(path);
        Some(path)
    }

    fn admits_full_packet(&self, id: PathId) -> bool {
        let path = &self.paths[id];
        match path.validation {
            AddressValidation::Seen { allowance_bytes } => allowance_bytes >= path.packet_bytes as u64,
            AddressValidation::Trusted | AddressValidation::Listed => false,
        }
    }
}

impl Association {
    /// User bytes of the key management's next chunk that may leave on a path, in so much room.
    fn early_payload(&self, path: PathId, room: usize) -> Option<usize> {
        let room = room.saturating_sub(DATA_HEADER_LEN) / 4 * 4;
        if room < LEAST_PIECE_BYTES {
            return None;
        }
        let payload = self.sender.queue().next_key_management(room.min(self.payload_bytes_per_chunk()))?;
        let admitted = !self.sender.exceeds_window(payload) && self.view().admits_new_data(path);
        admitted.then_some(payload)
    }

    /// Whether there was something.
    fn fill_with_key_management(&mut self, path: PathId, writer: &mut PacketWriter<'_>) -> bool {
        let mut any = false;
        while let Some(payload) = self.early_payload(path, writer.remaining()) {
            let Some(draft) = self.sender.cut(payload) else { break };
            let draft = self.finish_draft(draft, path);
            let repr = data_repr(self.sender.outstanding().next_tsn(), &draft);
            if writer.data(&repr, &draft.payload).is_err() {
                debug_assert!(false, "early_payload promised room");
                break;
            }
            let Admitted { tsn, .. } = self.update_sender(|sender| sender.admit(draft, path));
            self.record(Decided::Schedule(path), tsn, AHEAD, &Refused::new());
            self.first_transmission(tsn, SendKind::New);
            any = true;
        }
        any
    }
}
