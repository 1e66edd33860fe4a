//! Capture of a run, which gets its final name once it is complete.

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

/// A capture that is being written. The name of the file ends in `.part` until the capture is complete.
pub(crate) struct Capture {
    tap: PcapngTap<BufWriter<File>>,
    part: PathBuf,
    whole: PathBuf,
}

impl Capture {
    /// Begins the capture of a run, if it is requested.
    pub(crate) fn create(job: &Job) -> Result<Option<Self>, RunError> {
        let Some(Captures { folder, snap_length }) = &job.pcap else { return Ok(None) };
        let name = format!("{}.pcapng", job.label());
        let (whole, part) = (folder.join(&name), folder.join(format!("{name}.part")));
        fs::create_dir_all(folder).map_err(|error| wrong(folder, error))?;
        // The file of an earlier run could be mistaken for this one's if this run does not end.
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

    /// Returns the tap that receives every packet.
    pub(crate) fn tap(&mut self) -> &mut dyn Tap {
        &mut self.tap
    }

    /// Ends the capture and gives it its final name.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        let closed = self.tap.finish().map(drop);
        closed.map_err(|error| wrong(&self.part, error))?;
        fs::rename(&self.part, &self.whole).map_err(|error| wrong(&self.whole, error))
    }
}

fn wrong(path: &Path, error: io::Error) -> RunError {
    RunError::File { path: path.display().to_string(), error }
}
