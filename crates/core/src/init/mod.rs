//! Parameters of INIT and INIT ACK (RFC 9260 sections 3.3.2 and 3.3.3).

mod padding;
pub(crate) mod sack_flags;
pub(crate) mod stream_control;
mod transcript;
pub(crate) mod zero_checksum;

use std::net::IpAddr;

use anabranch_wire::{ChunkType, InitRepr, InitView, List, Param, ParamType, ParseError, RawParam};
use arrayvec::ArrayVec;
pub(crate) use padding::init_padding;
pub(crate) use transcript::{digest_of, transcript};

use crate::address::LocalEnd;
use crate::config::LEAST_FIRST_WINDOW;
use crate::path_id::MAX_PATHS;
use crate::protection::{ParameterBytes, kept};

/// Extensions that a side announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) nr_sack: bool,
    /// Support of ASCONF and ASCONF-ACK, and of AUTH, which they require.
    pub(crate) asconf: bool,
    /// Use of the flags of SACKs as on this side.
    pub(crate) sack_flags: bool,
    /// Support of FORWARD-TSN.
    pub(crate) forward_tsn: bool,
    /// Flow control, ends and resets of each stream above SCTP.
    pub(crate) stream_control: bool,
    /// Support of RE-CONFIG.
    pub(crate) re_config: bool,
    /// Support of I-DATA.
    pub(crate) i_data: bool,
    /// Support of I-FORWARD-TSN.
    pub(crate) i_forward_tsn: bool,
    /// Acceptance of zero checksums below which DTLS detects errors.
    pub(crate) zero_checksum: bool,
}

impl Announced {
    /// Returns one bit for each extension, in the form in which cookies store them.
    pub(crate) fn bits(self) -> u16 {
        let bits = [
            (self.nr_sack, NR_SACK),
            (self.sack_flags, SACK_FLAGS),
            (self.asconf, ASCONF),
            (!self.forward_tsn, NO_FORWARD_TSN),
            (self.stream_control, STREAM_CONTROL),
            (self.re_config, RE_CONFIG),
            (self.i_data, I_DATA),
            (self.i_forward_tsn, I_FORWARD_TSN),
            (self.zero_checksum, ZERO_CHECKSUM),
        ];
        bits.into_iter().filter(|(announced, _)| *announced).fold(0, |all, (_, bit)| all | bit)
    }

    pub(crate) fn of_bits(bits: u16) -> Self {
        Announced {
            nr_sack: bits & NR_SACK != 0,
            asconf: bits & ASCONF != 0,
            sack_flags: bits & SACK_FLAGS != 0,
            forward_tsn: bits & NO_FORWARD_TSN == 0,
            stream_control: bits & STREAM_CONTROL != 0,
            re_config: bits & RE_CONFIG != 0,
            i_data: bits & I_DATA != 0,
            i_forward_tsn: bits & I_FORWARD_TSN != 0,
            zero_checksum: bits & ZERO_CHECKSUM != 0,
        }
    }
}

/// Bit of NR-SACK in the features that a cookie stores.
const NR_SACK: u16 = 1;

/// Bit of the SACK flags.
const SACK_FLAGS: u16 = 2;

/// Bit of ASCONF.
const ASCONF: u16 = 4;

/// Bit of a peer that does not support FORWARD-TSN, so that the cookies of most peers have no bit for it.
const NO_FORWARD_TSN: u16 = 8;

/// Bit of the control of streams.
const STREAM_CONTROL: u16 = 16;
/// Bit of RE-CONFIG.
const RE_CONFIG: u16 = 32;

/// Bit of I-DATA.
const I_DATA: u16 = 64;
/// Bit of I-FORWARD-TSN.
const I_FORWARD_TSN: u16 = 128;

/// Bit of the acceptance of zero checksums.
const ZERO_CHECKSUM: u16 = 256;

/// Chunk types to announce, at most all that this side supports.
pub(crate) type ChunkTypes = ArrayVec<ChunkType, 7>;

/// Proof that authenticates ASCONFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsconfProof {
    /// AUTH chunk before the ASCONF chunks.
    Auth,
    /// Record that contains the ASCONF chunks.
    Record,
}

/// Returns the chunk types to announce.
pub(crate) fn chunk_types(announced: Announced, proof: AsconfProof) -> ChunkTypes {
    [
        (announced.nr_sack, ChunkType::NR_SACK),
        (announced.i_data, ChunkType::I_DATA),
        (announced.i_forward_tsn, ChunkType::I_FORWARD_TSN),
        (announced.re_config, ChunkType::RE_CONFIG),
        (announced.asconf, ChunkType::ASCONF),
        (announced.asconf, ChunkType::ASCONF_ACK),
        (announced.asconf && proof == AsconfProof::Auth, ChunkType::AUTH),
    ]
    .into_iter()
    .filter_map(|(is_announced, chunk)| is_announced.then_some(chunk))
    .collect()
}

/// Returns the extensions to announce. Unused ones are not announced and change no packet.
pub(crate) fn extensions(chunks: &ChunkTypes) -> Option<Param<'_>> {
    (!chunks.is_empty()).then(|| Param::SupportedExtensions(List::new(chunks)))
}

/// Returns the extensions that an INIT or INIT-ACK announces.
pub(crate) fn announced(init: &InitView<'_>) -> Announced {
    let mut announced = Announced {
        sack_flags: sack_flags::is_announced(init),
        stream_control: stream_control::is_announced(init),
        zero_checksum: zero_checksum::is_announced(init),
        ..Announced::default()
    };
    for param in init.params().take_while(|param| !stops(param)).flatten() {
        match param {
            // RFC 3758 section 3.3.1.
            Param::ForwardTsnSupported => announced.forward_tsn = true,
            Param::SupportedExtensions(chunks) => {
                announced.nr_sack |= chunks.contains(ChunkType::NR_SACK);
                announced.asconf |=
                    chunks.contains(ChunkType::ASCONF) && chunks.contains(ChunkType::ASCONF_ACK);
                announced.forward_tsn |= chunks.contains(ChunkType::FORWARD_TSN);
                announced.re_config |= chunks.contains(ChunkType::RE_CONFIG);
                announced.i_data |= chunks.contains(ChunkType::I_DATA);
                announced.i_forward_tsn |= chunks.contains(ChunkType::I_FORWARD_TSN);
            }
            _ => {}
        }
    }
    announced
}

/// Returns the violation in an INIT ACK of RFC 9260 section 3.3.3, if there is one.
pub(crate) fn init_ack_violation(init: &InitView<'_>) -> Option<&'static str> {
    let names_host = init.params().any(|param| matches!(param, Ok(Param::HostNameAddress(_))));
    match init.repr() {
        InitRepr { initiate_tag: 0, .. } => Some("INIT-ACK without tag"),
        //= docs/rfc9260.txt#section-3.3.3
        //# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the OS value set to 0, it MUST destroy
        //# the TCB and SHOULD send an ABORT chunk.
        //= docs/rfc9260.txt#section-3.3.3
        //# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the MIS value set to 0, it MUST
        //# destroy the TCB and SHOULD send an ABORT chunk.
        InitRepr { outbound_streams: 0, .. } | InitRepr { inbound_streams: 0, .. } => {
            Some("INIT-ACK without streams")
        }
        //= docs/rfc9260.txt#section-3.3.3
        //# A receiver of an INIT ACK chunk with the a_rwnd value set to a value smaller than 1500 MUST discard the
        //# packet, SHOULD send a packet in response containing an ABORT chunk and using the Initiate Tag as the
        //# Verification Tag, and MUST NOT change the state of any existing association.
        InitRepr { a_rwnd: 0..LEAST_FIRST_WINDOW, .. } => Some("INIT-ACK with a window below 1500 bytes"),
        //= docs/rfc9260.txt#section-3.3.3
        //# The receiver of INIT ACK chunks containing a Host Name Address parameter MUST send an ABORT chunk and MAY
        //# include an "Unresolvable Address" error cause.
        _ if names_host => Some("INIT-ACK with a host name"),
        _ => None,
    }
}

/// Returns the unknown parameters that ask for a report by the high bits of their type (RFC 9260 section 3.2.1).
pub(crate) fn reportable_params<'a>(
    init: &InitView<'a>,
) -> impl Iterator<Item = RawParam<'a>> + Clone + use<'a> {
    let mut stopped = false;
    init.raw_params().map_while(Result::ok).filter(move |raw| {
        let unknown = raw.kind().name().is_none() && !stopped;
        let action = raw.kind().unknown_action();
        stopped |= unknown && action.stops();
        unknown && action.reports()
    })
}

/// Returns the offer to protect packets, if there is a valid one.
pub(crate) fn protection_parameter(init: &InitView<'_>) -> Option<ParameterBytes> {
    let raw = init.raw_params().map_while(Result::ok).take_while(|raw| !stops(&raw.decode()));
    let mut found = raw.filter(|raw| raw.kind() == ParamType::DTLS_KEY_MANAGEMENT);
    kept(&found.next()?)
}

/// Returns `true` if the parameters behind this one are not processed.
pub(crate) fn stops(param: &Result<Param<'_>, ParseError>) -> bool {
    matches!(param, Ok(Param::Unknown(raw)) if raw.kind().unknown_action().stops())
}

/// Returns the addresses that an INIT or INIT-ACK lists, at most `MAX_PATHS`, in order.
//= docs/rfc9260.txt#section-3.3.2.1.5
//= type=implication
//# The value indicating the Host Name Address parameter MUST NOT be used when sending this parameter and MUST be ignored
//# when receiving this parameter.
//= docs/rfc9260.txt#section-5.1.2
//= type=implication
//# If an SCTP endpoint lists in the 'Supported Address Types' parameter either IPv4 or IPv6 but uses the other family for
//# sending the packet containing the INIT chunk, or if it also lists addresses of the other family in the INIT chunk,
//# then the address family that is not listed in the 'Supported Address Types' parameter SHOULD also be considered as
//# supported by the receiver of the INIT chunk.
//= docs/rfc9260.txt#section-5.1.2
//= type=implication
//# The receiver of the INIT chunk SHOULD NOT respond with any kind of error indication.
pub(crate) fn listed_addresses(init: &InitView<'_>) -> ArrayVec<IpAddr, MAX_PATHS> {
    init.params()
        .take_while(|param| !stops(param))
        .filter_map(|param| match param {
            Ok(Param::Ipv4Address(address)) => Some(IpAddr::V4(address)),
            Ok(Param::Ipv6Address(address)) => Some(IpAddr::V6(address)),
            _ => None,
        })
        .take(MAX_PATHS)
        .collect()
}

/// Returns the local addresses that a packet lists, each once: two interfaces may have the same one. A single address is not
/// listed, because it is the packet's source (RFC 9260 section 3.3.2).
pub(crate) fn listed_locals(locals: &[LocalEnd]) -> ArrayVec<IpAddr, MAX_PATHS> {
    let mut listed = ArrayVec::new();
    for LocalEnd { address, .. } in locals {
        if !listed.contains(address) && listed.try_push(*address).is_err() {
            break;
        }
    }
    if listed.len() == 1 {
        listed.clear();
    }
    listed
}

/// Returns local addresses as parameters. An IPv4-mapped IPv6 address counts as an IPv4 address.
pub(crate) fn address_params<'p>(addresses: &[IpAddr]) -> ArrayVec<Param<'p>, MAX_PATHS> {
    addresses
        .iter()
        .take(MAX_PATHS)
        //= docs/rfc9260.txt#section-3.3.2.1.2
        //# A sender MUST NOT use an IPv4-mapped IPv6 address [RFC4291] but SHOULD instead use an IPv4 Address parameter
        //# for an IPv4 address.
        .map(|address| match address.to_canonical() {
            IpAddr::V4(v4) => Param::Ipv4Address(v4),
            IpAddr::V6(v6) => Param::Ipv6Address(v6),
        })
        .collect()
}

#[cfg(test)]
mod tests;
