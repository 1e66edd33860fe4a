//! `run.toml`, which says whose traces a folder holds, and the names of the files beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml_writer::ToTomlValue as _;

use crate::trace::csv_table::TraceError;

/// Says which run it was.
pub const RUN_FILE: &str = "run.toml";
/// The scenario with every default in it, cut down to this one run; what was traced at sockets has none.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// Written last: a folder without it holds a run that did not end.
pub const RESULT_FILE: &str = "result.json";
/// Changes whenever a column gets another meaning or goes away.
pub const FORMAT: u64 = 2;

/// What stood by when the traces were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// The whole network: what was sent at one end, what arrived at the other, and what was dropped between them.
    #[default]
    Network,
    /// One host: what it sent, and what came to it.
    Host,
}

/// `run.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Manifest {
    /// Of the traces beside it.
    pub format: u64,
    /// Of the program that wrote them.
    pub version: String,
    /// The scheme as it was asked for; several are joined with commas.
    pub scheme: String,
    /// The seed of a simulation.
    pub seed: Option<u64>,
    /// The profile.
    pub profile: String,
    /// Where it was seen from.
    #[serde(default)]
    pub vantage: Vantage,
    /// When second 0 was, by the wall clock, in seconds since 1970 began; a simulation has no such time.
    pub epoch_s: Option<f64>,
    /// The ends that have traces of their own.
    #[serde(default, rename = "sender")]
    pub senders: Vec<Sender>,
}

/// An end of a flow that sends data, and so has traces of its own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sender {
    /// What the names of its files begin with.
    pub name: String,
    /// The flow.
    pub flow: String,
    /// `forward` or `reverse`, as in `packets.csv`.
    pub direction: String,
    /// Its scheme.
    pub scheme: String,
    /// Its paths' names.
    pub paths: Vec<String>,
    /// The addresses of its paths, ours and the peer's; none in a simulation.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// When it starts.
    pub start_s: f64,
    /// When it ended, if that was before the end of the run.
    pub end_s: Option<f64>,
    /// Whether chunks declared lost fill their path's window until they are sent again.
    pub lost_counts_until_resent: bool,
}

/// `result.json`.
#[derive(Debug, Serialize)]
struct ResultFile<'a, R> {
    ended_s: f64,
    /// The sizes of the traces, by which it shows whether they are whole.
    file_bytes: BTreeMap<String, u64>,
    result: &'a R,
}

impl Sender {
    /// The names of its two files.
    pub fn files(&self) -> [String; 2] {
        [format!("{}-paths.csv", self.name), format!("{}-decisions.csv", self.name)]
    }
}

impl Manifest {
    /// As the file has it.
    pub(crate) fn to_toml(&self) -> String {
        let text = |text: &str| text.to_toml_value();
        let list = |all: &[String]| all.iter().map(|one| text(one)).collect::<Vec<_>>().join(", ");
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "format = {}\nversion = {}", self.format, text(&self.version));
        let _ = writeln!(out, "scheme = {}", text(&self.scheme));
        if let Some(seed) = self.seed {
            let _ = writeln!(out, "seed = {seed}");
        }
        let _ = writeln!(out, "profile = {}", text(&self.profile));
        if self.vantage == Vantage::Host {
            let _ = writeln!(out, "vantage = \"host\"");
        }
        if let Some(epoch) = self.epoch_s {
            let _ = writeln!(out, "epoch_s = {}", epoch.to_toml_value());
        }
        for sender in &self.senders {
            let _ = writeln!(out, "\n[[sender]]\nname = {}", text(&sender.name));
            let _ = writeln!(out, "flow = {}\ndirection = {}", text(&sender.flow), text(&sender.direction));
            let _ = writeln!(out, "scheme = {}\npaths = [{}]", text(&sender.scheme), list(&sender.paths));
            if !sender.addresses.is_empty() {
                let _ = writeln!(out, "addresses = [{}]", list(&sender.addresses));
            }
            let _ = writeln!(out, "start_s = {}", sender.start_s.to_toml_value());
            if let Some(end_s) = sender.end_s {
                let _ = writeln!(out, "end_s = {}", end_s.to_toml_value());
            }
            let _ = writeln!(out, "lost_counts_until_resent = {}", sender.lost_counts_until_resent);
        }
        out
    }

    /// Writes `run.toml`, replacing what was there.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn write(&self, folder: &Path) -> Result<(), TraceError> {
        put(&folder.join(RUN_FILE), &self.to_toml())
    }

    /// Removes what an earlier run of that name left to say that it ended.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn reopen(folder: &Path) -> Result<(), TraceError> {
        let stale = folder.join(RESULT_FILE);
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(wrong(stale, error)),
            _ => Ok(()),
        }
    }

    /// Writes how it ended; the traces, these files beside those of the senders, are complete by now.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn close<R: Serialize>(
        &self,
        folder: &Path,
        ended_s: f64,
        beside: &[&str],
        result: &R,
    ) -> Result<(), TraceError> {
        let own = self.senders.iter().flat_map(Sender::files);
        let files = own.chain(beside.iter().map(|name| (*name).to_owned()));
        Self::close_files(folder, ended_s, files, result)
    }

    /// Writes how it ended, where exactly these files have been written.
    pub(crate) fn close_files<R: Serialize>(
        folder: &Path,
        ended_s: f64,
        files: impl Iterator<Item = String>,
        result: &R,
    ) -> Result<(), TraceError> {
        let mut file_bytes = BTreeMap::new();
        for name in files {
            let path = folder.join(&name);
            let bytes = fs::metadata(&path).map_err(|error| wrong(path, error))?.len();
            file_bytes.insert(name, bytes);
        }
        let ended = ResultFile { ended_s, file_bytes, result };
        let path = folder.join(RESULT_FILE);
        let text = serde_json::to_string_pretty(&ended).map_err(|error| wrong(path.clone(), error.into()))?;
        put(&path, &(text + "\n"))
    }
}

/// Puts a file of a trace.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), TraceError> {
    fs::write(path, text).map_err(|error| wrong(path.to_owned(), error))
}

fn wrong(path: PathBuf, error: std::io::Error) -> TraceError {
    TraceError { path, error }
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
            seed: Some(7),
            profile: "ns2".to_owned(),
            vantage: Vantage::Host,
            epoch_s: Some(1.5e9),
            senders: vec![Sender {
                name: "flow-1-reverse".to_owned(),
                flow: "flow-1".to_owned(),
                direction: "reverse".to_owned(),
                scheme: "cmt \"quoted\"".to_owned(),
                paths: vec!["a".to_owned(), "b".to_owned()],
                addresses: vec!["127.0.0.1 to [::1]:9899".to_owned()],
                start_s: 2.0,
                end_s: Some(7.25),
                lost_counts_until_resent: true,
            }],
        };
        assert_eq!(toml::from_str::<Manifest>(&manifest.to_toml()), Ok(manifest));
    }
}
