//! COOKIE ECHO with early key management messages behind it. Keys are then in use one round trip after the handshake, instead of two
//! or three. User data is not sent early, because it needs keys.
//!
//! If the messages do not fit one packet, the COOKIE ECHO is sent again with the next ones. Before the COOKIE ACK, no packet may be
//! sent without the cookie (RFC 9260 section 5.1), because the peer may not have created the association. Each packet contains the
//! cookie, so the packets may arrive in any order.

use anabranch_wire::PacketWriter;

use crate::association::packets::PacketContext;
use crate::association::state::State;
use crate::association::transmission::{Outlet, Source, Transmission};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;

/// COOKIE ECHO that is due, and further ones while key management chunks wait.
pub(super) struct CookieEchoes;

impl Source for CookieEchoes {
    fn next(&self, _: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        let (path, cookie_bytes) = out.cookie_echo_due()?;
        // The peer decides the length of a cookie. IP fragments a packet larger than the path's packets.
        //= docs/rfc9260.txt#section-3.3.3
        //# Implementation Note: An implementation MUST be prepared to receive an INIT ACK chunk that is quite
        //# large (more than 1500 bytes) due to the variable size of the State Cookie and the variable address
        //# list.
        let size = out.packet_room(path).max(cookie_bytes);
        let header = out.header();
        let written = out.build_packet(size, header, buf, Outlet::lead_with_cookie, |this, writer| {
            let written = !writer.is_empty();
            if written && this.protection.awaits_keys() {
                this.fill_behind_cookie(path, writer);
            }
            written
        });
        (written == Some(true)).then_some(path)
    }
}

impl Outlet<'_> {
    /// Returns the path of the next COOKIE ECHO, and the bytes of its packet without DATA. Returns `None` if none is to be sent.
    fn cookie_echo_due(&self) -> Option<(PathId, usize)> {
        let State::CookieEchoed { echo, .. } = &*self.state else { return None };
        let path = self.d.paths.get_live(echo.path())?;
        let room = path.packet_bytes.saturating_sub(echo.packet_bytes());
        let again = || {
            echo.may_repeat() && self.protection.awaits_keys() && self.has_key_management(echo.path(), room)
        };
        (echo.is_due() || again()).then_some((echo.path(), echo.packet_bytes()))
    }

    fn lead_with_cookie(&mut self, writer: &mut PacketWriter<'_>) {
        if let State::CookieEchoed { echo, .. } = self.state {
            echo.note_sent();
            // A chunk that cannot be written leaves the packet empty.
            let _ = echo.write(writer);
        }
    }
}
