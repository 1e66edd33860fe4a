//! An offered file that is not done, and its progress.

use std::io;
use std::time::{Duration, Instant};

use crate::block::{Hash, block_len, blocks_of};
use crate::name::Name;
use crate::part_lock::HeldPart;
use crate::protocol::{Kind, Offer, ProtocolError};
use crate::store::{FileState, Flow, Part};

/// Stage of an offered file.
pub(super) enum Stage {
    /// The file waits and cannot proceed.
    Waiting(Wait),
    /// The receiver has a file of this name and size. The root decides whether it is the offered one.
    Comparing,
    /// The file is being received in a folder.
    Part(Box<Part>),
    /// The file is being received into a pipe.
    Flow(Box<Flow>),
    /// The file is complete. It is being synced to the disk, and will get its name.
    Committing,
}

/// An offer that waits, and the step that it resumes with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) resume: Resume,
    /// Reason of the wait, and the time of the first attempt that failed for it; `None` before the first attempt.
    pub(super) blocked: Option<(Blocked, Instant)>,
}

/// Step of an offer that a wait interrupts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resume {
    /// The offer has not been answered.
    Begin,
    /// The source has answered a comparison with its size and root, and is not asked again.
    Compared {
        end: (u64, Hash),
        /// State of the last file of that name that was read and has different content.
        different: Option<FileState>,
    },
}

/// Reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Another transfer holds the part file.
    PartFile,
    /// The transfer's own files use up its share of descriptors.
    Share,
    /// The system has no descriptors or memory left.
    System,
}

impl Wait {
    /// Returns the state of an offer that has just arrived.
    pub(super) fn new() -> Self {
        Wait { resume: Resume::Begin, blocked: None }
    }

    /// Returns this wait after another attempt, which ended at `resume` for a reason.
    pub(super) fn blocked_by(self, resume: Resume, reason: Blocked) -> Self {
        let since = self
            .blocked
            .filter(|(before, _)| *before == reason)
            .map_or_else(Instant::now, |(_, since)| since);
        Wait { resume, blocked: Some((reason, since)) }
    }

    /// Returns the time for which it has been waiting for this reason.
    pub(super) fn blocked_for(&self, reason: Blocked) -> Duration {
        self.blocked
            .filter(|(before, _)| *before == reason)
            .map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    /// Returns `true` if the offer waits for descriptors or memory, or behind an offer that does.
    pub(super) fn is_queued(&self) -> bool {
        self.blocked.is_none_or(|(reason, _)| reason != Blocked::PartFile)
    }
}

pub(super) struct Open {
    pub(super) name: Name,
    pub(super) offer: Offer,
    pub(super) stage: Stage,
    /// Size and root of the file, once the source has sent everything.
    pub(super) end: Option<(u64, Hash)>,
    pub(super) held_bytes: u64,
    pub(super) reused_bytes: u64,
    /// Registration of this transfer as the holder of the part file; removed when the file is closed.
    pub(super) _held: Option<HeldPart>,
}

impl Open {
    /// Checks that a block has a place in this file.
    pub(super) fn check(&self, index: u64, len: u32, window_blocks: usize) -> Result<(), ProtocolError> {
        let is_wanted = match &self.stage {
            Stage::Part(part) => part.admits(index, len),
            Stage::Flow(flow) => {
                let fits = size_of(&self.offer)
                    .is_none_or(|size| index < blocks_of(size) && len == block_len(size, index));
                fits && len > 0 && flow.admits(index, window_blocks)
            }
            Stage::Waiting(_) | Stage::Comparing | Stage::Committing => {
                return Err(ProtocolError::Unexpected("data that was not requested"));
            }
        };
        if is_wanted { Ok(()) } else { Err(ProtocolError::Unexpected("a block that was not requested")) }
    }

    /// Checks that the file system has room for a block at this position.
    pub(super) fn check_room(&mut self, index: u64) -> io::Result<()> {
        match &mut self.stage {
            Stage::Part(part) => part.check_room(index),
            Stage::Waiting(_) | Stage::Comparing | Stage::Committing | Stage::Flow(_) => Ok(()),
        }
    }
}

pub(super) fn size_of(offer: &Offer) -> Option<u64> {
    match offer.kind {
        Kind::File { size_bytes, .. } => Some(size_bytes),
        Kind::Stream { .. } | Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => None,
    }
}
