//! Traces as CSV: what each path's state was whenever it changed, every packet with DATA, every decision, every queue.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anabranch_core::policy::{LossCause, PathFacts, Relief};
use anabranch_core::time::Time;
use anabranch_core::trace::{Decided, TraceEvent};
use anabranch_core::{Association, PathId, PathSet};
use anabranch_sim::PacketEvent;
use anabranch_wire::Tsn;

use crate::run::RunError;
use crate::run::manifest::Sender;

/// A table that is written row by row. Rows are written deep inside the simulation, so the first error is kept for the end.
struct Sheet {
    rows: csv::Writer<BufWriter<File>>,
    error: Option<csv::Error>,
}

impl Sheet {
    fn create(folder: &Path, name: &str, columns: &[&str]) -> Result<Self, RunError> {
        let path = folder.join(name);
        let wrong = |error: std::io::Error| RunError::File { path: path.display().to_string(), error };
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let file = File::create(&path).map_err(wrong)?;
        let mut rows = csv::Writer::from_writer(BufWriter::new(file));
        rows.write_record(columns).map_err(|e| wrong(std::io::Error::other(e)))?;
        Ok(Sheet { rows, error: None })
    }

    fn row<const N: usize>(&mut self, row: &[String; N]) {
        if let Err(error) = self.rows.write_record(row) {
            self.error.get_or_insert(error);
        }
    }

    fn finish(&mut self) -> Result<(), std::io::Error> {
        match self.error.take() {
            Some(error) => Err(std::io::Error::other(error)),
            None => self.rows.flush(),
        }
    }
}

fn seconds(now: Time) -> String {
    format!("{:.9}", now.as_secs_f64())
}

/// Columns of `FLOW-paths.csv`.
const PATH_COLUMNS: [&str; 15] = [
    "time_s",
    "flow",
    "path",
    "state",
    "cwnd_bytes",
    "ssthresh_bytes",
    "outstanding_bytes",
    "lost_unsent_bytes",
    "partial_bytes_acked",
    "srtt_ms",
    "rttvar_ms",
    "rto_ms",
    "error_count",
    "peer_window_bytes",
    "queued_bytes",
];

/// Columns of `FLOW-decisions.csv`.
const DECISION_COLUMNS: [&str; 14] = [
    "time_s",
    "flow",
    "decision",
    "path",
    "tsn",
    "detail",
    "reason",
    "figure",
    "value",
    "refused",
    "cwnd_before_bytes",
    "cwnd_bytes",
    "ssthresh_before_bytes",
    "ssthresh_bytes",
];

/// What a row of `FLOW-paths.csv` shows of the association.
#[derive(Clone, Copy, PartialEq)]
struct Shared {
    peer_window: u64,
    /// How much is queued changes with every message; that nothing is makes a row of its own.
    has_data: bool,
}

/// Path states and decisions of one end of a flow.
pub(crate) struct PathRecorder {
    flow: String,
    names: Vec<String>,
    paths: Sheet,
    decisions: Sheet,
    last: Vec<Option<(PathFacts, Shared)>>,
    /// Each path's cwnd and ssthresh as they were written last.
    windows: Vec<(u64, u64)>,
    /// T3 expiries written so far.
    timeouts: u64,
}

impl PathRecorder {
    pub(crate) fn create(folder: &Path, sender: &Sender) -> Result<Self, RunError> {
        let [paths, decisions] = sender.files();
        let paths = Sheet::create(folder, &paths, &PATH_COLUMNS)?;
        let decisions = Sheet::create(folder, &decisions, &DECISION_COLUMNS)?;
        let names = sender.paths.clone();
        let last = names.iter().map(|_| None).collect();
        let windows = vec![(0, 0); names.len()];
        Ok(PathRecorder { flow: sender.flow.clone(), names, paths, decisions, last, windows, timeouts: 0 })
    }

    /// Writes what has changed since the latest call.
    pub(crate) fn sample(&mut self, now: Time, association: &mut Association) {
        let queued = association.queued_bytes();
        let shared = Shared { peer_window: association.facts().peer_window.get(), has_data: queued > 0 };
        for index in 0..association.paths().len().min(self.names.len()) {
            let facts = association.paths()[index];
            let seen = Some((facts, shared));
            if self.last[index] != seen {
                self.last[index] = seen;
                self.write_facts(now, index, &facts, shared.peer_window, queued);
            }
        }
        let mut timed_out = PathSet::EMPTY;
        while let Some(event) = association.poll_trace() {
            if let Decided::Lost(path, LossCause::Timeout) = event.decided {
                timed_out.insert(path);
            }
            self.write_decision(&event);
        }
        self.write_timeouts(now, association.statistics().timeouts, timed_out);
    }

    fn write_facts(&mut self, now: Time, index: usize, facts: &PathFacts, window: u64, queued: u64) {
        let milliseconds = |span: Option<anabranch_core::time::Span>| {
            span.map_or(String::new(), |s| format!("{:.3}", s.as_millis_f64()))
        };
        let row = [
            seconds(now),
            self.flow.clone(),
            self.names[index].clone(),
            format!("{:?}", facts.state),
            facts.cwnd.get().to_string(),
            facts.ssthresh.get().to_string(),
            facts.in_flight.get().to_string(),
            facts.lost_unsent.get().to_string(),
            facts.partial_bytes_acked.get().to_string(),
            milliseconds(facts.rtt.smoothed),
            milliseconds(facts.rtt.variance),
            milliseconds(Some(facts.rto)),
            facts.error_count.to_string(),
            window.to_string(),
            queued.to_string(),
        ];
        self.paths.row(&row);
    }

    /// An expiry of T3 is no decision, so the endpoint does not report it as one: its counter tells how many there were, and
    /// the chunks that it made lost tell the path. An expiry that marks none has a row without a path.
    fn write_timeouts(&mut self, now: Time, timeouts: u64, timed_out: PathSet) {
        let mut paths = timed_out.iter();
        for _ in self.timeouts..timeouts {
            let path = paths.next().map_or_else(String::new, |path| self.name(path));
            let mut row = self.decision_row(now, "timeout", path);
            row[6] = "T3 expired".to_owned();
            self.decisions.row(&row);
        }
        self.timeouts = timeouts;
    }

    fn name(&self, path: PathId) -> String {
        self.names.get(path.index()).cloned().unwrap_or_else(|| format!("#{}", path.index()))
    }

    /// A row of which only the first columns are filled.
    fn decision_row(&self, at: Time, decision: &str, path: String) -> [String; DECISION_COLUMNS.len()] {
        let mut row = [const { String::new() }; DECISION_COLUMNS.len()];
        row[..4].clone_from_slice(&[seconds(at), self.flow.clone(), decision.to_owned(), path]);
        row
    }

    fn write_decision(&mut self, event: &TraceEvent) {
        let (decision, path) = self.what_and_where(&event.decided);
        let mut row = self.decision_row(event.at, decision, path);
        if event.tsn != 0 {
            row[4] = (event.tsn as u32).to_string();
        }
        row[5] = match event.decided {
            Decided::Lost(_, cause) => loss_cause(cause).to_owned(),
            Decided::State(_, state) => format!("{state:?}"),
            _ => String::new(),
        };
        row[6] = event.reason.rule.to_owned();
        if !event.reason.figure.is_empty() {
            row[7] = event.reason.figure.to_owned();
            row[8] = event.reason.value.to_string();
        }
        let refused = event.refused.iter().map(|(path, why)| format!("{}:{why:?}", self.name(*path)));
        row[9] = refused.collect::<Vec<_>>().join(" ");
        if let Decided::Window { path, cwnd_bytes, ssthresh_bytes } = event.decided {
            let after = (cwnd_bytes, ssthresh_bytes);
            let before = self.windows.get_mut(path.index()).map(|last| std::mem::replace(last, after));
            let (cwnd_before, ssthresh_before) = before.unwrap_or_default();
            let windows = [cwnd_before, cwnd_bytes, ssthresh_before, ssthresh_bytes];
            row[10..].clone_from_slice(&windows.map(|bytes| bytes.to_string()));
        }
        self.decisions.row(&row);
    }

    /// The word for a decision and the path or paths that it chose or concerns.
    fn what_and_where(&self, decided: &Decided) -> (&'static str, String) {
        let chosen = |path: Option<PathId>| path.map_or_else(|| "wait".to_owned(), |path| self.name(path));
        match *decided {
            Decided::Schedule(path) => ("schedule", chosen(path)),
            Decided::Copies(paths) => {
                ("copies", paths.iter().map(|path| self.name(path)).collect::<Vec<_>>().join(" "))
            }
            Decided::Bind(path) => ("bind", self.name(path)),
            Decided::Retransmit(path) => ("retransmit", chosen(path)),
            Decided::Relieve(Relief::Copy(path)) => ("relieve-copy", self.name(path)),
            Decided::Relieve(Relief::Move(path)) => ("relieve-move", self.name(path)),
            Decided::TailProbe(path) => ("tail-probe", self.name(path)),
            Decided::Blocked(hole) => ("blocked", hole.map_or_else(String::new, |path| self.name(path))),
            Decided::Unblocked => ("unblocked", String::new()),
            Decided::Window { path, .. } => ("window", self.name(path)),
            Decided::Lost(path, _) => ("lost", self.name(path)),
            Decided::State(path, _) => ("state", self.name(path)),
        }
    }

    pub(crate) fn finish(&mut self) -> Result<(), std::io::Error> {
        self.paths.finish()?;
        self.decisions.finish()
    }
}

fn loss_cause(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "fast-retransmit",
        LossCause::Timeout => "timeout",
        LossCause::Rescheduled => "rescheduled",
    }
}

/// Every packet with DATA: sent, delivered or dropped.
pub(crate) struct PacketRecorder {
    sheet: Sheet,
    flows: Vec<String>,
    paths: Vec<String>,
}

/// A DATA chunk as it passed.
pub(crate) struct Sighting {
    pub(crate) flow: usize,
    pub(crate) path: usize,
    /// The side that sent it; 0 is the left one.
    pub(crate) side: usize,
    pub(crate) event: PacketEvent,
    pub(crate) tsn: Tsn,
    /// Its chunk bytes.
    pub(crate) bytes: u64,
}

impl PacketRecorder {
    pub(crate) fn create(folder: &Path, flows: Vec<String>, paths: Vec<String>) -> Result<Self, RunError> {
        let columns = ["time_s", "flow", "direction", "path", "event", "tsn", "chunk_bytes"];
        let sheet = Sheet::create(folder, "packets.csv", &columns)?;
        Ok(PacketRecorder { sheet, flows, paths })
    }

    pub(crate) fn packet(&mut self, now: Time, chunk: Sighting) {
        let event = match chunk.event {
            PacketEvent::Sent => "sent",
            PacketEvent::Delivered => "received",
            PacketEvent::DroppedLoss => "lost",
            PacketEvent::DroppedQueue => "queue-full",
            PacketEvent::DroppedOutage => "outage",
            PacketEvent::Unroutable => "unroutable",
        };
        let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
        let direction = if chunk.side == 0 { "forward" } else { "reverse" };
        let row = [
            seconds(now),
            name(&self.flows, chunk.flow),
            direction.to_owned(),
            name(&self.paths, chunk.path),
            event.to_owned(),
            chunk.tsn.get().to_string(),
            chunk.bytes.to_string(),
        ];
        self.sheet.row(&row);
    }

    pub(crate) fn finish(&mut self) -> Result<(), std::io::Error> {
        self.sheet.finish()
    }
}

/// Queue lengths, sampled.
pub(crate) struct QueueRecorder {
    sheet: Sheet,
}

impl QueueRecorder {
    pub(crate) fn create(folder: &Path) -> Result<Self, RunError> {
        let sheet = Sheet::create(folder, "queues.csv", &["time_s", "link", "queue_packets", "queue_bytes"])?;
        Ok(QueueRecorder { sheet })
    }

    pub(crate) fn sample(&mut self, now: Time, link: &str, packets: u64, bytes: u64) {
        let row = [seconds(now), link.to_owned(), packets.to_string(), bytes.to_string()];
        self.sheet.row(&row);
    }

    pub(crate) fn finish(&mut self) -> Result<(), std::io::Error> {
        self.sheet.finish()
    }
}
