//! Refusals of an unanswered INIT by the network or the operating system (RFC 9260 section 10, RFC 6951 section 5.5).
//!
//! A refusal counts in COOKIE-WAIT only. One that the network reports has to quote the own INIT with its tag. A forged ICMP message
//! therefore has no effect: its sender would have to see the INIT, and could send an ABORT as well.

use anabranch_wire::QuotedInit;

use crate::address::PathAddress;
use crate::association::Association;
use crate::association::state::State;
use crate::error::{AbortReason, Refusal};
use crate::path_id::{PathId, PathSet};

impl Association {
    /// Returns the paths on which an own INIT is unanswered and not refused.
    pub fn unanswered_init(&self) -> impl Iterator<Item = PathAddress> + '_ {
        let tried = match &self.state {
            State::CookieWait { opening, .. } => opening.tried,
            _ => PathSet::EMPTY,
        };
        let waits = self.unrefused_paths().filter(move |id| tried.contains(*id));
        waits.map(|id| self.paths[id].address)
    }

    /// Handles a refusal of a packet that begins with this INIT. Returns `false` for a foreign INIT, or if the peer has answered.
    //= docs/rfc9260.txt#section-10
    //# ICMP6)  An implementation MUST validate that the Verification Tag contained in the ICMP message matches the
    //# Verification Tag of the peer.
    //= docs/rfc9260.txt#section-10
    //# If the ICMP message is too short or the chunk type or the Initiate Tag does not match, silently discard the packet.
    pub(crate) fn quoted_init_refused(
        &mut self,
        address: PathAddress,
        quoted: &QuotedInit,
        refusal: Refusal,
    ) -> bool {
        let is_ours = quoted.header.source_port == self.identity.local_port
            && quoted.header.destination_port == self.identity.peer_port
            && quoted.header.verification_tag == 0
            && quoted.initiate_tag == self.identity.local_tag;
        is_ours && self.init_refused(address, refusal)
    }

    /// Ends the attempt on a path, and the whole attempt once every path is refused. Returns `false` if INIT was answered, or not
    /// sent on this path.
    //= docs/rfc9260.txt#section-10
    //# If it does contain an INIT chunk and the association is in the COOKIE-WAIT state, handle the ICMP message like an
    //# ABORT chunk.
    pub(crate) fn init_refused(&mut self, address: PathAddress, refusal: Refusal) -> bool {
        let Some(path) = self.paths.find(address) else { return false };
        let State::CookieWait { opening, stagger } = &mut self.state else { return false };
        if !opening.tried.contains(path) {
            return false;
        }
        opening.refused.insert(path);
        let worst = opening.refusal.map_or(refusal, |known| known.min(refusal));
        opening.refusal = Some(worst);
        if stagger.path == path && stagger.left > 0 {
            // The handshake continues on the next path at once.
            stagger.next_at = Some(self.now);
        }
        if self.unrefused_paths().next().is_none() {
            self.control.clear();
            self.abort_with(AbortReason::Refused(worst));
        }
        true
    }

    /// Returns the paths on which the attempt to open the association has not ended.
    pub(crate) fn unrefused_paths(&self) -> impl Iterator<Item = PathId> + '_ {
        let refused = self.state.opening().map_or_else(Default::default, |opening| opening.refused);
        self.paths.live().filter(move |id| !refused.contains(*id))
    }

    /// Returns this path, or the next one if the path was removed or the attempt on it has ended.
    pub(crate) fn unrefused_or_next(&self, path: PathId) -> PathId {
        if self.unrefused_paths().any(|id| id == path) { path } else { self.path_after(path) }
    }
}
