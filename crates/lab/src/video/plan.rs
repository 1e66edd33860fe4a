//! A trace with its packets and its playout, for both ends of a flow.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::video::fates::completions;
use crate::video::{
    Delivery, FrameTrace, Packet, Playout, TooManyPackets, TraceFault, VideoResult, deliveries, packetise,
};

/// Reason for which a trace cannot be used.
#[derive(Debug, Error)]
pub enum VideoError {
    /// The file cannot be read.
    #[error("{}: {error}; `anabranch video encode CLIP --out FOLDER` makes a trace, FOLDER/trace.csv", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The content is invalid.
    #[error("{}: {fault}", path.display())]
    Trace {
        /// Path of the file.
        path: PathBuf,
        /// Fault with its line.
        fault: TraceFault,
    },
    /// The trace has too many packets.
    #[error("{}: {error}", path.display())]
    Packets {
        /// Path of the file.
        path: PathBuf,
        /// Number of packets.
        error: TooManyPackets,
    },
}

/// Packets of a video, and the times at which frames are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoPlan {
    trace: FrameTrace,
    packets: Vec<Packet>,
    playout: Playout,
}

impl VideoPlan {
    /// Reads the trace.
    ///
    /// # Errors
    /// Returns [`VideoError`].
    pub fn load(path: &Path, payload_bytes: u64, deadline_ms: f64) -> Result<VideoPlan, VideoError> {
        let of = || path.to_owned();
        let file = std::fs::File::open(path).map_err(|error| VideoError::Unreadable { path: of(), error })?;
        let trace = FrameTrace::read(file).map_err(|fault| VideoError::Trace { path: of(), fault })?;
        let packets = packetise(trace.frames(), payload_bytes)
            .map_err(|error| VideoError::Packets { path: of(), error })?;
        let playout = Playout::of(trace.frames(), deadline_ms);
        Ok(VideoPlan { trace, packets, playout })
    }

    /// Returns the trace.
    pub fn trace(&self) -> &FrameTrace {
        &self.trace
    }

    /// Returns the packets in the order of transmission.
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// Returns the outcome of each frame in coding order, from the arrival of each packet on the clock of the trace.
    pub fn deliveries(&self, arrivals_ms: &[Option<f64>]) -> Vec<Delivery> {
        let frames = self.trace.frames();
        let complete = completions(frames.len(), self.packets.iter().map(|packet| packet.frame), arrivals_ms);
        deliveries(frames, &complete, &self.playout)
    }

    /// Returns the measures of frames that were due by a time on the clock of the trace.
    pub fn measures(&self, deliveries: &[Delivery], end_ms: f64) -> VideoResult {
        let (due, not_due): (Vec<Delivery>, Vec<Delivery>) =
            deliveries.iter().partition(|each| self.playout.due_ms(&each.frame) <= end_ms);
        VideoResult::of(due, not_due.len() as u64, &self.playout)
    }
}
