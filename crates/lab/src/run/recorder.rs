//! Traces as CSV: what each path's state was whenever it changed, every packet with DATA, every decision, every queue.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anabranch_core::policy::{PathFacts, Relief};
use anabranch_core::time::Time;
use anabranch_core::trace::{Decided, TraceEvent};
use anabranch_core::{Association, PathId};
use anabranch_sim::PacketEvent;
use anabranch_wire::Tsn;

use crate::run::RunError;

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

/// Path states and decisions of one end of a flow.
pub(crate) struct PathRecorder {
    flow: String,
    names: Vec<String>,
    paths: Sheet,
    decisions: Sheet,
    last: Vec<Option<(PathFacts, u64)>>,
}

impl PathRecorder {
    pub(crate) fn create(folder: &Path, flow: &str, names: Vec<String>) -> Result<Self, RunError> {
        let paths = Sheet::create(
            folder,
            &format!("{flow}-paths.csv"),
            &[
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
            ],
        )?;
        let decisions = Sheet::create(
            folder,
            &format!("{flow}-decisions.csv"),
            &["time_s", "flow", "decision", "path", "tsn", "reason", "figure", "value", "refused"],
        )?;
        let last = names.iter().map(|_| None).collect();
        Ok(PathRecorder { flow: flow.to_owned(), names, paths, decisions, last })
    }

    /// Writes what has changed.
    pub(crate) fn sample(&mut self, now: Time, association: &mut Association) {
        let window = association.facts().peer_window.get();
        for index in 0..association.paths().len().min(self.names.len()) {
            let facts = association.paths()[index];
            let seen = Some((facts, window));
            if self.last[index] != seen {
                self.last[index] = seen;
                self.write_facts(now, index, &facts, window);
            }
        }
        while let Some(event) = association.poll_trace() {
            self.write_decision(&event);
        }
    }

    fn write_facts(&mut self, now: Time, index: usize, facts: &PathFacts, window: u64) {
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
        ];
        self.paths.row(&row);
    }

    fn name(&self, path: PathId) -> String {
        self.names.get(path.index()).cloned().unwrap_or_else(|| format!("#{}", path.index()))
    }

    fn write_decision(&mut self, event: &TraceEvent) {
        let (decision, path) = match event.decided {
            Decided::Schedule(path) => ("schedule", path),
            Decided::Copies(paths) => ("copies", paths.first()),
            Decided::Bind(path) => ("bind", Some(path)),
            Decided::Retransmit(path) => ("retransmit", path),
            Decided::Relieve(Relief::Copy(path)) => ("relieve-copy", Some(path)),
            Decided::Relieve(Relief::Move(path)) => ("relieve-move", Some(path)),
            Decided::TailProbe(path) => ("tail-probe", Some(path)),
            Decided::Blocked(hole) => ("blocked", hole),
            Decided::Unblocked => ("unblocked", None),
            Decided::Window { path, .. } => ("window", Some(path)),
            Decided::Lost(path, _) => ("lost", Some(path)),
            Decided::State(path, _) => ("state", Some(path)),
        };
        let refused: Vec<String> =
            event.refused.iter().map(|(path, why)| format!("{}:{why:?}", self.name(*path))).collect();
        let row = [
            seconds(event.at),
            self.flow.clone(),
            decision.to_owned(),
            path.map_or_else(|| "wait".to_owned(), |p| self.name(p)),
            if event.tsn == 0 { String::new() } else { (event.tsn as u32).to_string() },
            event.reason.rule.to_owned(),
            event.reason.figure.to_owned(),
            if event.reason.figure.is_empty() { String::new() } else { event.reason.value.to_string() },
            refused.join(" "),
        ];
        self.decisions.row(&row);
    }

    pub(crate) fn finish(&mut self) -> Result<(), std::io::Error> {
        self.paths.finish()?;
        self.decisions.finish()
    }
}

/// Every packet with DATA: sent, delivered or dropped.
pub(crate) struct PacketRecorder {
    sheet: Sheet,
    flows: Vec<String>,
    paths: Vec<String>,
}

impl PacketRecorder {
    pub(crate) fn create(folder: &Path, flows: Vec<String>, paths: Vec<String>) -> Result<Self, RunError> {
        let columns = ["time_s", "flow", "direction", "path", "event", "tsn"];
        let sheet = Sheet::create(folder, "packets.csv", &columns)?;
        Ok(PacketRecorder { sheet, flows, paths })
    }

    pub(crate) fn packet(
        &mut self,
        now: Time,
        flow: usize,
        path: usize,
        side: usize,
        event: PacketEvent,
        tsn: Tsn,
    ) {
        let event = match event {
            PacketEvent::Sent => "sent",
            PacketEvent::Delivered => "received",
            PacketEvent::DroppedLoss => "lost",
            PacketEvent::DroppedQueue => "queue-full",
            PacketEvent::DroppedOutage => "outage",
            PacketEvent::Unroutable => "unroutable",
        };
        let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
        let direction = if side == 0 { "forward" } else { "reverse" };
        let row = [
            seconds(now),
            name(&self.flows, flow),
            direction.to_owned(),
            name(&self.paths, path),
            event.to_owned(),
            tsn.get().to_string(),
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
