//! Description of a run in its trace folder: `run.toml` and `scenario.toml` before it begins, `result.json` after its end.

use std::path::{Path, PathBuf};

use crate::run::{Job, RunResult, TracePart, TraceTable};
use anabranch_trace::{FORMAT, Manifest, PACKET_FILE, SCENARIO_FILE, Sender, TraceError, Vantage, put};

/// Returns the manifest of a run.
pub(crate) fn of(job: &Job, senders: Vec<Sender>) -> Manifest {
    Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scheme: job.scheme_name(),
        seed: Some(job.seed),
        profile: job.scenario.run.profile.clone(),
        vantage: Vantage::Network,
        epoch_s: None,
        senders,
    }
}

/// Writes the files that are known before the run.
pub(crate) fn write(manifest: &Manifest, job: &Job, folder: &Path) -> Result<(), TraceError> {
    let mut scenario = (*job.scenario).clone();
    scenario.run.schemes = vec![job.scheme.to_string()];
    scenario.run.seeds = vec![job.seed];
    scenario.map_trace_paths(|path| absolute(&job.files.folder().join(path)));
    manifest.write(folder)?;
    put(&folder.join(SCENARIO_FILE), &scenario.to_toml())?;
    Manifest::reopen(folder)
}

/// Returns a path that is valid in every folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Writes the result of the run. The traces have to be complete.
pub(crate) fn close(
    manifest: &Manifest,
    folder: &Path,
    ended_s: f64,
    tables: &[String],
    part: &TracePart,
    result: &RunResult,
) -> Result<(), TraceError> {
    let of_senders = manifest.senders.iter().flat_map(|sender| {
        let [paths, decisions] = sender.files();
        [(TraceTable::Paths, paths), (TraceTable::Decisions, decisions)]
    });
    let beside = [(TraceTable::Packets, PACKET_FILE), (TraceTable::Queues, "queues.csv")];
    let beside = beside.map(|(table, file)| (table, file.to_owned()));
    let own = of_senders.chain(beside).filter(|(table, _)| part.has(*table)).map(|(_, file)| file);
    Manifest::close_files(folder, ended_s, own.chain(tables.iter().cloned()), result)
}
