//! Announcement that a side accepts packets with a zero checksum, because DTLS below SCTP detects errors (RFC 9653 section 5.1).

use anabranch_wire::{ErrorDetectionMethod, InitView, Param};

use crate::init::stops;

/// Returns the parameter, if it is announced.
pub(crate) fn param(announced: bool) -> Option<Param<'static>> {
    announced.then_some(Param::ZeroChecksumAcceptable(ErrorDetectionMethod::LOWER_LAYER_DTLS))
}

/// Returns `true` if an INIT or INIT ACK names DTLS as the method. The first parameter counts, because a chunk must not have more than
/// one (RFC 9653 section 4).
pub(crate) fn is_announced(init: &InitView<'_>) -> bool {
    let params = init.params().take_while(|param| !stops(param)).flatten();
    let mut methods = params.filter_map(|param| match param {
        Param::ZeroChecksumAcceptable(method) => Some(method),
        _ => None,
    });
    methods.next() == Some(ErrorDetectionMethod::LOWER_LAYER_DTLS)
}
