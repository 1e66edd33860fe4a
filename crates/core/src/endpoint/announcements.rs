//! Extensions that an INIT ACK announces: those of the existing association with the peer, or else those of a new association.

use anabranch_wire::{InitView, Param};

use crate::address::Origin;
use crate::association::Association;
use crate::config::ErrorDetection;
use crate::endpoint::Endpoint;
use crate::init::{sack_flags, stream_control, zero_checksum};

impl Endpoint {
    /// Returns `true` if the association supports ASCONF.
    pub(super) fn accepts_asconf(&self, origin: Origin, peer_port: u16) -> bool {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = || self.config.accept.as_ref().is_some_and(|accept| accept.address_changes.asconf);
        existing.map_or_else(accepted, |association| association.announces().asconf)
    }

    /// Returns `true` if the association acknowledges with NR-SACK.
    pub(super) fn announces_nr_sack(&self, origin: Origin, peer_port: u16) -> bool {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        existing.map_or(self.accept_announces_nr_sack, |association| association.announces().nr_sack)
    }

    /// Returns `true` if the association supports RE-CONFIG.
    pub(super) fn announces_re_config(&self, origin: Origin, peer_port: u16) -> bool {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = || self.config.accept.as_ref().is_some_and(|accept| accept.stream_changes.is_some());
        existing.map_or_else(accepted, |association| association.announces().re_config)
    }

    /// Returns `true` if the association supports I-DATA.
    pub(super) fn announces_i_data(&self, origin: Origin, peer_port: u16) -> bool {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = || self.config.accept.as_ref().is_some_and(|accept| accept.interleaving);
        existing.map_or_else(accepted, |association| association.announces().i_data)
    }

    /// Returns the parameter about the flags of the association's SACKs.
    pub(super) fn announced_sack_flags(&self, origin: Origin, peer_port: u16) -> Option<Param<'static>> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = self.config.accept.as_ref().map(|config| &config.profile);
        sack_flags::param(existing.map(Association::profile).or(accepted)?)
    }

    /// Returns the parameter about the control of the association's streams.
    pub(super) fn announced_stream_control(&self, origin: Origin, peer_port: u16) -> Option<Param<'static>> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let accepted = || self.config.accept.as_ref().is_some_and(|accept| accept.stream_control);
        let announced = existing.map_or_else(accepted, |association| association.announces().stream_control);
        stream_control::param(announced)
    }

    /// Returns the parameter about zero checksums, if the INIT has it too. An answer to another INIT would be longer for nothing: its
    /// sender never sends a zero checksum.
    pub(super) fn announced_zero_checksum(
        &self,
        origin: Origin,
        peer_port: u16,
        init: &InitView<'_>,
    ) -> Option<Param<'static>> {
        let existing = self.by_address(origin, peer_port).and_then(|id| self.table.get(id));
        let detection = || self.config.accept.as_ref().map(|accept| accept.error_detection);
        let accepted = || detection() == Some(ErrorDetection::LowerLayerDtls);
        let announced = existing.map_or_else(accepted, |association| association.announces().zero_checksum);
        zero_checksum::param(announced && zero_checksum::is_announced(init))
    }
}
