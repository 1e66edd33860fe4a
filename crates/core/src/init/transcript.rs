//! Digest of a handshake, by which both sides verify that its INIT and INIT ACK were not changed.
//!
//! It covers all fields and parameters except the State Cookie, which carries the digest itself, and padding, whose length depends
//! on the path. Addresses and ports outside of the chunks are not covered, because NATs change them.

use anabranch_wire::{InitView, ParamType};
use sha2::{Digest, Sha256};

use crate::protection::Transcript;

/// Prefix that separates these digests from others of the same bytes.
const LABEL: &[u8] = b"anabranch handshake 1";

/// Returns the digest of an INIT or INIT ACK.
pub(crate) fn digest_of(init: &InitView<'_>) -> Transcript {
    let repr = init.repr();
    let mut digest = Sha256::new_with_prefix(LABEL);
    for number in [repr.initiate_tag, repr.a_rwnd, repr.initial_tsn.get()] {
        digest.update(number.to_be_bytes());
    }
    for number in [repr.outbound_streams, repr.inbound_streams] {
        digest.update(number.to_be_bytes());
    }
    let left_out = [ParamType::STATE_COOKIE, ParamType::PADDING];
    for param in init.raw_params().map_while(Result::ok).filter(|param| !left_out.contains(&param.kind())) {
        digest.update(param.bytes());
    }
    digest.finalize().into()
}

/// Returns the digest of an INIT and its INIT ACK, given by their own digests.
pub(crate) fn transcript(init: &Transcript, ack: &Transcript) -> Transcript {
    Sha256::new_with_prefix(LABEL).chain_update(init).chain_update(ack).finalize().into()
}
