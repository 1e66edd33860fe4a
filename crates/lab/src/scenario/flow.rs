//! `[[flow]]`: who sends what to whom.

use std::path::PathBuf;

use anabranch_core::Reliability;
use anabranch_core::time::{Rate, Span};

use super::association::{Association, STREAMS, stream_count};
use super::beside::{MessagesBeside, read_messages_beside};
use super::error::ProblemKind;
use super::fault::Fault;
use super::names::Names;
use super::reader::Reader;
use super::reliability::read_reliability;
use super::run::{Run, Stop};
use super::shape::{ANY_TIME, AnyRate, DATA_SIZE, Flag, IntegerIn, OneOf, SOME_TIME, Shape, Text, TextList};
use super::video::{self, FrameReliability, VideoFlow};

/// Flows of a scenario at most.
const MOST_FLOWS: usize = 64;

/// One association and what is sent over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Unique among the flows.
    pub name: String,
    /// What is sent.
    pub kind: FlowKind,
    /// When it starts.
    pub start: Span,
    /// The paths it may use, the primary path first, as indices into [`Scenario::paths`](super::Scenario::paths).
    pub paths: Vec<usize>,
    /// Its scheme, as an expression of [`Scenario::vocabulary`](super::Scenario::vocabulary); without it each of
    /// [`Run::schemes`] in turn. Not checked here.
    pub scheme: Option<String>,
    /// Who sends.
    pub direction: FlowDirection,
    /// The rate at which the receiving application reads at most; without it, everything at once.
    pub reader: Option<Rate>,
    /// Small messages beside the bulk, on a stream of their own.
    pub beside: Option<MessagesBeside>,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// As much as goes through, without end.
    Bulk,
    /// A file, once.
    File(FileSource),
    /// Messages at regular times.
    Messages {
        /// User data of a message in bytes.
        size_bytes: u64,
        /// Time between the starts of two messages.
        interval: Span,
        /// Messages in all; without it they go on until the end of the run.
        count: Option<u64>,
        /// Whether they are delivered in order within their stream.
        ordered: bool,
        /// Streams they are spread over.
        streams: u16,
        /// How long the delivery of a message is tried.
        reliability: Reliability,
    },
    /// The frames of a trace, each at its time.
    Video(VideoFlow),
}

/// What a file flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSource {
    /// This file, named as in the scenario. Its existence is not checked here.
    Path(PathBuf),
    /// Made-up content of this many bytes.
    SizeBytes(u64),
}

/// Who sends in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDirection {
    /// The host at the near end of the paths.
    Forward,
    /// The host at the far end.
    Reverse,
    /// Each of them the same.
    Both,
}

/// Words for who sends.
pub(super) const FLOW_DIRECTIONS: &[(&str, FlowDirection)] = &[
    ("forward", FlowDirection::Forward),
    ("reverse", FlowDirection::Reverse),
    ("both", FlowDirection::Both),
];

#[derive(Clone, Copy)]
enum Kind {
    Bulk,
    File,
    Messages,
    Video,
}

const KINDS: &[(&str, Kind)] =
    &[("bulk", Kind::Bulk), ("file", Kind::File), ("messages", Kind::Messages), ("video", Kind::Video)];

/// What flows take from the rest of the scenario.
pub(super) struct Surroundings<'a> {
    pub(super) paths: &'a Names,
    pub(super) run: Option<&'a Run>,
    pub(super) association: Association,
}

impl FlowKind {
    /// Whether there is a last byte.
    pub fn ends(&self) -> bool {
        match self {
            FlowKind::Bulk | FlowKind::Video(_) => false,
            FlowKind::File(_) => true,
            // Which message is the last to arrive is known only if none is given up.
            FlowKind::Messages { count, reliability, .. } => {
                count.is_some() && *reliability == Reliability::Full
            }
        }
    }
}

impl FlowKind {
    /// Whether something that it sends may be given up.
    pub fn has_limit(&self) -> bool {
        match self {
            FlowKind::Bulk | FlowKind::File(_) => false,
            FlowKind::Messages { reliability, .. } => *reliability != Reliability::Full,
            FlowKind::Video(video) => video.reliability != FrameReliability::default(),
        }
    }
}

/// Reads the flows; without any, one bulk flow over all paths is assumed.
pub(super) fn read_flows(mut readers: Vec<Reader<'_>>, around: &Surroundings<'_>) -> Option<Vec<Flow>> {
    let mut names = Names::new("flow");
    names.limit(&mut readers, MOST_FLOWS);
    let flows: Vec<Option<Flow>> =
        readers.into_iter().map(|reader| read(reader, around, &mut names)).collect();
    flows.into_iter().collect()
}

fn read(mut reader: Reader<'_>, around: &Surroundings<'_>, names: &mut Names) -> Option<Flow> {
    let name = names.read(&mut reader);
    let kind = reader.or("kind", &OneOf(KINDS), Kind::Bulk);
    let default_start = around.run.map_or(Span::ZERO, |run| run.start);
    let start = reader.or("start", &ANY_TIME, default_start);
    let paths = match reader.optional("paths", &TextList) {
        Some(Some(paths)) => around.paths.resolve(&reader, "paths", &paths),
        Some(None) => Some((0..around.paths.len()).collect()),
        None => None,
    };
    let scheme = reader.optional("scheme", &Text);
    let direction = reader.or("direction", &OneOf(FLOW_DIRECTIONS), FlowDirection::Forward);
    let rate = reader.optional("reader", &AnyRate);
    let beside = match kind {
        Some(Kind::Bulk) => read_messages_beside(&mut reader),
        Some(_) => {
            reader.refuse("messages", "only `kind = \"bulk\"` has it");
            Some(None)
        }
        None => {
            reader.know(&["messages"]);
            None
        }
    };
    let kind = match kind {
        Some(kind) => read_kind(&mut reader, kind, &around.association),
        None => {
            // Which of these belong here is not known without the kind.
            reader.know(&["path", "size", "interval", "count", "ordered", "streams", "reliability"]);
            reader.know(&video::KEYS);
            None
        }
    };
    if matches!((&kind, direction), (Some(FlowKind::Video(_)), Some(FlowDirection::Both))) {
        video::refuse_both(&reader);
    }
    if let (Some(start), Some(limit)) = (start, around.run.and_then(Run::limit))
        && start >= limit
        && reader.has("start")
    {
        let help = "start it before `run.duration` is over";
        reader.fault("start", Fault::because(ProblemKind::Conflict, "this flow never starts", help));
    }
    reader.finish();
    Some(Flow {
        name: name?,
        kind: kind?,
        start: start?,
        paths: paths?,
        scheme: scheme?,
        direction: direction?,
        reader: rate?,
        beside: beside?,
    })
}

fn read_kind(reader: &mut Reader<'_>, kind: Kind, association: &Association) -> Option<FlowKind> {
    match kind {
        Kind::Bulk => {
            reader.refuse("path", "only `kind = \"file\"` has it");
            reader.refuse("size", "only `kind = \"file\"` and `kind = \"messages\"` have it");
            refuse_messages(reader);
            refuse_video(reader);
            Some(FlowKind::Bulk)
        }
        Kind::File => read_file(reader).map(FlowKind::File),
        Kind::Messages => read_messages(reader, association),
        Kind::Video => video::read_video(reader, association).map(FlowKind::Video),
    }
}

fn read_file(reader: &mut Reader<'_>) -> Option<FileSource> {
    let path = reader.optional("path", &Text);
    let size = reader.optional("size", &DATA_SIZE);
    refuse_messages(reader);
    refuse_video(reader);
    match (path?, size?) {
        (Some(path), None) => Some(FileSource::Path(PathBuf::from(path))),
        (None, Some(size)) => Some(FileSource::SizeBytes(size)),
        (Some(_), Some(_)) => {
            let message = "a file flow has both `path` and `size`";
            let help = "keep `path` to send that file whole, or `size` to send made-up content";
            reader.fault("size", Fault::because(ProblemKind::Conflict, message, help));
            None
        }
        (None, None) => {
            let sizes = DATA_SIZE.expected();
            reader.missing("size", format!("{sizes}; or `path` with the name of a file to send"));
            None
        }
    }
}

fn read_messages(reader: &mut Reader<'_>, association: &Association) -> Option<FlowKind> {
    let size = reader.required("size", &DATA_SIZE);
    let interval = reader.required("interval", &SOME_TIME);
    let count = reader.optional("count", &IntegerIn(1..=1_000_000_000_000));
    let ordered = reader.or("ordered", &Flag, association.ordered);
    let streams = reader.or("streams", &STREAMS, u64::from(association.streams));
    let reliability = read_reliability(reader);
    reader.refuse("path", "only `kind = \"file\"` has it");
    refuse_video(reader);
    Some(FlowKind::Messages {
        size_bytes: size?,
        interval: interval?,
        count: count?,
        ordered: ordered?,
        streams: stream_count(streams?),
        reliability: reliability?,
    })
}

fn refuse_messages(reader: &mut Reader<'_>) {
    for key in ["interval", "count"] {
        reader.refuse(key, "only `kind = \"messages\"` has it");
    }
    reader.refuse("reliability", "only `kind = \"messages\"` and `kind = \"video\"` have it");
    for key in ["ordered", "streams"] {
        let why = "only `kind = \"messages\"` and `kind = \"video\"` have it; for other flows give it under [association]";
        reader.refuse(key, why);
    }
}

fn refuse_video(reader: &mut Reader<'_>) {
    for key in video::KEYS {
        reader.refuse(key, "only `kind = \"video\"` has it");
    }
}

/// A run that stops with the transfer needs one that ends.
pub(super) fn check_end(root: &Reader<'_>, run: &Run, flows: &[Flow]) {
    let transfer = matches!(run.stop, Stop::Transfer { .. });
    if transfer && !flows.iter().any(|flow| flow.kind.ends()) {
        let message = "`run.stop = \"transfer\"`, but no flow has an end";
        let help = "add a [[flow]] with `kind = \"file\"`, or with `kind = \"messages\"`, a `count` and no `reliability`; \
                    or give `run.duration` and leave out `stop`";
        root.fault_in("run", "stop", Fault::because(ProblemKind::Conflict, message, help));
    }
}
