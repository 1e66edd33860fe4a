//! Folder of a run: its description of the run, and the extent of its traces.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::explain::ExplainError;
use crate::explain::table::{Limit, nanoseconds};
use crate::run::ScenarioFiles;
use crate::text_file;
use anabranch_scenario::{Capacity, OneWay, Scenario};
use anabranch_trace::{FORMAT, Manifest, RESULT_FILE, RUN_FILE, SCENARIO_FILE, Sender, Vantage};

/// File with the packets of all flows.
pub(super) const PACKETS: &str = "packets.csv";
/// Length of a file's end in which the last complete row is searched. The longest row is far shorter.
const TAIL_BYTES: u64 = 1 << 16;

/// Required parts of `result.json`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResultFile {
    ended_s: f64,
    file_bytes: BTreeMap<String, u64>,
    pub(super) result: RunCounters,
}

/// Counters of the run itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunCounters {
    /// Goodput in kbit/s; `None` if only one end was traced.
    pub(super) goodput_kbps: Option<f64>,
    pub(super) retransmissions: u64,
    /// Needless retransmissions; `None` if only one end was traced.
    pub(super) spurious_retransmissions: Option<u64>,
    pub(super) timeouts: u64,
    pub(super) rwnd_blocked_s: f64,
    /// Records that were lost because the disk was slower than the host.
    #[serde(default)]
    pub(super) records_dropped: u64,
    /// Bytes of protected packets that a host sent, by sender and path.
    #[serde(default)]
    pub(super) protected_sent_bytes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Counters of flows. Hosts write none.
    #[serde(default)]
    flows: Vec<FlowCounters>,
}

#[derive(Clone, Debug, Deserialize)]
struct FlowCounters {
    name: String,
    abandoned: Option<AbandonedCounters>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct AbandonedCounters {
    forward_tsns: u64,
}

impl RunCounters {
    /// Returns the FORWARD-TSN chunks that the senders of a flow with a limit sent.
    pub(super) fn forward_tsns(&self, flow: &str) -> Option<u64> {
        let counted = self.flows.iter().find(|counted| counted.name == flow)?;
        counted.abandoned.map(|abandoned| abandoned.forward_tsns)
    }
}

pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// Scenario; `None` if the file is missing.
    pub(super) scenario: Option<Scenario>,
    /// Traces of the scenario's links.
    pub(super) files: ScenarioFiles,
    /// Result; `None` if the run did not end.
    pub(super) ended: Option<ResultFile>,
    /// Readable part of each file.
    limits: BTreeMap<String, Limit>,
    /// Set if the traces cover the whole run.
    pub(super) whole: bool,
    pub(super) notes: Vec<String>,
}

pub(super) fn find_runs(folder: &Path) -> Result<Vec<PathBuf>, ExplainError> {
    if folder.join(RUN_FILE).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let file = folder.display().to_string();
    let unreadable = |error| ExplainError::Unreadable { file: file.clone(), error };
    let mut runs = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.join(RUN_FILE).is_file() {
                runs.push(path);
            }
        }
    }
    runs.sort();
    match runs.is_empty() {
        true if holds_traces(folder) => Err(old(&file)),
        true => Err(ExplainError::NotATrace { folder: file }),
        false => Ok(runs),
    }
}

/// Returns `true` if the folder contains traces of versions without a `run.toml`.
fn holds_traces(folder: &Path) -> bool {
    folder.join(PACKETS).is_file()
}

fn old(folder: &str) -> ExplainError {
    ExplainError::Version {
        file: folder.to_owned(),
        what: format!("traces without {RUN_FILE}, as earlier versions wrote them"),
    }
}

impl Folder {
    /// Returns the bytes of protected packets that a sender of a host passed to a path, or `None` without protection.
    pub(super) fn protected_sent_bytes(&self, sender: &str, path: &str) -> Option<u64> {
        let paths = self.ended.as_ref()?.result.protected_sent_bytes.get(sender)?;
        Some(paths.get(path).copied().unwrap_or(0))
    }

    pub(super) fn open(path: &Path) -> Result<Self, ExplainError> {
        let manifest = manifest(&path.join(RUN_FILE))?;
        let scenario = scenario(&path.join(SCENARIO_FILE))?;
        let ended: Option<ResultFile> = match text_file::read(&path.join(RESULT_FILE)) {
            Ok(text) => Some(document(&path.join(RESULT_FILE), serde_json::from_str(&text))?),
            Err(_) => None,
        };
        let (limits, notes) = (BTreeMap::new(), Vec::new());
        let whole = true;
        let files = ScenarioFiles::new(path);
        let mut folder =
            Folder { path: path.to_owned(), manifest, scenario, files, ended, limits, whole, notes };
        folder.measure()?;
        Ok(folder)
    }

    /// Measures the extent of the traces.
    fn measure(&mut self) -> Result<(), ExplainError> {
        let names: Vec<String> =
            self.manifest.senders.iter().flat_map(Sender::files).chain([PACKETS.to_owned()]).collect();
        let mut cut = Vec::new();
        for name in names {
            let written = self.ended.as_ref().and_then(|ended| ended.file_bytes.get(&name).copied());
            let whole = self.measure_file(&name, written)?;
            if !whole && self.ended.is_some() {
                cut.push(name);
            }
        }
        if self.ended.is_none() {
            self.notes.push(format!("the run did not end: {RESULT_FILE} is missing"));
        }
        if !cut.is_empty() {
            self.notes
                .push(format!("not as the run wrote it, being cut short or changed: {}", cut.join(", ")));
        }
        self.whole = self.notes.is_empty();
        if !self.whole {
            self.notes.push("each flow is summed up as far as all of its files go".to_owned());
        }
        if self.manifest.vantage == Vantage::Host {
            self.notes.push(
                "traced at one end only: arrivals at the other end and spurious retransmissions are not known"
                    .to_owned(),
            );
        } else if self.scenario.is_none() {
            self.notes.push(format!("{SCENARIO_FILE} is missing, so the rates of the paths are unknown"));
        }
        self.notes.extend(self.unreadable_trace());
        Ok(())
    }

    /// Returns a note on a trace of the scenario's links that cannot be read.
    fn unreadable_trace(&self) -> Option<String> {
        let ways = self.scenario.iter().flat_map(Scenario::ways);
        let read = |(_, way): (String, &OneWay)| match &way.capacity {
            Capacity::Trace(trace) => self.files.capacity(trace).err(),
            Capacity::Rate(_) => None,
        };
        let error = ways.into_iter().find_map(read)?;
        Some(format!("{error}; the rates of paths with this trace are unknown"))
    }

    /// Measures a file up to its last complete row. Returns `false` if the run wrote a longer file or did not end.
    fn measure_file(&mut self, name: &str, written: Option<u64>) -> Result<bool, ExplainError> {
        let path = self.path.join(name);
        let unreadable = |error| ExplainError::Unreadable { file: path.display().to_string(), error };
        let mut file = File::open(&path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let end = self.ended.as_ref().map_or(u64::MAX, |ended| (ended.ended_s * 1e9).round() as u64);
        if written == Some(length) {
            self.limits.insert(name.to_owned(), Limit { bytes: length, until: end });
            return Ok(true);
        }
        let tail_at = length.saturating_sub(TAIL_BYTES);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(tail_at)).map_err(unreadable)?;
        file.read_to_end(&mut tail).map_err(unreadable)?;
        let complete = tail.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        tail.truncate(complete);
        let last = tail.strip_suffix(b"\n").unwrap_or(&tail);
        let last = last.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let time = last.split(|&byte| byte == b',').next().and_then(nanoseconds);
        // A file with only a header covers no time.
        let limit = Limit { bytes: tail_at + complete as u64, until: end.min(time.unwrap_or(0)) };
        self.limits.insert(name.to_owned(), limit);
        Ok(false)
    }

    /// Returns the readable part of a file.
    pub(super) fn limit(&self, name: &str) -> Limit {
        self.limits.get(name).copied().unwrap_or(Limit { bytes: 0, until: 0 })
    }

    /// Returns the time up to which all files of a sender extend, in nanoseconds.
    pub(super) fn until(&self, sender: &Sender) -> u64 {
        let was_cut = self.ended.is_some() && !self.whole;
        if let Some(end) = sender.end_s.filter(|_| !was_cut) {
            // The end time is written after all rows of the sender.
            return (end * 1e9).round() as u64;
        }
        let own = sender.files().map(|name| self.limit(&name).until);
        own.into_iter().fold(self.limit(PACKETS).until, u64::min)
    }
}

fn manifest(path: &Path) -> Result<Manifest, ExplainError> {
    /// Fields that files of all versions have.
    #[derive(Deserialize)]
    struct Format {
        format: Option<u64>,
        version: Option<String>,
    }
    let file = path.display().to_string();
    let text =
        text_file::read(path).map_err(|error| ExplainError::Unreadable { file: file.clone(), error })?;
    let Format { format, version } = document(path, toml::from_str(&text))?;
    if format != Some(FORMAT) {
        let format = format.map_or_else(|| "of no format".to_owned(), |format| format!("of format {format}"));
        let version = version.unwrap_or_else(|| "unknown".to_owned());
        let what = format!("traces {format}, written by version {version}");
        return Err(ExplainError::Version { file, what });
    }
    document(path, toml::from_str(&text))
}

fn scenario(path: &Path) -> Result<Option<Scenario>, ExplainError> {
    match path.is_file() {
        true => document(path, Scenario::load(path, &[])).map(Some),
        false => Ok(None),
    }
}

fn document<T, E: std::fmt::Display>(path: &Path, read: Result<T, E>) -> Result<T, ExplainError> {
    read.map_err(|error| ExplainError::Document {
        file: path.display().to_string(),
        what: error.to_string().trim_end().to_owned(),
    })
}
