//! Contents of packets, for filters and for checks of sent packets.

use anabranch_wire::{Chunk, PacketView};

use crate::network::Packet;

/// A parsed SACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN.
    pub cumulative: u32,
    /// Advertised window.
    pub window: u32,
    /// Flags of the chunk header.
    pub flags: u8,
    /// Gap blocks, as offsets.
    pub gaps: Vec<(u16, u16)>,
}

fn each_chunk(packet: &Packet, mut look: impl FnMut(&Chunk<'_>)) {
    let Ok(view) = PacketView::parse(&packet.bytes) else { return };
    for raw in view.chunks().map_while(Result::ok) {
        if let Ok(chunk) = raw.decode() {
            look(&chunk);
        }
    }
}

/// Returns `true` if a packet holds a matching chunk.
pub fn holds(packet: &Packet, like: impl Fn(&Chunk<'_>) -> bool) -> bool {
    let mut found = false;
    each_chunk(packet, |chunk| found |= like(chunk));
    found
}

/// Returns the TSNs of a packet's DATA chunks.
pub fn tsns(packet: &Packet) -> Vec<u32> {
    let mut tsns = Vec::new();
    each_chunk(packet, |chunk| {
        if let Chunk::Data(data) = chunk {
            tsns.push(data.tsn().get());
        }
    });
    tsns
}

/// Returns a packet's SACK.
pub fn sack(packet: &Packet) -> Option<Sack> {
    let mut found = None;
    each_chunk(packet, |chunk| {
        if let Chunk::Sack(sack) = chunk {
            let gaps = sack.gaps().map(|gap| (gap.start, gap.end)).collect();
            found = Some(Sack {
                cumulative: sack.cum_tsn().get(),
                window: sack.a_rwnd(),
                flags: sack.flags(),
                gaps,
            });
        }
    });
    found
}

/// Returns the blocks of a packet's NR-SACK: the renegable ones, and the non-renegable ones.
pub fn nr_blocks(packet: &Packet) -> Option<[Vec<(u16, u16)>; 2]> {
    let mut found = None;
    each_chunk(packet, |chunk| {
        if let Chunk::NrSack(sack) = chunk {
            let gaps = sack.gaps().map(|gap| (gap.start, gap.end)).collect();
            found = Some([gaps, sack.nr_gaps().map(|gap| (gap.start, gap.end)).collect()]);
        }
    });
    found
}
