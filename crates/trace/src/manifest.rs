//! `run.toml`, which describes the run of a folder, and the names of the other files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml_writer::ToTomlValue as _;

use crate::csv_table::TraceError;

/// Description of the run.
pub const RUN_FILE: &str = "run.toml";
/// Scenario with all defaults, reduced to this run. Traces of sockets have no such file.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// Result, written last. If it is missing, the run did not end.
pub const RESULT_FILE: &str = "result.json";
/// Version of the format, which increases if a column changes its meaning or is removed.
pub const FORMAT: u64 = 2;

/// Point of observation of traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// The whole network: transmissions at one end, arrivals at the other, and drops between them.
    #[default]
    Network,
    /// One host: its transmissions and arrivals.
    Host,
}

/// Content of `run.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Manifest {
    /// Format of the traces in the folder.
    pub format: u64,
    /// Version of the program that wrote them.
    pub version: String,
    /// Requested scheme. Several are joined with commas.
    pub scheme: String,
    /// Seed of a simulation.
    pub seed: Option<u64>,
    /// Name of the profile.
    pub profile: String,
    /// Point of observation.
    #[serde(default)]
    pub vantage: Vantage,
    /// Wall-clock time of second 0, in seconds since 1970. `None` for a simulation.
    pub epoch_s: Option<f64>,
    /// Senders that write their own traces.
    #[serde(default, rename = "sender")]
    pub senders: Vec<Sender>,
}

/// End of a flow that sends data, and therefore has traces of its own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sender {
    /// Prefix of the names of the sender's files.
    pub name: String,
    /// Name of the flow.
    pub flow: String,
    /// `forward` or `reverse`, as in `packets.csv`.
    pub direction: String,
    /// Scheme of the sender.
    pub scheme: String,
    /// Names of the paths.
    pub paths: Vec<String>,
    /// Local and remote addresses of the paths; empty in a simulation.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Start time in seconds.
    pub start_s: f64,
    /// End time in seconds, if it precedes the end of the run.
    pub end_s: Option<f64>,
    /// Set if chunks declared lost occupy their path's window until they are retransmitted.
    pub lost_counts_until_resent: bool,
}

/// Content of `result.json`.
#[derive(Debug, Serialize)]
struct ResultFile<'a, R> {
    ended_s: f64,
    /// Sizes of the traces, which reveal truncated files.
    file_bytes: BTreeMap<String, u64>,
    result: &'a R,
}

impl Sender {
    /// Returns the names of the two files.
    pub fn files(&self) -> [String; 2] {
        [format!("{}-paths.csv", self.name), format!("{}-decisions.csv", self.name)]
    }
}

impl Manifest {
    /// Returns the content of the file.
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

    /// Writes `run.toml`, in place of an existing one.
    ///
    /// # Errors
    /// Returns [`TraceError`].
    pub fn write(&self, folder: &Path) -> Result<(), TraceError> {
        put(&folder.join(RUN_FILE), &self.to_toml())
    }

    /// Removes the result of an earlier run with the same name.
    ///
    /// # Errors
    /// Returns [`TraceError`].
    pub fn reopen(folder: &Path) -> Result<(), TraceError> {
        let stale = folder.join(RESULT_FILE);
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(wrong(stale, error)),
            _ => Ok(()),
        }
    }

    /// Writes the result. All traces have to be complete: those of the senders, and the other ones, named in `files`.
    ///
    /// # Errors
    /// Returns [`TraceError`].
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

    /// Writes the result, with exactly these files as traces.
    ///
    /// # Errors
    /// Returns [`TraceError`].
    pub fn close_files<R: Serialize>(
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

/// Writes a file of a trace.
///
/// # Errors
/// Returns [`TraceError`].
pub fn put(path: &Path, text: &str) -> Result<(), TraceError> {
    fs::write(path, text).map_err(|error| wrong(path.to_owned(), error))
}

fn wrong(path: PathBuf, error: std::io::Error) -> TraceError {
    TraceError { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_manifest_reads_as_the_same() {
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
