//! Events in the manner of qlog: a main-schema header (draft-ietf-quic-qlog-main-schema-12) and JSON text sequences (RFC 7464)
//! with an event schema of our own. The book describes it (chapter "Observing associations").

mod event;
mod frame;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anabranch_core::time::Time;
use anabranch_core::trace::{Decided, TraceEvent};
use anabranch_core::{PathId, PathState};
use serde::Serialize;

use self::event::{Data, Decision, Dropped, Lost, Metrics, Packet, Refused, Stated, Window};
use crate::trace::csv_table::TraceError;
use crate::trace::sampler::PathSample;
use crate::trace::trace_names;

/// The event schema: its number changes whenever a field gets another meaning or goes away.
pub const EVENT_SCHEMA: &str = "urn:anabranch:qlog:events:sctp-1";
/// What file names end with.
pub const QLOG_EXTENSION: &str = "sqlog";
/// Begins each record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1E;

/// When events' time 0 is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// A moment of the wall clock, in the format of RFC 3339.
    WallClock(String),
    /// The beginning of a simulation, which is no date.
    Simulated,
}

/// Which end wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It opened the association.
    Client,
    /// It accepted the association.
    Server,
}

/// What became of a packet that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It left.
    Sent,
    /// It came.
    Received,
    /// It was dropped here before it left, and why.
    NotSent(&'static str),
    /// It came and was dropped, and why.
    Discarded(&'static str),
}

#[derive(Serialize)]
struct Header<'a> {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    common_fields: CommonFields<'a>,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 1],
}

#[derive(Serialize)]
struct CommonFields<'a> {
    time_format: &'static str,
    reference_time: ReferenceTime<'a>,
}

#[derive(Serialize)]
struct ReferenceTime<'a> {
    clock_type: &'static str,
    epoch: &'a str,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    #[serde(rename = "type")]
    role: Role,
}

#[derive(Serialize)]
struct Event<'a> {
    /// Milliseconds.
    time: f64,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    group_id: &'a str,
    data: Data<'a>,
}

/// An association as events name it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its paths' names.
    pub paths: Vec<String>,
}

impl Subject {
    fn path(&self, path: PathId) -> &str {
        self.paths.get(path.index()).map_or("unknown", String::as_str)
    }
}

/// A file of events, of one association or of several.
pub struct QlogWriter {
    path: PathBuf,
    output: BufWriter<File>,
    record: Vec<u8>,
    error: Option<io::Error>,
}

impl QlogWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// [`TraceError`] if it cannot be written.
    pub fn create(path: &Path, title: &str, epoch: &Epoch, role: Role) -> Result<Self, TraceError> {
        let wrong = |error| TraceError { path: path.to_owned(), error };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(wrong)?;
        }
        let output = BufWriter::new(File::create(path).map_err(wrong)?);
        let mut writer = QlogWriter { path: path.to_owned(), output, record: Vec::new(), error: None };
        let (clock_type, epoch) = match epoch {
            Epoch::WallClock(date) => ("system", date.as_str()),
            Epoch::Simulated => ("monotonic", "unknown"),
        };
        writer.put(&Header {
            file_schema: "urn:ietf:params:qlog:file:sequential",
            serialization_format: "application/qlog+json-seq",
            title,
            trace: Trace {
                common_fields: CommonFields {
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime { clock_type, epoch },
                },
                vantage_point: VantagePoint { name: "anabranch", role },
                event_schemas: [EVENT_SCHEMA],
            },
        });
        Ok(writer)
    }

    /// An association begins.
    pub fn started(&mut self, at: Time, subject: &Subject, scheme: &str, profile: &str) {
        self.event(at, subject, None, Data::AssociationStarted { scheme, profile });
    }

    /// A path is there between these addresses, or has others now.
    pub fn path_addresses(&mut self, at: Time, subject: &Subject, path: PathId, local: &str, remote: &str) {
        self.event(at, subject, Some(path), Data::PathAddresses { local, remote });
    }

    /// An association is over. `outcome` says how.
    pub fn ended(&mut self, at: Time, subject: &Subject, outcome: &str) {
        self.event(at, subject, None, Data::AssociationEnded { outcome });
    }

    /// A path has changed.
    pub fn stands(&mut self, at: Time, subject: &Subject, stand: &PathSample) {
        self.event(at, subject, Some(stand.facts.id), Data::MetricsUpdated(Metrics::of(stand)));
    }

    /// A packet has passed. `path` is none where it belongs to no path.
    pub fn packet(
        &mut self,
        at: Time,
        subject: &Subject,
        path: Option<PathId>,
        fate: PacketFate,
        bytes: &[u8],
    ) {
        let packet = Packet::of(bytes);
        let dropped =
            |direction, reason| Data::PacketDropped(Dropped { direction, reason, length: bytes.len() });
        let data = match fate {
            PacketFate::Sent => Data::PacketSent(packet),
            PacketFate::Received => Data::PacketReceived(packet),
            PacketFate::NotSent(reason) => dropped("sent", reason),
            PacketFate::Discarded(reason) => dropped("received", reason),
        };
        self.event(at, subject, path, data);
    }

    /// Something was decided.
    pub fn decided(&mut self, subject: &Subject, event: &TraceEvent) {
        let tsn = (event.tsn != 0).then_some(event.tsn as u32);
        let reason = event::Reason::of(&event.reason);
        let paths = trace_names::paths(&event.decided);
        let path = paths.first().filter(|_| paths.len() == 1);
        let data = match event.decided {
            Decided::Window { cwnd_bytes, ssthresh_bytes, .. } => {
                Data::CongestionWindow(Window { cwnd_bytes, ssthresh_bytes, reason })
            }
            Decided::Lost(_, cause) => {
                Data::PacketLost(Lost { tsn, cause: trace_names::loss_cause(cause), reason })
            }
            Decided::State(_, state) => Data::PathState(Stated { state: state_word(state), reason }),
            Decided::Blocked(_) => Data::PeerWindowClosed { reason },
            Decided::Unblocked => Data::PeerWindowOpened { reason },
            ref decided => Data::SchedulerDecision(Decision {
                decision: trace_names::decision(decided),
                paths: paths.iter().map(|path| subject.path(path)).collect(),
                tsn,
                reason,
                refused: event
                    .refused
                    .iter()
                    .map(|(path, why)| Refused { path: subject.path(*path), reason: format!("{why:?}") })
                    .collect(),
            }),
        };
        self.event(event.at, subject, path, data);
    }

    /// So many T3 expiries there were by now.
    pub fn timeouts(&mut self, at: Time, subject: &Subject, total: u64) {
        self.event(at, subject, None, Data::TimerExpired { timer: "T3", total });
    }

    /// Keys of this epoch protect packets from now on.
    pub fn keys_updated(&mut self, at: Time, subject: &Subject, epoch: u64) {
        self.event(at, subject, None, Data::KeysUpdated { epoch });
    }

    /// No newer keys came about, and the present ones stay in use.
    pub fn rekey_failed(&mut self, at: Time, subject: &Subject, reason: &str) {
        self.event(at, subject, None, Data::RekeyFailed { reason });
    }

    fn event(&mut self, at: Time, subject: &Subject, path: Option<PathId>, data: Data<'_>) {
        let time = at.as_nanos() as f64 / 1e6;
        let path = path.map(|path| subject.path(path));
        self.put(&Event { time, name: data.name(), path, group_id: &subject.name, data });
    }

    /// Writes a record. The first error is kept until the next flush.
    fn put<T: Serialize>(&mut self, record: &T) {
        self.record.clear();
        self.record.push(RECORD_SEPARATOR);
        let made = serde_json::to_writer(&mut self.record, record).map_err(io::Error::from);
        self.record.push(b'\n');
        if let Err(error) = made.and_then(|()| self.output.write_all(&self.record)) {
            self.error.get_or_insert(error);
        }
    }

    /// Hands what was written to the system.
    ///
    /// # Errors
    /// The first that writing met.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = match self.error.take() {
            Some(error) => Err(error),
            None => self.output.flush(),
        };
        flushed.map_err(|error| TraceError { path: self.path.clone(), error })
    }
}

fn state_word(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially_failed",
        PathState::Inactive => "inactive",
    }
}
