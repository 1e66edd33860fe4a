//! Announcement that the driver's streams have flow control, ends and resets of their own, in both directions.
//!
//! SCTP has one receive window for all streams. Endpoints that recognise each other by this parameter of INIT and INIT-ACK grant
//! each other credit for each stream, in messages above SCTP. Other stacks ignore the parameter silently.

use anabranch_wire::{InitView, Param, ParamType, RawParam};

/// Parameter type. Its high bits 10 make endpoints that do not know it skip it without a report (RFC 9260 section 3.2.1). The type
/// is not registered, so a name and a version follow it.
const STREAM_CONTROL: ParamType = ParamType(0xBADC);

/// Type, length, name, version.
const PARAM: &[u8] = &[0xBA, 0xDC, 0, 16, b'a', b'n', b'a', b'b', b'r', b'a', b'n', b'c', b'h', 0, 0, 1];

/// Returns the parameter, if it is announced.
pub(crate) fn param(announced: bool) -> Option<Param<'static>> {
    announced.then(|| RawParam::parse(PARAM).map(Param::Unknown).ok()).flatten()
}

/// Returns `true` if an INIT or INIT-ACK contains the parameter.
pub(crate) fn is_announced(init: &InitView<'_>) -> bool {
    init.raw_params().map_while(Result::ok).any(|raw| raw.kind() == STREAM_CONTROL && raw.bytes() == PARAM)
}
