//! Padding of an INIT (RFC 4820 section 4).

use anabranch_wire::{Header, InitRepr, PacketWriter, Param, ParamType};

/// Length of a packet with the INIT of a side that protects its packets. No INIT-ACK of this endpoint is longer, with eight
/// addresses and all offers of both sides, so that an attacker who forges an INIT's source gets no amplification.
const PADDED_BYTES: usize = 700;

/// Length of the header of a parameter.
const HEADER: usize = 4;

/// Returns the parameter that pads a packet with this INIT to its full length, at most `room`; empty if no padding is needed.
pub(crate) fn init_padding<'p>(
    init: &InitRepr,
    params: impl IntoIterator<Item = Param<'p>>,
    room: usize,
) -> Vec<u8> {
    let mut bytes = [0; PADDED_BYTES];
    let Ok(mut writer) = PacketWriter::new(&mut bytes, Header::default()) else { return Vec::new() };
    if writer.init(init, params).is_err() {
        return Vec::new();
    }
    let missing = PADDED_BYTES.min(room).saturating_sub(writer.finish()) / HEADER * HEADER;
    if missing < HEADER {
        return Vec::new();
    }
    let mut padding = vec![0; missing];
    padding[..2].copy_from_slice(&ParamType::PADDING.0.to_be_bytes());
    padding[2..HEADER].copy_from_slice(&(missing as u16).to_be_bytes());
    padding
}
