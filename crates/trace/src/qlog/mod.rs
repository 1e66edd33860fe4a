//! Events in the style of qlog: a main-schema header (draft-ietf-quic-qlog-main-schema-12) and JSON text sequences (RFC 7464) with
//! a separate event schema. The book describes it (chapter "Observing associations").

mod event;
mod frame;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anabranch_core::time::Time;
use anabranch_core::trace::{DecisionRecord, TraceEvent};
use anabranch_core::{PathId, PathState};
use serde::Serialize;

use self::event::{Data, Decision, Dropped, Lost, Metrics, Packet, Refused, Stated, Window};
use crate::csv_table::TraceError;
use crate::sampler::PathSample;
use crate::trace_names;

/// Event schema. Its number increases if a field changes its meaning or is removed.
pub const EVENT_SCHEMA: &str = "urn:anabranch:qlog:events:sctp-1";
/// Extension of file names.
pub const QLOG_EXTENSION: &str = "sqlog";
/// First byte of each record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1E;

/// Time 0 of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// Wall-clock time in the format of RFC 3339.
    WallClock(String),
    /// Beginning of a simulation, which has no date.
    Simulated,
}

/// Role of the end that wrote the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Opened the association.
    Client,
    /// Accepted the association.
    Server,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// Sent by this host.
    Sent,
    /// Received by this host.
    Received,
    /// Dropped here before transmission, with the reason.
    NotSent(&'static str),
    /// Received and dropped, with the reason.
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
    /// Time in milliseconds.
    time: f64,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    group_id: &'a str,
    data: Data<'a>,
}

/// Association of an event.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name of the association.
    pub name: String,
    /// Names of its paths.
    pub paths: Vec<String>,
}

impl Subject {
    fn path(&self, path: PathId) -> &str {
        self.paths.get(path.index()).map_or("unknown", String::as_str)
    }
}

/// Writer of a file of events, of one or several associations.
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
    /// Returns [`TraceError`] if it cannot be written.
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

    /// Writes the beginning of an association.
    pub fn started(&mut self, at: Time, subject: &Subject, scheme: &str, profile: &str) {
        self.event(at, subject, None, Data::AssociationStarted { scheme, profile });
    }

    /// Writes the addresses of a new path, or the changed addresses of a known path.
    pub fn path_addresses(&mut self, at: Time, subject: &Subject, path: PathId, local: &str, remote: &str) {
        self.event(at, subject, Some(path), Data::PathAddresses { local, remote });
    }

    /// Writes the end of an association with its `outcome`.
    pub fn ended(&mut self, at: Time, subject: &Subject, outcome: &str) {
        self.event(at, subject, None, Data::AssociationEnded { outcome });
    }

    /// Writes the state of a changed path.
    pub fn write_path_state(&mut self, at: Time, subject: &Subject, stand: &PathSample) {
        self.event(at, subject, Some(stand.facts.id), Data::MetricsUpdated(Metrics::of(stand)));
    }

    /// Writes a packet. `path` is `None` for a packet that belongs to no path.
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

    /// Writes a decision.
    pub fn decided(&mut self, subject: &Subject, event: &TraceEvent) {
        let tsn = (event.tsn != 0).then_some(event.tsn as u32);
        let reason = event::Reason::of(&event.reason);
        let paths = trace_names::paths(&event.decided);
        let path = paths.first().filter(|_| paths.len() == 1);
        let data = match event.decided {
            DecisionRecord::Window { cwnd_bytes, ssthresh_bytes, .. } => {
                Data::CongestionWindow(Window { cwnd_bytes, ssthresh_bytes, reason })
            }
            DecisionRecord::Lost(_, cause) => {
                Data::PacketLost(Lost { tsn, cause: trace_names::loss_cause(cause), reason })
            }
            DecisionRecord::State(_, state) => Data::PathState(Stated { state: state_word(state), reason }),
            DecisionRecord::Blocked(_) => Data::PeerWindowClosed { reason },
            DecisionRecord::Unblocked => Data::PeerWindowOpened { reason },
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

    /// Writes the number of T3-rtx expiries so far.
    pub fn timeouts(&mut self, at: Time, subject: &Subject, total: u64) {
        self.event(at, subject, None, Data::TimerExpired { timer: "T3", total });
    }

    /// Writes the change to keys of this epoch.
    pub fn keys_updated(&mut self, at: Time, subject: &Subject, epoch: u64) {
        self.event(at, subject, None, Data::KeysUpdated { epoch });
    }

    /// Writes the failure to get newer keys. The current keys stay in use.
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

    /// Flushes the file.
    ///
    /// # Errors
    /// Returns the first error of a write.
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
