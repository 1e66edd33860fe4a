//! What a run's trace folder says of the run itself: `run.toml` and `scenario.toml` before it begins, `result.json` once it has ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml_writer::ToTomlValue as _;

use crate::run::{Job, RunError, RunResult};

/// Says which run it was.
pub(crate) const RUN_FILE: &str = "run.toml";
/// The scenario with every default in it, cut down to this one run.
pub(crate) const SCENARIO_FILE: &str = "scenario.toml";
/// Written last: a folder without it holds a run that did not end.
pub(crate) const RESULT_FILE: &str = "result.json";
/// Changes whenever a column gets another meaning or goes away.
pub(crate) const FORMAT: u64 = 2;

/// `run.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Manifest {
    /// Of the traces beside it.
    pub(crate) format: u64,
    /// Of the program that wrote them.
    pub(crate) version: String,
    pub(crate) scheme: String,
    pub(crate) seed: u64,
    pub(crate) profile: String,
    #[serde(rename = "sender")]
    pub(crate) senders: Vec<Sender>,
}

/// An end of a flow that sends data, and so has traces of its own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Sender {
    /// What the names of its files begin with.
    pub(crate) name: String,
    pub(crate) flow: String,
    /// `forward` or `reverse`, as in `packets.csv`.
    pub(crate) direction: String,
    pub(crate) scheme: String,
    pub(crate) paths: Vec<String>,
    pub(crate) start_s: f64,
    /// Whether chunks declared lost fill their path's window until they are sent again.
    pub(crate) lost_counts_until_resent: bool,
}

/// `result.json`.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    ended_s: f64,
    /// The sizes of the traces, by which it shows whether they are whole.
    file_bytes: BTreeMap<String, u64>,
    result: &'a RunResult,
}

impl Sender {
    /// The names of its two files.
    pub(crate) fn files(&self) -> [String; 2] {
        [format!("{}-paths.csv", self.name), format!("{}-decisions.csv", self.name)]
    }
}

impl Manifest {
    pub(crate) fn of(job: &Job, senders: Vec<Sender>) -> Self {
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scheme: job.scheme_name(),
            seed: job.seed,
            profile: job.scenario.run.profile.clone(),
            senders,
        }
    }

    pub(crate) fn to_toml(&self) -> String {
        let text = |text: &str| text.to_toml_value();
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "format = {}\nversion = {}", self.format, text(&self.version));
        let _ = writeln!(out, "scheme = {}\nseed = {}", text(&self.scheme), self.seed);
        let _ = writeln!(out, "profile = {}", text(&self.profile));
        for sender in &self.senders {
            let paths: Vec<String> = sender.paths.iter().map(|path| text(path)).collect();
            let _ = writeln!(out, "\n[[sender]]\nname = {}", text(&sender.name));
            let _ = writeln!(out, "flow = {}\ndirection = {}", text(&sender.flow), text(&sender.direction));
            let _ = writeln!(out, "scheme = {}\npaths = [{}]", text(&sender.scheme), paths.join(", "));
            let _ = writeln!(out, "start_s = {}", sender.start_s.to_toml_value());
            let _ = writeln!(out, "lost_counts_until_resent = {}", sender.lost_counts_until_resent);
        }
        out
    }

    /// Writes what is known before the run, and removes what an earlier run of that name left to say that it ended.
    pub(crate) fn write(&self, job: &Job, folder: &Path) -> Result<(), RunError> {
        let mut scenario = (*job.scenario).clone();
        scenario.run.schemes = vec![job.scheme.to_string()];
        scenario.run.seeds = vec![job.seed];
        put(&folder.join(RUN_FILE), &self.to_toml())?;
        put(&folder.join(SCENARIO_FILE), &scenario.to_toml())?;
        let stale = folder.join(RESULT_FILE);
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(wrong(&stale, error)),
            _ => Ok(()),
        }
    }

    /// Writes how the run ended; the traces are complete by now.
    pub(crate) fn close(&self, folder: &Path, ended_s: f64, result: &RunResult) -> Result<(), RunError> {
        let own = self.senders.iter().flat_map(Sender::files);
        let mut file_bytes = BTreeMap::new();
        for name in own.chain(["packets.csv".to_owned(), "queues.csv".to_owned()]) {
            let path = folder.join(&name);
            let bytes = fs::metadata(&path).map_err(|error| wrong(&path, error))?.len();
            file_bytes.insert(name, bytes);
        }
        let ended = Ended { ended_s, file_bytes, result };
        let path = folder.join(RESULT_FILE);
        let text = serde_json::to_string_pretty(&ended).map_err(|error| wrong(&path, error.into()))?;
        put(&path, &(text + "\n"))
    }
}

fn put(path: &Path, text: &str) -> Result<(), RunError> {
    fs::write(path, text).map_err(|error| wrong(path, error))
}

fn wrong(path: &Path, error: std::io::Error) -> RunError {
    RunError::File { path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same() {
        let manifest = Manifest {
            format: FORMAT,
            version: "0.1.0".to_owned(),
            scheme: "cmt(rtx=rtx-asap)".to_owned(),
            seed: 7,
            profile: "ns2".to_owned(),
            senders: vec![Sender {
                name: "flow-1-reverse".to_owned(),
                flow: "flow-1".to_owned(),
                direction: "reverse".to_owned(),
                scheme: "cmt \"quoted\"".to_owned(),
                paths: vec!["a".to_owned(), "b".to_owned()],
                start_s: 2.0,
                lost_counts_until_resent: true,
            }],
        };
        assert_eq!(toml::from_str::<Manifest>(&manifest.to_toml()), Ok(manifest));
    }
}
