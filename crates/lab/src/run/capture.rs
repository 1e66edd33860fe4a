//! A run's capture, which has its name once it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use anabranch_sim::Tap;
use anabranch_sim::pcapng::{PcapngTap, SnapLength};

use crate::run::address::address;
use crate::run::{Job, RunError};

/// Captures of runs: their folder, and the part of each packet that they keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures {
    /// Folder that gets a file for each run.
    pub folder: PathBuf,
    /// Maximum number of bytes of each packet.
    pub snap_length: SnapLength,
}

impl Captures {
    /// Creates a description of captures of whole packets.
    pub fn full(folder: PathBuf) -> Self {
        Captures { folder, snap_length: SnapLength::FULL }
    }
}

/// A capture that is being written, to a file that is called `.part` until it is whole.
pub(crate) struct Capture {
    tap: PcapngTap<BufWriter<File>>,
    part: PathBuf,
    whole: PathBuf,
}

impl Capture {
    /// Begins the capture of a run, if it is to have one.
    pub(crate) fn create(job: &Job) -> Result<Option<Self>, RunError> {
        let Some(Captures { folder, snap_length }) = &job.pcap else { return Ok(None) };
        let name = format!("{}.pcapng", job.label());
        let (whole, part) = (folder.join(&name), folder.join(format!("{name}.part")));
        fs::create_dir_all(folder).map_err(|error| wrong(folder, error))?;
        // That of an earlier run would pass for this one's, should this one not come to its end.
        match fs::remove_file(&whole) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(wrong(&whole, error)),
            _ => {}
        }
        let file = File::create(&part).map_err(|error| wrong(&part, error))?;
        let mut tap = PcapngTap::with_snap_length(BufWriter::new(file), *snap_length);
        for flow in 0..job.scenario.flows.len() {
            for (index, path) in job.scenario.paths.iter().enumerate() {
                for (side, end) in ["left", "right"].into_iter().enumerate() {
                    tap.name_interface(address(flow, index, side), format!("{end} {}", path.name));
                }
            }
        }
        Ok(Some(Capture { tap, part, whole }))
    }

    /// What is told of every packet.
    pub(crate) fn tap(&mut self) -> &mut dyn Tap {
        &mut self.tap
    }

    /// Ends it and gives it its name.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        let closed = self.tap.finish().map(drop);
        closed.map_err(|error| wrong(&self.part, error))?;
        fs::rename(&self.part, &self.whole).map_err(|error| wrong(&self.whole, error))
    }
}

fn wrong(path: &Path, error: io::Error) -> RunError {
    RunError::File { path: path.display().to_string(), error }
}
