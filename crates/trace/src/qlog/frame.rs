//! Chunk of a packet, as an event shows it.

use anabranch_wire::{Chunk, RawChunk};
use serde::Serialize;

/// A chunk. Fields that its type lacks are omitted.
#[derive(Serialize)]
pub(super) struct Frame {
    #[serde(rename = "type")]
    kind: String,
    /// Length with the header, without padding.
    length: usize,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Fields {
    Data { tsn: u32, stream: u16, ssn: u16, ppid: u32, unordered: bool, beginning: bool, ending: bool },
    Acknowledgement { cumulative_tsn: u32, window_bytes: u32, gaps: usize, duplicates: usize },
    Opening { initiate_tag: u32, window_bytes: u32, initial_tsn: u32 },
    Other {},
}

impl Frame {
    pub(super) fn of(chunk: &RawChunk<'_>) -> Self {
        let fields = match chunk.decode() {
            Ok(Chunk::Data(data)) => {
                let (repr, flags) = (data.repr(), data.flags());
                Fields::Data {
                    tsn: repr.tsn.get(),
                    stream: repr.stream.get(),
                    ssn: repr.ssn.get(),
                    ppid: repr.ppid,
                    unordered: flags.unordered,
                    beginning: flags.beginning,
                    ending: flags.ending,
                }
            }
            Ok(Chunk::Sack(sack)) => Fields::Acknowledgement {
                cumulative_tsn: sack.cum_tsn().get(),
                window_bytes: sack.a_rwnd(),
                gaps: sack.gap_count(),
                duplicates: sack.dup_count(),
            },
            Ok(Chunk::NrSack(sack)) => Fields::Acknowledgement {
                cumulative_tsn: sack.cum_tsn().get(),
                window_bytes: sack.a_rwnd(),
                gaps: sack.gap_count() + sack.nr_gap_count(),
                duplicates: sack.dup_count(),
            },
            Ok(Chunk::Init(init) | Chunk::InitAck(init)) => {
                let repr = init.repr();
                Fields::Opening {
                    initiate_tag: repr.initiate_tag,
                    window_bytes: repr.a_rwnd,
                    initial_tsn: repr.initial_tsn.get(),
                }
            }
            _ => Fields::Other {},
        };
        Frame { kind: chunk.kind().to_string(), length: chunk.bytes().len(), fields }
    }
}
