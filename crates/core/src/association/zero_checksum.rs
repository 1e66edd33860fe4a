//! Packets with a zero checksum, where DTLS below SCTP detects errors (RFC 9653).

use anabranch_wire::{ChunkType, Chunks, PacketWriter};

use crate::association::Association;
use crate::config::ErrorDetection;

/// Directions in which packets of an association may have a zero checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ZeroChecksum {
    /// Set once this side has announced its method: zero checksums of the peer are accepted (RFC 9653 section 5.3).
    accepted: bool,
    /// Set once the peer has announced the method of this side: zero checksums may be sent (RFC 9653 section 5.2).
    sent: bool,
}

impl ZeroChecksum {
    /// Returns the state after the INIT of this side, which announces the method if it is configured.
    pub(crate) fn of_initiator(detection: ErrorDetection) -> Self {
        ZeroChecksum { accepted: detection == ErrorDetection::LowerLayerDtls, sent: false }
    }

    /// Processes the announcement of the peer. An INIT ACK of this side announces its method if the peer's INIT does.
    pub(crate) fn agree(&mut self, detection: ErrorDetection, peer_accepts: bool) {
        self.sent = peer_accepts && detection == ErrorDetection::LowerLayerDtls;
        self.accepted |= self.sent;
    }

    /// Returns `true` if a packet with these chunks may have a zero checksum. INIT, COOKIE ECHO and ASCONF require a correct one
    /// (RFC 9653 section 5.2), because their receiver may look up the association by their content.
    pub(crate) fn permits(self, packet: &PacketWriter<'_>) -> bool {
        let requires = |kind| matches!(kind, ChunkType::INIT | ChunkType::COOKIE_ECHO | ChunkType::ASCONF);
        self.sent && !Chunks::of(packet.chunk_bytes()).flatten().any(|chunk| requires(chunk.kind()))
    }
}

impl Association {
    /// Returns `true` if a zero checksum of the peer is accepted in place of a correct one.
    pub(crate) fn accepts_zero_checksum(&self) -> bool {
        self.identity.zero_checksum.accepted
    }

    /// Returns `true` if both sides have announced that DTLS detects errors: this side sends zero checksums (RFC 9653), except in
    /// packets with COOKIE ECHO, ASCONF or DTLS chunks.
    pub fn sends_zero_checksums(&self) -> bool {
        self.identity.zero_checksum.sent
    }
}
