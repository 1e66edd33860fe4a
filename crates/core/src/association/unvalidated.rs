//! Messages of the key management ahead of user data: behind the COOKIE ECHO, and to an address that has yet to answer a
//! HEARTBEAT. Without that an association would have its keys two or three round trips later than it is up, instead of one.
//! User data has neither way: it needs keys.

use anabranch_wire::PacketWriter;

use crate::association::Association;
use crate::association::control::Control;
use crate::association::state::State;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::AddressValidation;
use crate::policy::LossCause;

/// COOKIE ECHOs that leave at a time, each with a part of the key management's first message: with a key share against quantum
/// computers that needs two. It is less than the five of one cookie that a guarded endpoint opens at once.
const MOST_ECHOES: u32 = 3;

/// Behind the COOKIE ECHO.
impl Association {
    /// Sends the COOKIE ECHO once more if it takes more of the key management along. Before the COOKIE ACK nothing may leave in
    /// any other packet (RFC 9260 section 5.1), because the peer may not know the association yet: with a cookie in each, the
    /// order in which they arrive does not matter to it.
    pub(crate) fn echo_again(&mut self) {
        let State::CookieEchoed { echoed_on: path, echoes, .. } = self.state else { return };
        let room = self.paths[path].packet_bytes.saturating_sub(self.cookie_echo_bytes());
        let more = self.outlet().has_key_management(path, room);
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
        self.outlet().fill_behind_cookie(path, writer);
    }

    /// The COOKIE ECHO got no answer, or the peer has no use for it: what went with it is to go with the next one.
    pub(crate) fn discard_data_bundled_with_cookie(&mut self) {
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
    pub(crate) fn transmit_to_unvalidated(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        let in_service = self.paths.any_active();
        if in_service || !matches!(self.state, State::Established) {
            return None;
        }
        let path = self.paths.live().find(|id| self.admits_full_packet(*id))?;
        let sent = self.outlet().key_management_packet(path, buf);
        self.follow_events();
        sent
    }

    fn admits_full_packet(&self, id: PathId) -> bool {
        let path = &self.paths[id];
        match path.validation {
            AddressValidation::Seen { allowance_bytes } => allowance_bytes >= path.packet_bytes as u64,
            AddressValidation::Trusted | AddressValidation::Listed => false,
        }
    }
}
