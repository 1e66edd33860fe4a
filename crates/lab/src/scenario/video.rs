//! `kind = "video"`: the frames of a trace, each at its time.

use std::path::PathBuf;

use anabranch_core::Reliability;
use anabranch_core::time::Span;

use super::association::{Association, STREAMS, stream_count};
use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::reliability::{LIMITS, read_limit, read_reliability};
use super::shape::{Flag, SizeIn, SpanIn, Text};
use crate::video::{FrameType, MOST_PAYLOAD_BYTES};

/// A deadline: an hour at the most, as for `anabranch video evaluate`.
const DEADLINE: SpanIn = SpanIn(Span::from_micros(1)..=Span::from_secs(3600));
const PAYLOAD: SizeIn = SizeIn(1..=MOST_PAYLOAD_BYTES);

/// What a video flow sends, and when it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoFlow {
    /// The file of the frame trace, named as in the scenario. Its existence is not checked here.
    pub trace: PathBuf,
    /// From when a B frame is handed over to when it is shown; others have up to a few frame intervals more.
    pub deadline: Span,
    /// User data of a full packet; without it what fits a packet of the association's MTU.
    pub payload_bytes: Option<u64>,
    /// Whether packets are delivered in order within their stream.
    pub ordered: bool,
    /// Streams that frames are spread over.
    pub streams: u16,
    /// How long the delivery of packets is tried.
    pub reliability: FrameReliability,
}

/// Limits by the type of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameReliability {
    /// Of I frames.
    pub i: Reliability,
    /// Of P frames.
    pub p: Reliability,
    /// Of B frames.
    pub b: Reliability,
}

impl FrameReliability {
    /// The same for all.
    pub fn all(limit: Reliability) -> FrameReliability {
        FrameReliability { i: limit, p: limit, b: limit }
    }

    /// That of a type.
    pub fn of(&self, kind: FrameType) -> Reliability {
        match kind {
            FrameType::I => self.i,
            FrameType::P => self.p,
            FrameType::B => self.b,
        }
    }
}

/// The keys that only video has.
pub(super) const KEYS: [&str; 3] = ["trace", "payload", "deadline"];

pub(super) fn read_video(reader: &mut Reader<'_>, association: &Association) -> Option<VideoFlow> {
    let trace = read_trace(reader);
    let deadline = reader.required("deadline", &DEADLINE);
    let payload = reader.optional("payload", &PAYLOAD);
    let ordered = reader.or("ordered", &Flag, association.ordered);
    let streams = reader.or("streams", &STREAMS, u64::from(association.streams));
    let reliability = read_frame_reliability(reader);
    reader.refuse("path", "only `kind = \"file\"` has it; a video flow has a `trace`");
    for (key, why) in [
        ("size", "frames have the sizes of their `trace`"),
        ("interval", "frames have the times of their `trace`"),
        ("count", "all frames of the `trace` are sent"),
    ] {
        reader.refuse(key, why);
    }
    Some(VideoFlow {
        trace: trace?,
        deadline: deadline?,
        payload_bytes: payload?,
        ordered: ordered?,
        streams: stream_count(streams?),
        reliability: reliability?,
    })
}

fn read_trace(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let how = "`anabranch video encode CLIP --out FOLDER` makes FOLDER/trace.csv, which `trace` names";
    reader.refuse("clip", how);
    if reader.has("clip") && !reader.has("trace") {
        reader.know(&["trace"]);
        return None;
    }
    match reader.optional("trace", &Text)? {
        Some(path) => Some(PathBuf::from(path)),
        None => {
            reader.missing("trace", format!("the name of a CSV file with a row for each frame; {how}"));
            None
        }
    }
}

/// One limit for all frames, or a table of limits by type; full reliability where there is none.
fn read_frame_reliability(reader: &mut Reader<'_>) -> Option<FrameReliability> {
    let table = reader.table("reliability")?;
    if !FrameType::ALL.iter().any(|kind| table.has(kind.letter())) {
        drop(table);
        return read_reliability(reader).map(FrameReliability::all);
    }
    let mut table = table;
    for key in LIMITS {
        table.refuse(key, "beside limits by type: put it into `I`, `P` or `B`, or leave those out");
    }
    let mut of = |kind: FrameType| -> Option<Reliability> {
        let given = table.has(kind.letter());
        read_limit(table.table(kind.letter())?, given)
    };
    let limits = FrameType::ALL.map(&mut of);
    let both = table.has(LIMITS[0]) || table.has(LIMITS[1]) || table.has(LIMITS[2]);
    table.finish();
    let [i, p, b] = limits;
    (!both).then_some(FrameReliability { i: i?, p: p?, b: b? })
}

/// A video is shown at one end.
pub(super) fn refuse_both(reader: &Reader<'_>) {
    let message = "a video is sent in one direction";
    let help = "make a second [[flow]] for the other direction";
    reader.fault("direction", Fault::because(ProblemKind::Conflict, message, help));
}
