//! Construction of packets.

use anabranch_wire::{Chunk, Header, NoSpace, PacketView, PacketWriter, Param, checksum};

/// Default SCTP port of both ends.
pub const PORT: u16 = 5000;

/// Type of DATA.
pub const DATA: u8 = 0;
/// Type of INIT.
pub const INIT: u8 = 1;
/// Type of INIT ACK.
pub const INIT_ACK: u8 = 2;
/// Type of SACK.
pub const SACK: u8 = 3;
/// Type of HEARTBEAT.
pub const HEARTBEAT: u8 = 4;
/// Type of HEARTBEAT ACK.
pub const HEARTBEAT_ACK: u8 = 5;
/// Type of ABORT.
pub const ABORT: u8 = 6;
/// Type of SHUTDOWN.
pub const SHUTDOWN: u8 = 7;
/// Type of SHUTDOWN ACK.
pub const SHUTDOWN_ACK: u8 = 8;
/// Type of ERROR.
pub const ERROR: u8 = 9;
/// Type of COOKIE ECHO.
pub const COOKIE_ECHO: u8 = 10;
/// Type of COOKIE ACK.
pub const COOKIE_ACK: u8 = 11;
/// Type of SHUTDOWN COMPLETE.
pub const SHUTDOWN_COMPLETE: u8 = 14;

/// Returns a packet with this tag between the default ports.
///
/// # Panics
/// Panics if the chunks do not fit one packet.
pub fn packet(tag: u32, chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
    packet_between([PORT, PORT], tag, chunks)
}

/// Returns a packet with this tag from the first of two ports to the second.
///
/// # Panics
/// Panics if the chunks do not fit one packet.
pub fn packet_between(
    [source_port, destination_port]: [u16; 2],
    tag: u32,
    chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
) -> Vec<u8> {
    let header = Header { source_port, destination_port, verification_tag: tag };
    let mut bytes = vec![0; 65_536];
    let mut writer = PacketWriter::new(&mut bytes, header).expect("it has room for a header");
    chunks(&mut writer).expect("it has room");
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

/// Returns a packet with chunks given as bytes, and the right checksum.
pub fn raw(tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut bytes = packet(tag, |_| Ok(()));
    bytes.extend_from_slice(chunks);
    fix_checksum(&mut bytes);
    bytes
}

/// Sets the right checksum of a packet.
pub fn fix_checksum(bytes: &mut [u8]) {
    if bytes.len() < 12 {
        return;
    }
    bytes[8..12].fill(0);
    let sum = checksum(bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the types of a packet's chunks, as far as they can be parsed.
pub fn kinds(bytes: &[u8]) -> Vec<u8> {
    let Ok(view) = PacketView::parse(bytes) else { return Vec::new() };
    view.chunks().map_while(Result::ok).map(|chunk| chunk.kind().0).collect()
}

/// Returns a packet with another tag.
pub fn with_tag(bytes: &[u8], tag: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[4..8].copy_from_slice(&tag.to_be_bytes());
    fix_checksum(&mut bytes);
    bytes
}

/// Returns the cookie of an INIT ACK.
pub fn cookie_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let view = PacketView::parse(bytes).ok()?;
    let Chunk::InitAck(ack) = view.chunks().next()?.ok()?.decode().ok()? else { return None };
    ack.params().flatten().find_map(|param| match param {
        Param::StateCookie(cookie) => Some(cookie.to_vec()),
        _ => None,
    })
}
