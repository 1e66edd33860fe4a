//! `[[flow]]`: an association and its traffic.

use std::path::PathBuf;

use anabranch_core::Reliability;
use anabranch_core::time::{Rate, Span};

use crate::association::{Association, STREAMS};
use crate::beside::MessagesBeside;
use crate::direction::{ANY, Directions};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::form::{
    ANY_TIME, AnyRate, DATA_SIZE, Flag, Form as _, GAP, IntegerIn, Name, OneOf, Placed, PlacedTexts, SizeIn,
    SpanIn, Text,
};
use crate::forward::{Datagrams, Exchange, Forwarded};
use crate::inner::Inner;
use crate::names::Names;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::reliability::{AnyReliability, FrameReliability, is_by_frame};
use crate::run::{Run, Stop};
use crate::section::{Section as _, section};

/// Maximum user data of a packet of a video. The length of an SCTP chunk has 16 bits.
pub const MOST_PAYLOAD_BYTES: u64 = 65_000;

/// Range of deadlines, the same as for `anabranch video evaluate`.
const DEADLINE: SpanIn = SpanIn(Span::from_micros(1)..=Span::from_secs(3600), "ms");

/// Maximum number of flows of a scenario.
const MOST_FLOWS: usize = 64;

/// One association and its traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Name, unique among the flows.
    pub name: String,
    /// Content of the flow.
    pub kind: FlowKind,
    /// Start of the flow.
    pub start: Span,
    /// Paths that the flow may use, the primary path first, as indices into [`Scenario::paths`](crate::Scenario::paths).
    pub paths: Vec<usize>,
    /// Scheme, as an expression of [`Scenario::vocabulary`](crate::Scenario::vocabulary). If it is missing, the flow uses each of
    /// [`Run::schemes`] in turn. Reading the scenario does not check the expression.
    pub scheme: Option<String>,
    /// Sending hosts.
    pub direction: Directions,
    /// Maximum rate at which the receiving application reads; `None` reads everything at once.
    pub read_rate: Option<Rate>,
    /// Small messages beside the bulk data, on a separate stream.
    pub beside: Option<MessagesBeside>,
}

/// Content of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Data without end, as much as the network carries.
    Bulk,
    /// A file, sent once.
    File(FileSource),
    /// Messages at regular times.
    Messages {
        /// User data of a message in bytes.
        size_bytes: u64,
        /// Time between the starts of two messages.
        interval: Span,
        /// Number of messages; `None` continues until the end of the run.
        count: Option<u64>,
        /// Set if messages are delivered in order within their stream.
        ordered: bool,
        /// Streams that are used in turn.
        streams: u16,
        /// Limit after which a message is abandoned.
        reliability: Reliability,
    },
    /// Frames of a trace, each at its time.
    Video(VideoFlow),
    /// Connections and datagrams of programs through a forwarder, the left host, and its gateway, the right host.
    Forward(Forwarded),
}

/// Content of a file flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSource {
    /// A file at this path, as the scenario names it. Reading the scenario does not check that the file exists.
    Path(PathBuf),
    /// Generated content with this number of bytes.
    SizeBytes(u64),
}

/// Frames of a trace, and when they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoFlow {
    /// Path of the frame trace as in the scenario. Reading the scenario does not check that the file exists.
    pub trace: PathBuf,
    /// Time from the transmission of a B frame to its playout. Other frames have up to a few frame intervals more.
    pub deadline: Span,
    /// User data of a full packet; `None` means the size that fits into a packet of the association's MTU.
    pub payload_bytes: Option<u64>,
    /// Set if packets are delivered in order within their stream.
    pub ordered: bool,
    /// Streams that frames use in turn.
    pub streams: u16,
    /// Limits after which packets are abandoned.
    pub reliability: FrameReliability,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bulk,
    File,
    Messages,
    Video,
    Forward,
}

section! {
    /// One association and its traffic, `[[flow]]`.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct FlowRows {
        /// The name, unique among the flows.
        name: Option<String> = "name" [optional "`\"flow-1\"`, …"] Name;
        /// Bulk data without an end, one file, messages at regular intervals, frames of a [video](video.md), or
        /// programs through [`anabranch forward`](forward.md#prediction).
        kind: Kind = "kind" [selects or Kind::Bulk] OneOf(&[
            ("bulk", Kind::Bulk),
            ("file", Kind::File),
            ("messages", Kind::Messages),
            ("video", Kind::Video),
            ("forward", Kind::Forward),
        ]);
        /// The file to send, relative to the folder of the scenario file.
        path: Option<String> = "path" [only ["file"] optional "none"] Text;
        /// `file`: size of generated data, which depends on the seed and the flow's name. `messages`: user data of a
        /// message (required).
        size: Option<u64> = "size" [only ["file", "messages"] optional "none"] SizeIn(DATA_SIZE.0, "MB");
        /// Time between the starts of two messages.
        interval: Option<Span> = "interval" [only ["messages"] required] GAP;
        /// Number of messages.
        count: Option<u64> = "count" [only ["messages"] optional "until the end of the run"]
            IntegerIn::<u64>(1..=1_000_000_000_000);
        /// The [frame trace](video.md#frame-traces), a CSV file, relative to the folder of the scenario file.
        trace: Option<String> = "trace" [only ["video"] optional "required"] Text;
        /// Time from handing over a B frame to [its playout](video.md#fate-of-a-frame).
        deadline: Option<Span> = "deadline" [only ["video"] required] DEADLINE;
        /// User data of a full packet; a packet has data of one frame.
        payload: Option<u64> = "payload" [only ["video"] optional "what fits a packet of `association.mtu`"]
            SizeIn(1..=MOST_PAYLOAD_BYTES, "B");
        /// Ordered delivery within a stream.
        ordered: Option<bool> = "ordered" [only ["messages", "video"] optional "`association.ordered`"] Flag;
        /// Streams of messages or frames, used in turn.
        streams: Option<u16> = "streams" [only ["messages", "video"] optional "`association.streams`"] STREAMS;
        /// Limit after which a message is [abandoned](sockets.md#partial-reliability); such a flow has no end.
        reliability: Option<FrameReliability> = "reliability"
            [only ["messages", "video"] optional "every message is delivered"] AnyReliability;
        /// Time at which the left host opens the association.
        start: Option<Span> = "start" [optional "`run.start`"] ANY_TIME;
        /// The first is the primary path.
        paths: Option<Vec<Placed>> = "paths" [optional "all"] PlacedTexts;
        /// Scheme of the flow: a name or an expression.
        scheme: Option<String> = "scheme" [optional "each of `run.schemes` in turn"] Text;
        /// Sender: the left host, the right host, or each of them the same data. The left host always opens the
        /// association.
        direction: Directions = "direction" [or Directions::Forward] ANY;
        /// Maximum rate at which the receiving application reads.
        read_rate: Option<Rate> = "read_rate" [optional "everything at once"] AnyRate;
        /// Small messages beside the bulk.
        messages: Option<MessagesBeside> = "messages" [only ["bulk"] optional "none"]
            Inner::<MessagesBeside>::new("SmallMessages");
        /// Downloads without an end, each a connection from the right host.
        downloads: Option<u16> = "downloads" [only ["forward"] optional "0"] IntegerIn::<u16>(0..=1000);
        /// Requests and responses on one connection.
        requests: Option<Exchange> = "requests" [only ["forward"] optional "none"] Inner::<Exchange>::new("Exchange");
        /// Keystrokes and their echoes on one connection.
        keystrokes: Option<Exchange> = "keystrokes" [only ["forward"] optional "none"]
            Inner::<Exchange>::new("Exchange");
        /// Datagrams to the right host.
        datagrams: Option<Datagrams> = "datagrams" [only ["forward"] optional "none"]
            Inner::<Datagrams>::new("Datagrams");
    }
}

/// Settings of the scenario that flows use.
pub(crate) struct FlowContext<'a> {
    pub(crate) paths: &'a Names,
    pub(crate) run: Option<&'a Run>,
    pub(crate) association: Association,
}

impl FlowKind {
    /// Returns `true` if the flow has a last byte.
    pub fn ends(&self) -> bool {
        match self {
            FlowKind::Bulk | FlowKind::Video(_) | FlowKind::Forward(_) => false,
            FlowKind::File(_) => true,
            // The last message is known only if no message is abandoned.
            FlowKind::Messages { count, reliability, .. } => {
                count.is_some() && *reliability == Reliability::Full
            }
        }
    }
}

impl FlowKind {
    /// Returns `true` if data of the flow may be abandoned.
    pub fn has_limit(&self) -> bool {
        match self {
            FlowKind::Bulk | FlowKind::File(_) => false,
            FlowKind::Messages { reliability, .. } => *reliability != Reliability::Full,
            FlowKind::Video(video) => video.reliability != FrameReliability::default(),
            FlowKind::Forward(forwarded) => forwarded.datagrams.is_some(),
        }
    }
}

/// Reads the flows.
pub(crate) fn read_flows(mut readers: Vec<Reader<'_>>, around: &FlowContext<'_>) -> Option<Vec<Flow>> {
    let mut names = Names::new("flow");
    names.limit(&mut readers, MOST_FLOWS);
    let flows: Vec<Option<Flow>> =
        readers.into_iter().map(|reader| read(reader, around, &mut names)).collect();
    flows.into_iter().collect()
}

fn read(mut reader: Reader<'_>, around: &FlowContext<'_>, names: &mut Names) -> Option<Flow> {
    let name = names.add(&reader);
    let how = "`anabranch video encode CLIP --out FOLDER` makes FOLDER/trace.csv, which `trace` names";
    reader.refuse("clip", how);
    let rows = FlowRows::read_rows(&mut reader);
    match reader.word() {
        Some("messages") if !reader.has("size") => reader.missing("size", DATA_SIZE.expected()),
        Some("video") if !reader.has("trace") && !reader.has("clip") => {
            reader.missing("trace", format!("the name of a CSV file with a row for each frame; {how}"));
        }
        _ => {}
    }
    let flow = rows.and_then(|rows| of_rows(rows, name, &reader, around));
    reader.finish();
    flow
}

fn of_rows(
    rows: FlowRows,
    name: Option<String>,
    reader: &Reader<'_>,
    around: &FlowContext<'_>,
) -> Option<Flow> {
    let start = rows.start.unwrap_or_else(|| around.run.map_or(Span::ZERO, |run| run.start));
    if rows.start.is_some() && around.run.and_then(Run::limit).is_some_and(|limit| start >= limit) {
        let help = "start it before `run.duration` is over";
        reader.fault("start", Fault::explained(ProblemKind::Conflict, "this flow never starts", help));
    }
    let paths = match &rows.paths {
        Some(paths) => around.paths.resolve(reader, "paths", paths),
        None => Some((0..around.paths.len()).collect()),
    };
    let FlowRows { ref scheme, direction, read_rate, messages: beside, .. } = rows;
    let scheme = scheme.clone();
    let kind = kind_of(rows, reader, &around.association);
    Some(Flow { name: name?, kind: kind?, start, paths: paths?, scheme, direction, read_rate, beside })
}

fn kind_of(rows: FlowRows, reader: &Reader<'_>, association: &Association) -> Option<FlowKind> {
    let ordered = rows.ordered.unwrap_or(association.ordered);
    let streams = rows.streams.unwrap_or(association.streams);
    let reliability = rows.reliability.unwrap_or_default();
    match rows.kind {
        Kind::Bulk => Some(FlowKind::Bulk),
        Kind::File => file_of(rows.path, rows.size, reader).map(FlowKind::File),
        Kind::Messages => {
            if reader.peek("reliability").is_some_and(is_by_frame) {
                let message = "only the frames of `kind = \"video\"` have limits by type";
                let help = "give one limit for all messages";
                reader.fault("reliability", Fault::explained(ProblemKind::Conflict, message, help));
            }
            Some(FlowKind::Messages {
                size_bytes: rows.size?,
                interval: rows.interval?,
                count: rows.count,
                ordered,
                streams,
                reliability: reliability.i,
            })
        }
        Kind::Video => {
            if rows.direction == Directions::Both {
                let message = "a video is sent in one direction";
                let help = "make a second [[flow]] for the other direction";
                reader.fault("direction", Fault::explained(ProblemKind::Conflict, message, help));
            }
            Some(FlowKind::Video(VideoFlow {
                trace: PathBuf::from(rows.trace?),
                deadline: rows.deadline?,
                payload_bytes: rows.payload,
                ordered,
                streams,
                reliability,
            }))
        }
        Kind::Forward => forwarded_of(&rows, reader).map(FlowKind::Forward),
    }
}

fn forwarded_of(rows: &FlowRows, reader: &Reader<'_>) -> Option<Forwarded> {
    if rows.direction != Directions::Forward {
        let message = "programs are forwarded from the left host to the right one";
        let help = "omit `direction`, and exchange the directions of the paths";
        reader.fault("direction", Fault::explained(ProblemKind::Conflict, message, help));
        return None;
    }
    let FlowRows { downloads, requests, keystrokes, datagrams, .. } = *rows;
    let forwarded = Forwarded { downloads: downloads.unwrap_or(0), requests, keystrokes, datagrams };
    if forwarded == Forwarded::default() {
        let expected = "the number of downloads; or `requests`, `keystrokes` or `datagrams`";
        reader.missing("downloads", expected.to_owned());
        return None;
    }
    Some(forwarded)
}

fn file_of(path: Option<String>, size: Option<u64>, reader: &Reader<'_>) -> Option<FileSource> {
    match (path, size) {
        (Some(path), None) => Some(FileSource::Path(PathBuf::from(path))),
        (None, Some(size)) => Some(FileSource::SizeBytes(size)),
        (Some(_), Some(_)) => {
            let message = "a file flow has both `path` and `size`";
            let help = "keep `path` to send that file whole, or `size` to send made-up content";
            reader.fault("size", Fault::explained(ProblemKind::Conflict, message, help));
            None
        }
        (None, None) => {
            let sizes = DATA_SIZE.expected();
            reader.missing("size", format!("{sizes}; or `path` with the name of a file to send"));
            None
        }
    }
}

impl Flow {
    /// Returns the table of the flow. `names` are the names of the paths.
    pub(crate) fn to_rows(&self, names: &[&str]) -> FlowRows {
        let paths = self.paths.iter().map(|&index| (names[index].to_owned(), Origin::Assumed)).collect();
        let rows = FlowRows {
            name: Some(self.name.clone()),
            kind: Kind::Bulk,
            path: None,
            size: None,
            interval: None,
            count: None,
            trace: None,
            deadline: None,
            payload: None,
            ordered: None,
            streams: None,
            reliability: None,
            start: Some(self.start),
            paths: Some(paths),
            scheme: self.scheme.clone(),
            direction: self.direction,
            read_rate: self.read_rate,
            messages: self.beside,
            downloads: None,
            requests: None,
            keystrokes: None,
            datagrams: None,
        };
        match &self.kind {
            FlowKind::Bulk => rows,
            FlowKind::File(FileSource::Path(path)) => {
                FlowRows { kind: Kind::File, path: Some(path.to_string_lossy().into_owned()), ..rows }
            }
            FlowKind::File(FileSource::SizeBytes(size)) => {
                FlowRows { kind: Kind::File, size: Some(*size), ..rows }
            }
            FlowKind::Messages { size_bytes, interval, count, ordered, streams, reliability } => FlowRows {
                kind: Kind::Messages,
                size: Some(*size_bytes),
                interval: Some(*interval),
                count: *count,
                ordered: Some(*ordered),
                streams: Some(*streams),
                reliability: FrameReliability::all(*reliability).given(),
                ..rows
            },
            FlowKind::Video(video) => FlowRows {
                kind: Kind::Video,
                trace: Some(video.trace.to_string_lossy().into_owned()),
                deadline: Some(video.deadline),
                payload: video.payload_bytes,
                ordered: Some(video.ordered),
                streams: Some(video.streams),
                reliability: video.reliability.given(),
                ..rows
            },
            FlowKind::Forward(forwarded) => FlowRows {
                kind: Kind::Forward,
                downloads: Some(forwarded.downloads),
                requests: forwarded.requests,
                keystrokes: forwarded.keystrokes,
                datagrams: forwarded.datagrams,
                ..rows
            },
        }
    }
}

/// Reports a run that stops with the transfer and has no flow that ends.
pub(crate) fn check_end(root: &Reader<'_>, run: &Run, flows: &[Flow]) {
    let transfer = matches!(run.stop, Stop::Transfer { .. });
    if transfer && !flows.iter().any(|flow| flow.kind.ends()) {
        let message = "`run.stop = \"transfer\"`, but no flow has an end";
        let help = "add a [[flow]] with `kind = \"file\"`, or with `kind = \"messages\"`, a `count` and no `reliability`; \
                    or set `run.duration` and omit `stop`";
        root.fault_in("run", "stop", Fault::explained(ProblemKind::Conflict, message, help));
    }
}
