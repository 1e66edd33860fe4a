//! Announcement that the flags of SACKs count packets (CMT's delayed acks), in both directions.
//!
//! No specification defines the encoding of DAC's number, and other stacks with the algorithm use a different one. It is therefore
//! used only between endpoints that recognise each other by a parameter of INIT and INIT-ACK that others ignore silently.

use anabranch_wire::{InitView, Param, ParamType, RawParam};

use crate::profile::{Profile, SackFlags};

/// Parameter type. Its high bits 10 make endpoints that do not know it skip it without a report (RFC 9260 section 3.2.1). The type
/// is not registered, so a name and a version follow it.
const SACK_FLAGS: ParamType = ParamType(0xBADA);

/// Type, length, name, version.
const PARAM: &[u8] = &[0xBA, 0xDA, 0, 16, b'a', b'n', b'a', b'b', b'r', b'a', b'n', b'c', b'h', 0, 0, 1];

/// Returns the parameter, if the profile announces it.
pub(crate) fn param(profile: &Profile) -> Option<Param<'static>> {
    let announced = profile.sack_flags == SackFlags::Announced;
    announced.then(|| RawParam::parse(PARAM).map(Param::Unknown).ok()).flatten()
}

/// Returns `true` if an INIT or INIT-ACK contains the parameter.
pub(crate) fn is_announced(init: &InitView<'_>) -> bool {
    init.raw_params().map_while(Result::ok).any(|raw| raw.kind() == SACK_FLAGS && raw.bytes() == PARAM)
}
