//! `FLOW-paths.csv` and `FLOW-decisions.csv`: the state of each path after each change, and the decisions.

use std::path::Path;

use anabranch_core::policy::{LossCause, WaitFor};
use anabranch_core::time::Time;
use anabranch_core::trace::{DecisionRecord, TraceEvent};
use anabranch_core::{PathId, PathSet};

use crate::csv_table::{CsvTable, TraceError, seconds};
use crate::manifest::Sender;
use crate::sampler::PathSample;
use crate::trace_names;

/// Columns of `FLOW-paths.csv`.
pub const PATH_COLUMNS: [&str; 15] = [
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
pub const DECISION_COLUMNS: [&str; 14] = [
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

/// Writer of the two trace files of a sender, or of the requested ones.
pub struct AssociationTables {
    flow: String,
    names: Vec<String>,
    paths: Option<CsvTable>,
    decisions: Option<CsvTable>,
    /// Last written cwnd and ssthresh of each path.
    windows: Vec<(u64, u64)>,
    /// Number of T3-rtx expiries written so far.
    timeouts: u64,
    /// Paths on which T3-rtx has declared chunks lost since the latest written expiry.
    timed_out: PathSet,
}

impl AssociationTables {
    /// Begins both files.
    ///
    /// # Errors
    /// Returns [`TraceError`] if a file cannot be written.
    pub fn create(folder: &Path, sender: &Sender) -> Result<Self, TraceError> {
        AssociationTables::create_wanted(folder, sender, [true; 2])
    }

    /// Begins the requested ones of both files, paths and decisions.
    ///
    /// # Errors
    /// Returns [`TraceError`] if a file cannot be written.
    pub fn create_wanted(
        folder: &Path,
        sender: &Sender,
        [paths, decisions]: [bool; 2],
    ) -> Result<Self, TraceError> {
        let [path_file, decision_file] = sender.files();
        let create = |file: &str, columns: &[&str]| CsvTable::create(folder, file, columns);
        let paths = paths.then(|| create(&path_file, &PATH_COLUMNS)).transpose()?;
        let decisions = decisions.then(|| create(&decision_file, &DECISION_COLUMNS)).transpose()?;
        let mut tables = AssociationTables {
            flow: sender.flow.clone(),
            names: Vec::new(),
            paths,
            decisions,
            windows: Vec::new(),
            timeouts: 0,
            timed_out: PathSet::EMPTY,
        };
        sender.paths.iter().for_each(|name| tables.add_path(name.clone()));
        Ok(tables)
    }

    /// Names the next path.
    pub fn add_path(&mut self, name: String) {
        self.names.push(name);
        self.windows.push((0, 0));
    }

    /// Names a path of the association, whose id may be that of a removed path.
    pub fn name_path(&mut self, id: PathId, name: String) {
        let count = self.names.len().max(id.index() + 1);
        self.names.resize_with(count, String::new);
        self.windows.resize(count, (0, 0));
        self.names[id.index()] = name;
    }

    /// Writes the state of a path. A path without a name has no rows.
    pub fn path(&mut self, now: Time, stand: &PathSample) {
        let PathSample { facts, peer_window_bytes, queued_bytes } = stand;
        let (Some(name), Some(table)) = (self.names.get(facts.id.index()), &mut self.paths) else { return };
        table.write(|row| {
            row.seconds(now).word(&self.flow).word(name).plain(format_args!("{:?}", facts.state));
            for bytes in [facts.cwnd, facts.ssthresh, facts.in_flight, facts.lost_unsent] {
                row.number(bytes.get());
            }
            row.number(facts.partial_bytes_acked.get());
            for span in [facts.rtt.smoothed, facts.rtt.variance, Some(facts.rto)] {
                match span {
                    Some(span) => row.plain(format_args!("{:.3}", span.as_millis_f64())),
                    None => row.empty(),
                };
            }
            row.number(u64::from(facts.error_count)).number(*peer_window_bytes).number(*queued_bytes);
        });
    }

    /// Writes the T3-rtx expiries since the latest call. `total` is the number of all expiries.
    ///
    /// The endpoint does not report an expiry as a decision. Its counter gives the number of expiries, and the chunks that it
    /// declared lost identify the path. An expiry without lost chunks has a row without a path.
    pub fn timeouts(&mut self, now: Time, total: u64) {
        let mut paths = std::mem::take(&mut self.timed_out).iter();
        for _ in self.timeouts..total {
            let path = paths.next().map_or_else(String::new, |path| self.name(path));
            let mut row = self.decision_row(now, "timeout", path);
            row[6] = "T3 expired".to_owned();
            self.decided(&row);
        }
        self.timeouts = self.timeouts.max(total);
    }

    fn decided(&mut self, row: &[String; DECISION_COLUMNS.len()]) {
        if let Some(table) = &mut self.decisions {
            table.row(row);
        }
    }

    fn name(&self, path: PathId) -> String {
        self.names.get(path.index()).cloned().unwrap_or_else(|| format!("#{}", path.index()))
    }

    /// Returns a row with only the first columns filled.
    fn decision_row(&self, at: Time, decision: &str, path: String) -> [String; DECISION_COLUMNS.len()] {
        let mut row = [const { String::new() }; DECISION_COLUMNS.len()];
        row[..4].clone_from_slice(&[seconds(at), self.flow.clone(), decision.to_owned(), path]);
        row
    }

    /// Writes a decision.
    pub fn decision(&mut self, event: &TraceEvent) {
        if let DecisionRecord::Lost(path, LossCause::Timeout) = event.decided {
            self.timed_out.insert(path);
        }
        let mut row =
            self.decision_row(event.at, trace_names::decision(&event.decided), self.place(&event.decided));
        if event.tsn != 0 {
            row[4] = (event.tsn as u32).to_string();
        }
        row[5] = match event.decided {
            DecisionRecord::Lost(_, cause) => trace_names::loss_cause(cause).to_owned(),
            DecisionRecord::Abandoned(cause) => trace_names::abandon_cause(cause).to_owned(),
            DecisionRecord::State(_, state) => format!("{state:?}"),
            DecisionRecord::Wait(wait) | DecisionRecord::RetransmitWait(wait) => self.wait(wait),
            _ => String::new(),
        };
        row[6] = event.reason.rule.to_owned();
        if !event.reason.figure.is_empty() {
            row[7] = event.reason.figure.to_owned();
            row[8] = event.reason.value.to_string();
        }
        let refused = event.refused.iter().map(|(path, why)| format!("{}:{why:?}", self.name(*path)));
        row[9] = refused.collect::<Vec<_>>().join(" ");
        if let DecisionRecord::Window { path, cwnd_bytes, ssthresh_bytes } = event.decided {
            let after = (cwnd_bytes, ssthresh_bytes);
            let before = self.windows.get_mut(path.index()).map(|last| std::mem::replace(last, after));
            let (cwnd_before, ssthresh_before) = before.unwrap_or_default();
            let windows = [cwnd_before, cwnd_bytes, ssthresh_before, ssthresh_bytes];
            row[10..].clone_from_slice(&windows.map(|bytes| bytes.to_string()));
        }
        self.decided(&row);
    }

    /// Returns the paths that a decision chose or concerns.
    fn place(&self, decided: &DecisionRecord) -> String {
        if trace_names::is_wait(decided) {
            return "wait".to_owned();
        }
        let names: Vec<String> = trace_names::paths(decided).iter().map(|path| self.name(path)).collect();
        names.join(" ")
    }

    /// Returns the condition for which a policy waits, unless it waits for room in any window.
    fn wait(&self, wait: WaitFor) -> String {
        match wait {
            WaitFor::Window => String::new(),
            WaitFor::Path(path) => format!("path {}", self.name(path)),
            WaitFor::Until(at) => format!("until {}", seconds(at)),
        }
    }

    /// Flushes the files.
    ///
    /// # Errors
    /// Returns the first error of a write.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        [&mut self.paths, &mut self.decisions].into_iter().flatten().try_for_each(CsvTable::flush)
    }
}
