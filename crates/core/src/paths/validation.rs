//! Validation of the remote address, its source, and rebinding to another port (RFC 9260 section 5.4, RFC 6951 section 5.4).

use crate::address::PathAddress;
use crate::path_id::PathId;
use crate::paths::Paths;
use crate::paths::path::{AddressValidation, Path, PathSource};

/// Bytes that may be sent to an unvalidated address for each byte from it, as in QUIC (RFC 9000 section 8.1).
pub(crate) const REPLY_FACTOR: u64 = 3;

impl Paths {
    /// Changes the addresses of a path.
    pub(crate) fn rebind(&mut self, id: PathId, address: PathAddress) {
        self.paths[id.index()].address = address;
    }

    /// Marks a path as learned from a packet. On a guarded endpoint, nothing may be sent to its address yet.
    pub(crate) fn mark_learned(&mut self, id: PathId, guarded: bool) {
        let path = &mut self.paths[id.index()];
        path.source = PathSource::Learned;
        if guarded {
            path.validation = AddressValidation::Seen { allowance_bytes: 0 };
        }
    }

    /// Marks a path as offered by the driver, because the peer has reported its address.
    pub(crate) fn mark_offered(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.source = PathSource::Offered;
        path.validation = AddressValidation::Listed;
    }

    /// Marks the address of a path as listed by the peer, without a packet from it.
    pub(crate) fn mark_listed(&mut self, id: PathId) {
        self.paths[id.index()].validation = AddressValidation::Listed;
    }

    pub(crate) fn trust(&mut self, id: PathId) {
        self.paths[id.index()].validation = AddressValidation::Trusted;
    }

    /// Limits a path to an unproved address to the reply to a packet of this many bytes.
    pub(crate) fn limit_to_reply(&mut self, id: PathId, bytes: usize) {
        let allowance_bytes = REPLY_FACTOR * bytes as u64;
        self.paths[id.index()].validation = AddressValidation::Seen { allowance_bytes };
    }

    /// Counts a packet that came from the remote address of a path.
    pub(crate) fn note_received(&mut self, id: PathId, bytes: usize, guarded: bool) {
        let Path { validation, received_bytes, .. } = &mut self.paths[id.index()];
        *received_bytes += bytes as u64;
        let more = REPLY_FACTOR * bytes as u64;
        *validation = match *validation {
            AddressValidation::Listed if guarded => AddressValidation::Seen { allowance_bytes: more },
            AddressValidation::Trusted | AddressValidation::Listed => AddressValidation::Trusted,
            AddressValidation::Seen { allowance_bytes } => {
                AddressValidation::Seen { allowance_bytes: allowance_bytes.saturating_add(more) }
            }
        };
    }

    /// Returns `true` if a packet of this length may be sent to the remote address of a path, and counts it. On a guarded endpoint,
    /// an address that was only listed gets at most `small` bytes.
    pub(crate) fn admit_packet(&mut self, id: PathId, bytes: usize, small: usize, guarded: bool) -> bool {
        match &mut self.paths[id.index()].validation {
            AddressValidation::Trusted => true,
            AddressValidation::Listed => bytes <= small || !guarded,
            AddressValidation::Seen { allowance_bytes } => {
                let left = allowance_bytes.checked_sub(bytes as u64);
                *allowance_bytes = left.unwrap_or(*allowance_bytes);
                left.is_some()
            }
        }
    }

    /// Records that another path may have replaced this one.
    pub(crate) fn set_successor(&mut self, id: PathId, successor: PathId) {
        self.paths[id.index()].successor = Some(successor);
    }

    /// Counts an announcement of the local address, and returns the number of earlier ones.
    pub(crate) fn count_announcement(&mut self, id: PathId) -> u8 {
        let announcements = &mut self.paths[id.index()].announcements;
        let before = *announcements;
        *announcements += 1;
        before
    }
}
