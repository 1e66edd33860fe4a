//! Packets made to measure.

use anabranch_wire::{Header, NoSpace, PacketView, PacketWriter, checksum};

use super::PORT;

pub(crate) const DATA: u8 = 0;
pub(crate) const INIT: u8 = 1;
pub(crate) const INIT_ACK: u8 = 2;
pub(crate) const SACK: u8 = 3;
pub(crate) const HEARTBEAT: u8 = 4;
pub(crate) const HEARTBEAT_ACK: u8 = 5;
pub(crate) const ABORT: u8 = 6;
pub(crate) const SHUTDOWN: u8 = 7;
pub(crate) const SHUTDOWN_ACK: u8 = 8;
pub(crate) const ERROR: u8 = 9;
pub(crate) const COOKIE_ECHO: u8 = 10;
pub(crate) const COOKIE_ACK: u8 = 11;
pub(crate) const SHUTDOWN_COMPLETE: u8 = 14;

/// A packet with this tag between the usual ports.
pub(crate) fn packet(tag: u32, chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
    let header = Header { source_port: PORT, destination_port: PORT, verification_tag: tag };
    let mut bytes = vec![0; 65_536];
    let mut writer = PacketWriter::new(&mut bytes, header).expect("it has room for a header");
    chunks(&mut writer).expect("it has room");
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

/// A packet whose chunks are given byte for byte, with the right checksum.
pub(crate) fn raw(tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut bytes = packet(tag, |_| Ok(()));
    bytes.extend_from_slice(chunks);
    fix_checksum(&mut bytes);
    bytes
}

/// Gives a packet the checksum that its bytes call for.
pub(crate) fn fix_checksum(bytes: &mut [u8]) {
    if bytes.len() < 12 {
        return;
    }
    bytes[8..12].fill(0);
    let sum = checksum(bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// The types of a packet's chunks, as far as they can be told apart.
pub(crate) fn kinds(bytes: &[u8]) -> Vec<u8> {
    let Ok(view) = PacketView::parse(bytes) else { return Vec::new() };
    view.chunks().map_while(Result::ok).map(|chunk| chunk.kind().0).collect()
}

/// A packet with another tag.
pub(crate) fn with_tag(bytes: &[u8], tag: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[4..8].copy_from_slice(&tag.to_be_bytes());
    fix_checksum(&mut bytes);
    bytes
}
