//! What a packet holds, for filters and for looking at what was sent.

use anabranch_wire::{Chunk, PacketView};

use crate::network::Packet;

/// A SACK, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Its cumulative TSN.
    pub cumulative: u32,
    /// The window it advertises.
    pub window: u32,
    /// Its flags.
    pub flags: u8,
    /// Its gap blocks, as offsets.
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

/// Whether a packet holds a chunk like this.
pub fn holds(packet: &Packet, like: impl Fn(&Chunk<'_>) -> bool) -> bool {
    let mut found = false;
    each_chunk(packet, |chunk| found |= like(chunk));
    found
}

/// The TSNs of a packet's DATA chunks.
pub fn tsns(packet: &Packet) -> Vec<u32> {
    let mut tsns = Vec::new();
    each_chunk(packet, |chunk| {
        if let Chunk::Data(data) = chunk {
            tsns.push(data.tsn().get());
        }
    });
    tsns
}

/// A packet's SACK.
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

/// The blocks of a packet's NR-SACK: those whose data may still be dropped, and those whose data is kept.
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
