//! Telling the peer that the flags of our SACKs count packets (CMT's delayed acks), and that we read its flags so.
//!
//! No specification says how DAC's number is coded; other stacks that know the algorithm code it otherwise. So it is used
//! between endpoints that recognise each other only, by a parameter of INIT and INIT-ACK that others pass over in silence.

use anabranch_wire::{InitView, Param, ParamType, RawParam};

use crate::profile::{Profile, SackFlags};

/// The high bits 10 mean that who does not know the type passes over it and reports nothing (RFC 9260 section 3.2.1). The type
/// is not registered, so a name and a version follow it.
const SACK_FLAGS: ParamType = ParamType(0xBADA);

/// Type, length, name, version.
const PARAM: &[u8] = &[0xBA, 0xDA, 0, 16, b'a', b'n', b'a', b'b', b'r', b'a', b'n', b'c', b'h', 0, 0, 1];

/// The parameter, where the profile announces it.
pub(crate) fn param(profile: &Profile) -> Option<Param<'static>> {
    let announced = profile.sack_flags == SackFlags::Announced;
    announced.then(|| RawParam::parse(PARAM).map(Param::Unknown).ok()).flatten()
}

/// Whether an INIT or INIT-ACK has it.
pub(crate) fn is_announced(init: &InitView<'_>) -> bool {
    init.raw_params().map_while(Result::ok).any(|raw| raw.kind() == SACK_FLAGS && raw.bytes() == PARAM)
}
