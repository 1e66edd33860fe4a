//! Early key management messages: behind the COOKIE ECHO, and to an address that has not answered a HEARTBEAT. Keys are then in use
//! one round trip after the handshake, instead of two or three. User data is not sent early, because it needs keys.

use anabranch_wire::PacketWriter;

use crate::association::Association;
use crate::association::control::Control;
use crate::association::state::State;
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::AddressValidation;
use crate::policy::LossCause;

/// Maximum number of COOKIE ECHOs sent at a time, each with a part of the key management's first message. A key share against
/// quantum computers needs two. The maximum is below the number of packets with one cookie that a guarded endpoint processes at
/// once, which is five.
const MOST_ECHOES: u32 = 3;

/// Data behind the COOKIE ECHO.
impl Association {
    /// Sends the COOKIE ECHO again if further key management chunks wait. Before the COOKIE ACK, no packet may be sent without the
    /// cookie (RFC 9260 section 5.1), because the peer may not have created the association. Each packet contains the cookie, so
    /// the packets may arrive in any order.
    pub(crate) fn echo_again(&mut self) {
        let State::CookieEchoed { echoed_on: path, echoes, .. } = self.state else { return };
        let room = self.paths[path].packet_bytes.saturating_sub(self.cookie_echo_bytes());
        let more = self.outlet().has_key_management(path, room);
        if more && echoes < MOST_ECHOES && self.control.is_empty() && !self.paths[path].removed {
            self.control.push(Control::CookieEcho { path });
        }
    }

    /// Adds key management chunks behind a COOKIE ECHO while they fit.
    pub(crate) fn fill_behind_cookie(&mut self, path: PathId, writer: &mut PacketWriter<'_>) {
        if let State::CookieEchoed { echoes, .. } = &mut self.state {
            *echoes += 1;
        }
        if !self.protection.awaits_keys() {
            return;
        }
        self.outlet().fill_behind_cookie(path, writer);
    }

    /// Marks the data behind a COOKIE ECHO as lost, because the peer did not accept it. The next one carries it again.
    pub(crate) fn discard_data_bundled_with_cookie(&mut self) {
        for id in self.paths.ids() {
            self.paths.cancel_measurement(id);
            self.mark_path_lost(id, LossCause::Timeout, true);
        }
    }
}

/// Data to an unvalidated address.
impl Association {
    /// Sends the key management's answer to a peer that has just opened the association. A guarded endpoint sends no other data to
    /// an address that has not answered a HEARTBEAT. The cookie has come from this address. Therefore the endpoint may send three
    /// times the received bytes to the address, as in QUIC (RFC 9000 section 8.1).
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
